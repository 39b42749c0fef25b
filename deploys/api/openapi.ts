import { openapi } from '@elysiajs/openapi';
import manifest from '../../package.json';
import { IDEMPOTENCY_KEPT_MS } from '../outbox/prune.ts';
import { REQUESTS_MAX } from './request-log.ts';
import { type ProgramsAnswer, refOf, type SchemaName, SCHEMAS, WWW_AUTHENTICATE } from './schema.ts';
import { type Fields, IDEMPOTENCY_KEY_MAX } from './webhook-requests.ts';

/** A parameter of a path, of a query or of the header. */
type Parameter = Readonly<{
  name: string;
  in: 'path' | 'query' | 'header';
  required: boolean;
  description?: string;
  schema: Readonly<{ type: 'string' | 'integer'; format?: 'uuid'; maxLength?: number }>;
}>;
type Responses = Readonly<Record<number, Readonly<{ description: string; content?: object }>>>;

const PATH_PARAMETERS = { id: 'Id of a webhook', delivery: 'Id of a delivery' };
const HOURS_KEPT = IDEMPOTENCY_KEPT_MS / 3_600_000;
export const IDEMPOTENCY_KEY: Parameter = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description:
    `A name of your own for this request, such as a UUID. For ${HOURS_KEPT} hours the same name and body give the same webhook, ` +
    'again with 201, and `Idempotency-Replayed: true`; another body is 422, and a request that is under way 409.',
  schema: { type: 'string', maxLength: IDEMPOTENCY_KEY_MAX },
};
const SECURITY = [{ token: [] }, { bearer: [] }, { query: [] }];
const KEYED = {
  401: {
    ...errorOf('No key, or a key that is unknown or inactive: send an active key'),
    headers: WWW_AUTHENTICATE,
  },
  429: errorOf('Too many requests: wait the number of seconds in `Retry-After`'),
  503: errorOf('Keys cannot be checked: retry with backoff'),
};
const MALFORMED = { 400: errorOf('The body or the query cannot be read; the text says why') };
const GONE = { 404: errorOf('The account has no such webhook or delivery') };

/** Further answers of operations on webhooks. */
export const CONFLICT = { 409: errorOf('It conflicts with the current state; the text says why') };
export const UNFIT = {
  422: errorOf('A value that is not accepted, such as a URL that is not public; the text says why'),
  503: errorOf(
    'The host of the URL cannot be looked up now, keys cannot be checked, or no change can be taken; the text says why: retry with backoff',
  ),
};

export type Description = Readonly<{
  operationId: string;
  summary: string;
  /** Beside those of the path. */
  parameters?: readonly Parameter[];
  /** The members that its body may have; absent, it has none. */
  fields?: Fields;
  responses: Responses;
}>;

/** An operation on webhooks in OpenAPI's words. */
export function webhookOperation(path: string, { fields, parameters = [], ...given }: Description) {
  const inPath = Object.entries(PATH_PARAMETERS).filter(([name]) => path.includes(`:${name}`));
  const members = Object.entries(fields ?? {});
  const required = members.flatMap(([name, { missing }]) => (missing === undefined ? [] : [name]));
  const properties = Object.fromEntries(members.map(([name, field]) => [name, field.schema]));
  const schema = { type: 'object' as const, properties, required, additionalProperties: false };
  const isRead = fields !== undefined || parameters.some((parameter) => parameter.in === 'query');
  return {
    operationId: given.operationId,
    summary: given.summary,
    tags: ['Webhooks'],
    security: SECURITY,
    parameters: [
      ...inPath.map(([name, description]): Parameter => {
        const uuid = { type: 'string', format: 'uuid' } as const;
        return { name, in: 'path', required: true, description, schema: uuid };
      }),
      ...parameters,
    ],
    responses: { ...KEYED, ...(isRead && MALFORMED), ...(inPath.length > 0 && GONE), ...given.responses },
    ...(fields && {
      requestBody: { required: required.length > 0, content: { 'application/json': { schema } } },
    }),
  };
}

export function queryOf(name: string, type: 'string' | 'integer'): Parameter {
  return { name, in: 'query', required: false, schema: { type } };
}

/** A response with a JSON body, or one of `SCHEMAS`. */
export function described(description: string, schema: SchemaName | object) {
  const reference = typeof schema === 'string' ? refOf(schema) : schema;
  return { description, content: { 'application/json': { schema: reference } } };
}

function errorOf(description: string) {
  return described(description, 'ErrorAnswer');
}

const EXAMPLE: ProgramsAnswer = {
  checked_at: '2026-11-20T09:30:00.412Z',
  programs: [
    {
      program_id: '675kPX9MHTjS2zt1qfr1NYHuzeLXfQM9H24wFSUt1Mp8',
      label: 'Raydium AMM V4',
      status: 'upgradeable',
      upgrade_authority: 'GThUX1Atko4tqhN2NaiTazWSeFWMuiUvfFnyJyUghFMJ',
      deploy_slot: 381_204_977,
      deployed_at: '2026-11-18T17:04:21Z',
    },
    {
      program_id: 'CAMMCzo5YL8w4VFF8KVHrK22GGUsp5VTaW7grrKgrWqK',
      label: 'Raydium CLMM',
      status: 'frozen',
      upgrade_authority: null,
      deploy_slot: 204_118_300,
      deployed_at: null,
    },
  ],
};

const RETRY_AFTER = {
  'Retry-After': {
    description: 'Whole seconds to wait',
    schema: { type: 'integer' as const, minimum: 1 },
  },
};

/** The programs endpoint in OpenAPI's words. */
export const PROGRAMS_OPERATION = {
  operationId: 'listPrograms',
  summary: 'The latest deploy of each watched program',
  description:
    'Every watched program, newest deploy first. The data is read from the chain once a minute. Any active API key may ' +
    `ask, in exactly one of three ways, up to ${REQUESTS_MAX} times in any 60 seconds per key.`,
  tags: ['Programs'],
  security: SECURITY,
  parameters: [
    {
      name: 'program_id',
      in: 'query' as const,
      required: false,
      description:
        'Comma-separated program addresses (base58); restricts the result to those programs. Addresses that are not ' +
        'watched are left out.',
      schema: { type: 'string' as const },
      example: '675kPX9MHTjS2zt1qfr1NYHuzeLXfQM9H24wFSUt1Mp8,CAMMCzo5YL8w4VFF8KVHrK22GGUsp5VTaW7grrKgrWqK',
    },
  ],
  responses: {
    200: {
      description: 'The programs',
      content: { 'application/json': { schema: refOf('ProgramsAnswer'), example: EXAMPLE } },
    },
    400: errorWithTexts('A `program_id` that is no address', { malformed: 'Invalid program_id: abc' }),
    401: errorWithTexts(
      'No key, or a key that is unknown or inactive: send an active key',
      { missing: 'Missing API key', invalid: 'Invalid or inactive API key' },
      WWW_AUTHENTICATE,
    ),
    429: errorWithTexts(
      `More than ${REQUESTS_MAX} requests per minute: wait the number of seconds in \`Retry-After\``,
      { rate: 'Rate limit exceeded' },
      RETRY_AFTER,
    ),
    500: errorWithTexts('A fault of the service', { broken: 'Internal error' }),
    503: errorWithTexts(
      'Shortly after a restart, or when keys cannot be checked: retry with backoff',
      { starting: 'not available yet', keys: 'Key check unavailable' },
      RETRY_AFTER,
    ),
  },
};

function errorWithTexts(description: string, texts: Record<string, string>, headers = {}) {
  const examples = Object.fromEntries(
    Object.entries(texts).map(([name, error]) => [name, { summary: error, value: { error } }]),
  );
  return {
    description,
    headers,
    content: { 'application/json': { schema: refOf('ErrorAnswer'), examples } },
  };
}

/** Where the description of the API is served: a page, and the document for machines. */
export const REFERENCE_PATH = '/openapi';
export const DOCUMENT_PATH = '/openapi/json';

export const API_TITLE = 'Sluice program deploys';

/** The three ways to send a key (docs/spec.md 1); exactly one is used. */
export const KEY_CARRIERS = {
  token: { type: 'apiKey', in: 'header', name: 'x-token', description: 'The key in the header `x-token`' },
  bearer: { type: 'http', scheme: 'bearer', description: 'The key as `Authorization: Bearer <API_KEY>`' },
  query: { type: 'apiKey', in: 'query', name: 'api-key', description: 'The key as `?api-key=<API_KEY>`' },
} as const;

/** TypeBox's types say `undefined` where OpenAPI's say absent; the document knows no difference. */
const DOCUMENT_SCHEMAS: Readonly<Record<string, object>> = SCHEMAS;

/** The plugin that collects the routes into a document. Its own page would load scripts from a CDN; `referencePage` loads nothing. */
export function createOpenapi(publicUrl: URL) {
  return openapi({
    provider: null,
    specPath: DOCUMENT_PATH,
    documentation: {
      info: {
        title: API_TITLE,
        version: manifest.version,
        description: 'The latest deploy of each watched program, and webhooks that tell of new ones.',
      },
      servers: [{ url: publicUrl.href.replace(/\/$/, '') }],
      tags: [{ name: 'Programs' }, { name: 'Webhooks' }, { name: 'Operation' }],
      // Schemas stand here and not in Elysia's models, because those leave an `$id` in the document.
      components: { securitySchemes: KEY_CARRIERS, schemas: DOCUMENT_SCHEMAS },
    },
  });
}

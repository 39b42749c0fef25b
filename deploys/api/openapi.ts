import { openapi } from '@elysiajs/openapi';
import manifest from '../../package.json';
import { IDEMPOTENCY_KEPT_MS } from '../outbox/prune.ts';
import { TAKEOVERS } from '../webhooks/change.ts';
import { WEBHOOKS_MAX } from '../webhooks/create.ts';
import { REQUESTS_MAX } from './request-log.ts';
import { type ProgramsAnswer, refOf, type SchemaName, SCHEMAS, WWW_AUTHENTICATE } from './schema.ts';
import { IDEMPOTENCY_KEY_MAX } from './webhook-requests.ts';

const ID = pathParameter('id', 'Id of a webhook');
const DELIVERY = pathParameter('delivery', 'Id of a delivery');
const HOURS_KEPT = IDEMPOTENCY_KEPT_MS / 3_600_000;
const IDEMPOTENCY_KEY = {
  name: 'Idempotency-Key',
  in: 'header' as const,
  required: false,
  description:
    `A name of your own for this request, such as a UUID. For ${HOURS_KEPT} hours the same name and body give the same webhook, ` +
    'again with 201, and `Idempotency-Replayed: true`; another body is 422, and a request that is under way 409.',
  schema: { type: 'string' as const, maxLength: IDEMPOTENCY_KEY_MAX },
};
const SETTINGS = {
  url: { type: 'string', description: 'https, on the public internet' },
  programs: {
    anyOf: [{ type: 'array', items: { type: 'string' }, minItems: 1 }, { type: 'null' }],
    description: 'Addresses of watched programs; null for all',
  },
  description: { type: 'string', maxLength: 200 },
};

const LATER = { 202: described('It is due now', { type: 'object' }) };
const GONE = { 404: errorOf('The account has no such webhook or delivery') };
const CONFLICT = { 409: errorOf('It conflicts with the current state; the text says why') };
const UNFIT = {
  422: errorOf('A value that is not accepted, such as a URL that is not public; the text says why'),
  503: errorOf('The host of the URL cannot be looked up now, or keys cannot be checked: retry with backoff'),
};
const MALFORMED = { 400: errorOf('The body or the query cannot be read; the text says why') };
const one = { 200: described('The webhook', refOf('WebhookRecord')) };
const shown = described('The webhook, and its secret, shown only this once', refOf('WebhookSecretAnswer'));

/** The operations on webhooks in OpenAPI's words. */
export const WEBHOOK_OPERATIONS = {
  list: operation('listWebhooks', 'The webhooks of the account', [], {
    200: described('The webhooks, oldest first', refOf('WebhooksAnswer')),
  }),
  create: operation(
    'createWebhook',
    `Create a webhook; at most ${WEBHOOKS_MAX} per account`,
    [IDEMPOTENCY_KEY],
    { 201: shown, ...MALFORMED, ...CONFLICT, ...UNFIT },
    bodyOf(SETTINGS, ['url']),
  ),
  find: operation('getWebhook', 'One webhook', [ID], { ...one, ...GONE }),
  edit: operation(
    'editWebhook',
    'Change the URL, the programs or the description',
    [ID],
    { ...one, ...MALFORMED, ...GONE, ...UNFIT },
    bodyOf(SETTINGS, []),
  ),
  remove: operation('deleteWebhook', 'Delete a webhook and cancel its open deliveries', [ID], {
    204: { description: 'It is deleted' },
    ...GONE,
  }),
  pause: operation('pauseWebhook', 'Pause: open and new deliveries are skipped', [ID], { ...one, ...GONE }),
  resume: operation('resumeWebhook', 'Resume: new events are delivered again', [ID], { ...one, ...GONE }),
  rotate: operation(
    'rotateWebhookSecret',
    'Create a new secret that takes over immediately, in 1 h or in 24 h; until then it signs in `X-Service-Signature-Next`',
    [ID],
    { 200: shown, ...MALFORMED, ...GONE, ...CONFLICT },
    bodyOf({ takes_over: { type: 'string', enum: Object.keys(TAKEOVERS), default: '24h' } }, []),
  ),
  switchNow: operation('switchWebhookSecret', 'Switch to the new secret immediately', [ID], {
    ...one,
    ...GONE,
    ...CONFLICT,
  }),
  cancelRotation: operation('cancelWebhookRotation', 'Cancel a pending rotation', [ID], {
    ...one,
    ...GONE,
    ...CONFLICT,
  }),
  sendTest: operation('sendTest', 'Send a `ping`', [ID], { ...LATER, ...GONE, ...CONFLICT }),
  resendFailed: operation(
    'resendFailed',
    'Retry every failed delivery created since an instant',
    [ID],
    { ...LATER, ...MALFORMED, ...GONE, ...CONFLICT },
    bodyOf({ since: { type: 'string', format: 'date-time' } }, ['since']),
  ),
  deliveries: operation(
    'listDeliveries',
    'Deliveries of a webhook, newest first',
    [ID, queryOf('state', 'string'), queryOf('limit', 'integer'), queryOf('cursor', 'string')],
    { 200: described('A page of deliveries', refOf('DeliveriesAnswer')), ...MALFORMED, ...GONE },
  ),
  delivery: operation('getDelivery', 'One delivery with its body and its attempts', [ID, DELIVERY], {
    200: described('The delivery, and `body` and `tries`', { type: 'object' }),
    ...GONE,
  }),
  resend: operation('resendDelivery', 'Retry a delivery, under the same id', [ID, DELIVERY], {
    ...LATER,
    ...GONE,
    ...CONFLICT,
  }),
};

type Parameter = ReturnType<typeof pathParameter> | ReturnType<typeof queryOf> | typeof IDEMPOTENCY_KEY;
type Responses = Readonly<Record<number, Readonly<{ description: string; content?: object }>>>;

function operation(
  operationId: string,
  summary: string,
  parameters: Parameter[],
  responses: Responses,
  body = {},
) {
  const keyed = {
    401: {
      ...errorOf('No key, or a key that is unknown or inactive: send an active key'),
      headers: WWW_AUTHENTICATE,
    },
    429: errorOf('Too many requests: wait the number of seconds in `Retry-After`'),
    503: errorOf('Keys cannot be checked: retry with backoff'),
  };
  const security = [{ token: [] }, { bearer: [] }, { query: [] }];
  return {
    operationId,
    summary,
    tags: ['Webhooks'],
    security,
    parameters,
    responses: { ...keyed, ...responses },
    ...body,
  };
}

function pathParameter(name: string, description: string) {
  return {
    name,
    in: 'path' as const,
    required: true,
    description,
    schema: { type: 'string' as const, format: 'uuid' },
  };
}

function queryOf(name: string, type: 'string' | 'integer') {
  return { name, in: 'query' as const, required: false, schema: { type } };
}

function bodyOf(properties: object, required: readonly string[]) {
  const schema = { type: 'object', properties, required, additionalProperties: false };
  return { requestBody: { required: required.length > 0, content: { 'application/json': { schema } } } };
}

function described(description: string, schema: object) {
  return { description, content: { 'application/json': { schema } } };
}

function errorOf(description: string) {
  const name: SchemaName = 'ErrorAnswer';
  return described(description, refOf(name));
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
  security: [{ token: [] }, { bearer: [] }, { query: [] }],
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

/**
 * The plugin that collects the routes into an OpenAPI document. Its own page would load its scripts from a public
 * CDN, so it makes none: `reference-page.ts` does, from the same words and without another origin.
 */
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

import { REQUESTS_MAX } from './request-log.ts';
import { type ProgramsAnswer, refOf, WWW_AUTHENTICATE } from './schema.ts';

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
    400: errorOf('A `program_id` that is no address', { malformed: 'Invalid program_id: abc' }),
    401: errorOf(
      'No key, or a key that is unknown or inactive: send an active key',
      { missing: 'Missing API key', invalid: 'Invalid or inactive API key' },
      WWW_AUTHENTICATE,
    ),
    429: errorOf(
      `More than ${REQUESTS_MAX} requests per minute: wait the number of seconds in \`Retry-After\``,
      { rate: 'Rate limit exceeded' },
      RETRY_AFTER,
    ),
    500: errorOf('A fault of the service', { broken: 'Internal error' }),
    503: errorOf(
      'Shortly after a restart, or when keys cannot be checked: retry with backoff',
      { starting: 'not available yet', keys: 'Key check unavailable' },
      RETRY_AFTER,
    ),
  },
};

function errorOf(description: string, texts: Record<string, string>, headers = {}) {
  const examples = Object.fromEntries(
    Object.entries(texts).map(([name, error]) => [name, { summary: error, value: { error } }]),
  );
  return {
    description,
    headers,
    content: { 'application/json': { schema: refOf('ErrorAnswer'), examples } },
  };
}

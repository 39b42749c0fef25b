import { describe, expect, test } from 'bun:test';
import { rateFields } from '../../../gateway/limits/charge.ts';
import { readEnvelope, rpcError, rpcResult } from '../../../gateway/request/envelope.ts';
import { type Refusal, refuse } from '../../../gateway/respond/refusal.ts';

const RATE = {
  plan: { rps: 5, burst: 10, credits: undefined, batchMax: 1, scans: 1, inFlight: 16 },
  tokens: -90,
};
const envelopeOf = (text: string) => readEnvelope(Buffer.from(text), 100);
const CALL = envelopeOf('{"jsonrpc":"2.0","id":18446744073709551615,"method":"getSlot"}');

/** Every refusal: status, code, message, and the headers beside the content type. */
const ROWS: readonly (readonly [Refusal, number, number, string, Readonly<Record<string, string>>])[] = [
  [{ kind: 'missing-key' }, 401, -401, 'Missing API key', { 'www-authenticate': 'Bearer' }],
  [
    { kind: 'invalid-key' },
    401,
    -401,
    'Invalid or inactive API key',
    {
      'www-authenticate': 'Bearer error="invalid_token", error_description="Invalid or inactive API key"',
    },
  ],
  [
    { kind: 'maybe-sent' },
    504,
    -504,
    'The transaction may have been sent; ask for its status before sending it again',
    {},
  ],
  [
    { kind: 'over-rate', rate: RATE, waitMs: 18_200 },
    429,
    -429,
    'Rate limit exceeded',
    { 'retry-after': '19', ratelimit: '"calls";r=0;t=20', 'ratelimit-policy': '"calls";q=10;w=2' },
  ],
  [
    { kind: 'over-rate', rate: { ...RATE, tokens: 0.9 }, waitMs: 20 },
    429,
    -429,
    'Rate limit exceeded',
    {
      'retry-after': '1',
      ratelimit: '"calls";r=0;t=2',
      'ratelimit-policy': '"calls";q=10;w=2',
    },
  ],
  [
    { kind: 'out-of-credits', rate: RATE, creditsLeft: 9 },
    402,
    -402,
    'Trial credits used up',
    { ratelimit: '"calls";r=0;t=20', 'ratelimit-policy': '"calls";q=10;w=2', 'x-credits-left': '9' },
  ],
  [
    { kind: 'over-scans', max: 4 },
    429,
    -429,
    'Rate limit exceeded: at most 4 scans at once',
    { 'retry-after': '1' },
  ],
  [{ kind: 'over-calls', max: 16 }, 429, -429, 'Too many calls at once: at most 16', { 'retry-after': '1' }],
  [{ kind: 'check-unavailable' }, 503, -503, 'Key check unavailable', { 'retry-after': '1' }],
  [{ kind: 'credits-unavailable' }, 503, -503, 'Credit check unavailable', { 'retry-after': '1' }],
  [{ kind: 'no-backend' }, 503, -503, 'No backend available', { 'retry-after': '1' }],
  [{ kind: 'malformed', code: -32700, reason: 'Parse error' }, 400, -32700, 'Parse error', {}],
  [
    { kind: 'malformed', code: -32600, reason: 'Batch too large; max 20' },
    400,
    -32600,
    'Batch too large; max 20',
    {},
  ],
  [{ kind: 'body-too-large', isEndless: false }, 413, -32600, 'Request body too large', {}],
  [
    { kind: 'body-too-large', isEndless: true },
    413,
    -32600,
    'Request body too large',
    { connection: 'close' },
  ],
  [
    { kind: 'not-json', reason: 'Content-Type must be application/json' },
    415,
    -32600,
    'Content-Type must be application/json',
    {},
  ],
  [
    { kind: 'not-post', reason: 'Only POST is allowed' },
    405,
    -32600,
    'Only POST is allowed',
    { allow: 'OPTIONS, POST' },
  ],
];

describe('every refusal', () => {
  test.each(ROWS)('%j is %p with the code %p', async (refusal, status, code, message, headers) => {
    const answer = refuse(refusal, CALL);
    expect(answer.status).toBe(status);
    expect(await answer.text()).toBe(
      `{"jsonrpc":"2.0","error":{"code":${code},"message":"${message}"},"id":18446744073709551615}`,
    );
    expect(Object.fromEntries(answer.headers)).toEqual({
      'content-type': 'application/json; charset=utf-8',
      ...headers,
    });
  });

  test("whose code is the gateway's own is minus the status", () => {
    for (const [, status, code] of ROWS) if (code > -1_000) expect(code).toBe(-status);
  });
});

describe('the ids of a refusal', () => {
  const error = (id: string) =>
    `{"jsonrpc":"2.0","error":{"code":-401,"message":"Missing API key"},"id":${id}}`;
  const call = (id: string) => `{"jsonrpc":"2.0","id":${id},"method":"getSlot"}`;
  const NOTIFICATION = '{"jsonrpc":"2.0","method":"getSlot"}';

  test.each([
    ['a call', call('"\\u0061"'), error('"\\u0061"')],
    ['a call with id null', call('null'), error('null')],
    ['an invalid request with an id', '{"jsonrpc":"1.0","id":7,"method":"m"}', error('7')],
    ['an invalid request without one', '{}', error('null')],
    ['a notification', NOTIFICATION, error('null')],
    ['a body that is not JSON', '{', error('null')],
    ['an empty batch', '[]', error('null')],
    ['a batch of one', `[${call('1')}]`, `[${error('1')}]`],
    [
      'a batch',
      `[${call('1')},${call('"1"')},${call('1')}]`,
      `[${error('1')},${error('"1"')},${error('1')}]`,
    ],
    [
      'a batch with notifications, which are left out',
      `[${NOTIFICATION},${call('1')},${NOTIFICATION}]`,
      `[${error('1')}]`,
    ],
    [
      'a batch with invalid elements',
      `[1,${call('1')},{"id":-1}]`,
      `[${error('null')},${error('1')},${error('null')}]`,
    ],
    ['a batch of notifications alone', `[${NOTIFICATION},${NOTIFICATION}]`, error('null')],
  ])('for %s', async (_, body, text) => {
    expect(await refuse({ kind: 'missing-key' }, envelopeOf(body)).text()).toBe(text);
  });

  test('before the body was read is null', async () => {
    expect(await refuse({ kind: 'missing-key' }).text()).toBe(error('null'));
  });
});

describe('the fields of a rate', () => {
  const state = (burst: number, rps: number, tokens = burst) => ({
    plan: { rps, burst, credits: undefined, batchMax: 1, scans: 1, inFlight: 16 },
    tokens,
  });

  test.each([
    [10, 5, '"calls";q=10;w=2'],
    [200, 100, '"calls";q=200;w=2'],
    [1, 1_000, '"calls";q=1;w=1'],
    [1, 0.1, '"calls";q=1;w=10'],
    [10, 3, '"calls";q=10;w=4'],
  ])('a burst of %p at %p a second has the policy %s', (burst, rps, policy) => {
    expect(rateFields(state(burst, rps))['ratelimit-policy']).toBe(policy);
  });

  test.each([
    [10, '"calls";r=10;t=1'],
    [9.999, '"calls";r=9;t=1'],
    [5, '"calls";r=5;t=1'],
    [4.9, '"calls";r=4;t=2'],
    [0.999, '"calls";r=0;t=2'],
    [0, '"calls";r=0;t=2'],
    [-90, '"calls";r=0;t=20'],
  ])(
    '%p of 10 tokens at 5 a second leave %s: never more than can be called, never less than the time to a full bucket',
    (tokens, left) => {
      expect(rateFields(state(10, 5, tokens)).ratelimit).toBe(left);
    },
  );
});

describe('an error of ours', () => {
  const textOf = (code: number, message: string, id: string) =>
    new TextDecoder().decode(rpcError(code, message, new TextEncoder().encode(id)).bytes);

  test.each([['null'], ['18446744073709551615'], ['"\\u0031\\ud800é"'], ['""']])(
    'the id %s is echoed byte for byte',
    (id) => {
      expect(textOf(-429, 'm', id)).toEndWith(`"id":${id}}`);
    },
  );

  test('a message with quotes and controls stays in its string', () => {
    expect(JSON.parse(textOf(1, 'a"},"id":2,\n\u2028é', '3'))).toEqual({
      jsonrpc: '2.0',
      error: { code: 1, message: 'a"},"id":2,\n\u2028é' },
      id: 3,
    });
  });

  test('a result of our own has the same form', () => {
    const { bytes } = rpcResult('{"a":1}', new TextEncoder().encode('"\\u0031"'));
    expect(new TextDecoder().decode(bytes)).toBe('{"jsonrpc":"2.0","result":{"a":1},"id":"\\u0031"}');
  });
});

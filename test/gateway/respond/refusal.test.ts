import { describe, expect, test } from 'bun:test';
import { rateFields } from '../../../gateway/limits/charge.ts';
import { refuse } from '../../../gateway/respond/refusal.ts';
import { readAtOnce } from '../request/body.ts';

test.each([
  ['check-unavailable', 503, -503, 'Key check unavailable'],
  ['credits-unavailable', 503, -503, 'Credit check unavailable'],
  ['no-backend', 503, -503, 'No backend available'],
  ['bodies-full', 503, -503, 'Too many request bodies under way'],
  ['body-too-large', 413, -32600, 'Request body too large'],
] as const)(
  'a request that is refused for %s gets HTTP %i, %i and "%s" (§2.5 503, §2.5 413)',
  (kind, status, code, message) => {
    const {
      status: said,
      fields,
      body,
    } = refuse({ kind }, readAtOnce('{"jsonrpc":"2.0","id":7,"method":"a"}'));
    expect([said, JSON.parse(String(body))]).toEqual([
      status,
      { jsonrpc: '2.0', error: { code, message }, id: 7 },
    ]);
    expect(fields['retry-after']).toBe(status === 503 ? '1' : undefined);
  },
);

describe('the ids of a refusal', () => {
  const error = (id: string) =>
    `{"jsonrpc":"2.0","error":{"code":-401,"message":"Missing API key"},"id":${id}}`;
  const call = (id: string) => `{"jsonrpc":"2.0","id":${id},"method":"getSlot"}`;
  const NOTIFICATION = '{"jsonrpc":"2.0","method":"getSlot"}';

  test.each([
    ['a call', call('"\\u0061"'), error('"\\u0061"')],
    ['a notification', NOTIFICATION, error('null')],
    ['a body that is not JSON', '{', error('null')],
    ['an empty batch', '[]', error('null')],
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
    expect(String(refuse({ kind: 'missing-key' }, readAtOnce(body)).body)).toBe(text);
  });
});

describe('the fields of a rate', () => {
  const state = (burst: number, rps: number, tokens = burst) => ({
    plan: { rps, burst, credits: undefined, batchMax: 1, scans: 1, inFlight: 16 },
    tokens,
  });

  test('a burst that is filled within a second has a policy of one', () => {
    expect(rateFields(state(1, 1_000))['ratelimit-policy']).toBe('"calls";q=1;w=1');
  });

  test.each([
    [10, '"calls";r=10;t=1'],
    [4.9, '"calls";r=4;t=2'],
    [-90, '"calls";r=0;t=20'],
  ])(
    '%p of 10 tokens at 5 a second leave %s: no more than can be called, no sooner than the bucket is full',
    (tokens, left) => {
      expect(rateFields(state(10, 5, tokens)).ratelimit).toBe(left);
    },
  );
});

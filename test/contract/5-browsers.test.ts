import { describe, expect, test } from 'bun:test';
import { startBackend, streamed } from '../fakes/backend.ts';
import { startGateway } from '../started/gateway.ts';
import { shared } from '../started/shared.ts';

const CALL = { jsonrpc: '2.0', id: 1, method: 'getSlot' };
const ORIGIN = { origin: 'https://app.example' };

const backend = shared(startBackend());
const gateway = shared(
  await startGateway({
    backends: [{ name: 'a', url: backend.url }],
    plans: { slow: { rps: 0.001, burst: 1 } },
  }),
);

const isOpen = ({ headers }: Response) => [
  headers.get('access-control-allow-origin'),
  headers.get('access-control-allow-credentials'),
  headers.get('access-control-expose-headers')?.split(', ').includes('retry-after'),
];

describe('a page of any origin may use the RPC endpoint, with its key and without credentials', () => {
  test('the preflight needs no key and allows the headers that SDKs send', async () => {
    const answer = await fetch(gateway.url, {
      method: 'OPTIONS',
      headers: {
        ...ORIGIN,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'content-type,solana-client,x-token',
      },
    });
    expect(answer.status).toBe(204);
    expect(answer.headers.get('access-control-allow-origin')).toBe('*');
    expect(answer.headers.get('access-control-allow-headers')).toBe('content-type,solana-client,x-token');
    expect(answer.headers.get('access-control-allow-methods')).toBe('OPTIONS, POST');
    expect(answer.headers.get('access-control-allow-credentials')).toBeNull();
    expect(answer.headers.get('access-control-max-age')).toBe('86400');
  });

  test.each<[string, unknown, () => string | undefined, number]>([
    ['an answer', CALL, () => gateway.key(), 200],
    ['a batch', [CALL, CALL], () => gateway.key(), 200],
    ['a refusal without a key', CALL, () => undefined, 401],
    ['a refusal of the body', '{', () => gateway.key(), 400],
    ['a trial without credits', CALL, () => gateway.key('trial', 0), 402],
  ])('%s can be read by it', async (_name, body, key, status) => {
    const answer = await gateway.post(body, key(), { headers: ORIGIN });
    expect([answer.status, isOpen(answer)]).toEqual([status, ['*', null, true]]);
  });

  test('above the rate it can read when to come back', async () => {
    const key = gateway.key('slow');
    await gateway.post(CALL, key, { headers: ORIGIN });
    const refused = await gateway.post(CALL, key, { headers: ORIGIN });
    expect([refused.status, isOpen(refused)]).toEqual([429, ['*', null, true]]);
  });

  test('a streamed answer is untouched by it', async () => {
    backend.script((seen) => streamed(seen, 3));
    const answer = await gateway.post(CALL, gateway.key(), { headers: ORIGIN });
    expect(isOpen(answer)).toEqual(['*', null, true]);
    expect(JSON.parse(await answer.text()).result.length).toBe(3 << 20);
    backend.script(() => undefined);
  });

  test('a request without an origin gets none of these headers', async () => {
    expect(isOpen(await gateway.post(CALL, gateway.key()))).toEqual([null, null, undefined]);
  });
});

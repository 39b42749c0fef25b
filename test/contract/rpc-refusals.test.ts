import { describe, expect, test } from 'bun:test';
import { startBackend } from '../fakes/backend.ts';
import { createVirtualClock } from '../gateway/virtual-clock.ts';
import { startGateway } from '../started/gateway.ts';
import { shared } from '../started/shared.ts';

const CALL = { jsonrpc: '2.0', id: 1, method: 'getSlot' };
/** Identical calls of it do not share one at the backend. */
const UNSHARED = { ...CALL, method: 'getBlockHeight' };
const refusal = (code: number, message: string, id = '1') =>
  `{"jsonrpc":"2.0","error":{"code":${code},"message":"${message}"},"id":${id}}`;

const backend = shared(startBackend());
const ROWS = {
  backends: [{ name: 'a', url: backend.url }],
  gateway: { max_body_bytes: 4_096 },
  plans: { trial: { rps: 1_000, burst: 1_000 }, slow: { rps: 0.5, burst: 2 } },
};
const gateway = shared(await startGateway(ROWS));

describe('402: a trial whose credits are used up', () => {
  test('D10 with 50 calls in flight exactly as many pass as there are credits, and none reaches a backend unpaid (§2.4.2, §2.5 402)', async () => {
    const key = gateway.key('trial', 17);
    const before = backend.seen.length;
    const answers = await Promise.all(Array.from({ length: 50 }, () => gateway.post(UNSHARED, key)));
    expect(answers.filter(({ status }) => status === 200).length).toBe(17);
    expect(answers.filter(({ status }) => status === 402).length).toBe(33);
    expect(backend.seen.length - before).toBe(17);
    for (const { headers } of answers) expect(Number(headers.get('x-credits-left'))).toBeLessThan(17);
  });

  test('the body is a JSON-RPC error with the id verbatim', async () => {
    const answer = await gateway.post(
      '{"jsonrpc":"2.0","id":18446744073709551615,"method":"getSlot"}',
      gateway.key('trial', 0),
    );
    expect(answer.status).toBe(402);
    expect(await answer.text()).toBe(refusal(-402, 'Trial credits used up', '18446744073709551615'));
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(answer.headers.has('retry-after')).toBe(false);
  });

  test('D10 credits added while the gateway runs are noticed', async () => {
    const key = gateway.key('trial', 0);
    expect((await gateway.post(CALL, key)).status).toBe(402);
    gateway.accounts.run(
      'UPDATE accounts SET credits_granted = 1 WHERE id = (SELECT account_id FROM keys WHERE last4 = ?)',
      [key.slice(-4)],
    );
    gateway.maintain();
    const started = performance.now();
    while ((await gateway.post(CALL, key)).status !== 200) {
      if (performance.now() - started > 1_000) throw new Error('the credits are not noticed after a second');
    }
    expect((await gateway.post(CALL, key)).status).toBe(402);
  });
});

describe("429: above the plan's rate", () => {
  test('C7 the body, the code and the headers are exact, and waiting Retry-After is enough (§2.5 429)', async () => {
    const { clock, advance } = createVirtualClock();
    await using timed = await startGateway(ROWS, clock);
    const key = timed.key('slow');
    expect((await timed.post([CALL, CALL], key)).status).toBe(200);
    const refused = await timed.post(CALL, key);
    expect(refused.status).toBe(429);
    expect(await refused.text()).toBe(refusal(-429, 'Rate limit exceeded'));
    expect(refused.headers.get('retry-after')).toBe('2');
    expect(refused.headers.get('ratelimit-policy')).toBe('"calls";q=2;w=4');
    expect(refused.headers.get('ratelimit')).toBe('"calls";r=0;t=4');
    advance(1_999);
    expect((await timed.post(CALL, key)).status).toBe(429);
    advance(1);
    expect((await timed.post(CALL, key)).status).toBe(200);
  });

  test('C4 the keys of one account share its rate (§1.1)', async () => {
    const [first, second] = [gateway.key('slow'), gateway.key('slow')];
    gateway.accounts.run(
      `UPDATE keys SET account_id = (SELECT account_id FROM keys WHERE last4 = ?) WHERE last4 = ?`,
      [first.slice(-4), second.slice(-4)],
    );
    expect((await gateway.post([CALL, CALL], first)).status).toBe(200);
    expect((await gateway.post(CALL, second)).status).toBe(429);
  });
});

describe('what is not a request', () => {
  test.each<[string, RequestInit, number, string]>([
    ['a number', { body: '7' }, 400, 'Invalid request: not an object'],
    ['GET', { method: 'GET' }, 405, 'Only POST is allowed'],
    ['PUT', { method: 'PUT', body: '{}' }, 405, 'Only POST is allowed'],
  ])('%s', async (_name, init, status, message) => {
    const headers = { 'content-type': 'application/json', 'x-token': gateway.key() };
    const answer = await fetch(gateway.url, { method: 'POST', ...init, headers });
    expect([answer.status, await answer.text()]).toEqual([status, refusal(-32600, message, 'null')]);
  });

  test('a WebSocket upgrade is refused with 405 and says so (§2, §2.5 405)', async () => {
    const answer = await fetch(gateway.url, { headers: { upgrade: 'websocket', connection: 'upgrade' } });
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'OPTIONS, POST']);
    expect(await answer.text()).toContain('WebSocket is not offered');
  });
});

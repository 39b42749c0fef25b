import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { startBackend } from '../fakes/backend.ts';
import { startGateway } from '../started/gateway.ts';

const CALL = { jsonrpc: '2.0', id: 1, method: 'getSlot' };
/** Identical calls of it do not share one at the backend. */
const UNSHARED = { ...CALL, method: 'getBlockHeight' };
const refusal = (code: number, message: string, id = '1') =>
  `{"jsonrpc":"2.0","error":{"code":${code},"message":"${message}"},"id":${id}}`;

let backend: ReturnType<typeof startBackend>;
let gateway: Awaited<ReturnType<typeof startGateway>>;
beforeAll(async () => {
  backend = startBackend();
  gateway = await startGateway({
    backends: [{ name: 'a', url: backend.url }],
    gateway: { max_body_bytes: 4_096 },
    plans: { trial: { rps: 1_000, burst: 1_000 }, slow: { rps: 0.5, burst: 2 } },
  });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await backend[Symbol.asyncDispose]();
});

describe('402: a trial whose credits are used up (spec 7.2)', () => {
  test('D10 with 50 calls in flight exactly as many pass as there are credits, and none reaches a backend unpaid', async () => {
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

  test('a batch that costs one credit too many is refused whole and takes nothing', async () => {
    const key = gateway.key('trial', 50);
    const batch = [
      { ...CALL, method: 'getProgramAccounts' },
      { ...CALL, id: 'b' },
    ];
    const answer = await gateway.post(batch, key);
    expect(answer.status).toBe(402);
    expect(await answer.text()).toBe(
      `[${refusal(-402, 'Trial credits used up')},${refusal(-402, 'Trial credits used up', '"b"')}]`,
    );
    const scan = await gateway.post({ ...CALL, method: 'getProgramAccounts' }, key);
    expect([scan.status, scan.headers.get('x-credits-left')]).toEqual([200, '0']);
  });

  test('D10 credits added while the gateway runs are noticed', async () => {
    const key = gateway.key('trial', 0);
    expect((await gateway.post(CALL, key)).status).toBe(402);
    gateway.accounts.run(
      'UPDATE accounts SET credits_granted = 1 WHERE id = (SELECT account_id FROM keys WHERE last4 = ?)',
      [key.slice(-4)],
    );
    const stop = new AbortController();
    const tending = gateway.gateway.runMaintenance(() => undefined, stop.signal);
    const started = performance.now();
    while ((await gateway.post(CALL, key)).status !== 200) {
      if (performance.now() - started > 1_000) throw new Error('the credits are not noticed after a second');
    }
    stop.abort();
    await tending;
    expect((await gateway.post(CALL, key)).status).toBe(402);
  });
});

describe("429: above the plan's rate (spec 7.2, 8)", () => {
  test('C7 the body, the code and the headers are exact, and waiting Retry-After is enough', async () => {
    const key = gateway.key('slow');
    expect((await gateway.post([CALL, CALL], key)).status).toBe(200);
    const refused = await gateway.post(CALL, key);
    expect(refused.status).toBe(429);
    expect(await refused.text()).toBe(refusal(-429, 'Rate limit exceeded'));
    expect(refused.headers.get('retry-after')).toBe('2');
    expect(refused.headers.get('ratelimit-policy')).toBe('"calls";q=2;w=4');
    expect(refused.headers.get('ratelimit')).toBe('"calls";r=0;t=4');
    await Bun.sleep(1_000 * Number(refused.headers.get('retry-after'))); // the promise under test is about real time
    expect((await gateway.post(CALL, key)).status).toBe(200);
  });

  test('every call of a refused batch gets its own -429 object', async () => {
    const key = gateway.key('slow');
    await gateway.post([CALL, CALL], key);
    const answer = await gateway.post(
      [CALL, { jsonrpc: '2.0', method: 'getSlot' }, { ...CALL, id: null }],
      key,
    );
    expect(answer.status).toBe(429);
    expect(await answer.text()).toBe(
      `[${refusal(-429, 'Rate limit exceeded')},${refusal(-429, 'Rate limit exceeded', 'null')}]`,
    );
  });

  test('a refused call takes no credits', async () => {
    await using strict = await startGateway({
      backends: [{ name: 'a', url: backend.url }],
      plans: { trial: { rps: 0.001, burst: 1 } },
    });
    const key = strict.key('trial', 10);
    expect((await strict.post(CALL, key)).headers.get('x-credits-left')).toBe('9');
    for (let i = 0; i < 5; i++) expect((await strict.post(CALL, key)).status).toBe(429);
    expect(strict.ledger.query('SELECT charged, refunded FROM spent').all()).toEqual([
      { charged: 1, refunded: 0 },
    ]);
  });

  test('C4 the keys of one account share its rate', async () => {
    const [first, second] = [gateway.key('slow'), gateway.key('slow')];
    gateway.accounts.run(
      `UPDATE keys SET account_id = (SELECT account_id FROM keys WHERE last4 = ?) WHERE last4 = ?`,
      [first.slice(-4), second.slice(-4)],
    );
    expect((await gateway.post([CALL, CALL], first)).status).toBe(200);
    expect((await gateway.post(CALL, second)).status).toBe(429);
  });
});

test('503 -503 with Retry-After when no backend answers, and the credits come back', async () => {
  await using lonely = await startGateway({ backends: [{ name: 'dead', url: 'http://127.0.0.1:1' }] });
  const key = lonely.key('trial', 5);
  const answer = await lonely.post(CALL, key);
  expect(answer.status).toBe(503);
  expect(answer.headers.get('retry-after')).toBe('1');
  expect(await answer.text()).toBe(refusal(-503, 'No backend available'));
  const batch = await lonely.post([CALL, { ...CALL, id: 'b' }], key);
  expect([batch.status, await batch.text()]).toEqual([
    200,
    `[${refusal(-503, 'No backend available')},${refusal(-503, 'No backend available', '"b"')}]`,
  ]);
  lonely.gateway.close();
  expect(lonely.ledger.query('SELECT charged, refunded FROM spent').get()).toEqual({
    charged: 3,
    refunded: 3,
  });
});

describe('what is not a request (DESIGN 3.2)', () => {
  const LONG = JSON.stringify({ ...CALL, params: ['x'.repeat(5_000)] });
  test.each<[string, string | undefined, RequestInit, number, string]>([
    ['not JSON', '{"jsonrpc"', {}, 400, refusal(-32700, 'Parse error', 'null')],
    ['an empty body', '', {}, 400, refusal(-32700, 'Parse error', 'null')],
    ['an empty batch', '[]', {}, 400, refusal(-32600, 'Invalid request: empty batch', 'null')],
    ['a number', '7', {}, 400, refusal(-32600, 'Invalid request: not an object', 'null')],
    [
      'a fractional id',
      '{"jsonrpc":"2.0","id":1.5,"method":"getSlot"}',
      {},
      400,
      refusal(-32600, 'Invalid request: id must be a string, an unsigned integer or null', 'null'),
    ],
    [
      'two methods',
      '{"jsonrpc":"2.0","id":9,"method":"getSlot","\\u006dethod":"getBlock"}',
      {},
      400,
      refusal(-32600, 'Invalid request: two members named method', '9'),
    ],
    [
      'a batch above max_batch',
      `[${Array(501).fill('1').join()}]`,
      {},
      400,
      `[${Array(501)
        .fill(refusal(-32600, 'Batch too large; max 500', 'null'))
        .join()}]`,
    ],
    ['a long body', LONG, {}, 413, refusal(-32600, 'Request body too large', 'null')],
    [
      'a body far above the limit',
      ' '.repeat(3_000_000),
      {},
      413,
      refusal(-32600, 'Request body too large', 'null'),
    ],
    [
      'plain text',
      '{}',
      { headers: { 'content-type': 'text/plain' } },
      415,
      refusal(-32600, 'Content-Type must be application/json', 'null'),
    ],
    [
      'a compressed body',
      'x',
      { headers: { 'content-encoding': 'gzip' } },
      415,
      refusal(-32600, 'A compressed request body is not accepted', 'null'),
    ],
    ['GET', undefined, { method: 'GET' }, 405, refusal(-32600, 'Only POST is allowed', 'null')],
    ['PUT', '{}', { method: 'PUT' }, 405, refusal(-32600, 'Only POST is allowed', 'null')],
  ])('%s', async (_name, body, init, status, text) => {
    const headers = { 'content-type': 'application/json', 'x-token': gateway.key(), ...init.headers };
    const answer = await fetch(gateway.url, {
      method: 'POST',
      ...(body === undefined ? {} : { body }),
      ...init,
      headers,
    });
    expect([answer.status, await answer.text()]).toEqual([status, text]);
  });

  test('a WebSocket upgrade is refused with 405 and says so', async () => {
    const answer = await fetch(gateway.url, { headers: { upgrade: 'websocket', connection: 'upgrade' } });
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'OPTIONS, POST']);
    expect(await answer.text()).toContain('WebSocket is not offered');
  });

  test.each(['application/json; charset=utf-8', 'APPLICATION/JSON', 'application/json;charset=UTF-8'])(
    '%s is accepted',
    async (type) => {
      const answer = await gateway.post(CALL, gateway.key(), { headers: { 'content-type': type } });
      expect(answer.status).toBe(200);
    },
  );

  test('another path is 404 and says where the endpoint is', async () => {
    const answer = await gateway.post(CALL, gateway.key(), { path: '/health/x' });
    expect(answer.status).toBe(404);
    expect(await answer.text()).toContain('POST /');
  });

  test('refusals cost nothing', async () => {
    const key = gateway.key('trial', 3);
    for (const body of ['{', '[]', '{"jsonrpc":"2.0","id":1.5,"method":"getSlot"}'])
      await gateway.post(body, key);
    expect((await gateway.post(CALL, key)).headers.get('x-credits-left')).toBe('2');
  });
});

test('a request that no backend answered takes no rate either: its Retry-After is true', async () => {
  await using lonely = await startGateway({
    backends: [{ name: 'dead', url: 'http://127.0.0.1:1' }],
    plans: { slow: { rps: 0.001, burst: 1 } },
  });
  const key = lonely.key('slow');
  for (let i = 0; i < 3; i++) expect((await lonely.post(CALL, key)).status).toBe(503);
});

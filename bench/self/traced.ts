import { expect, test } from 'bun:test';
import { startGateway } from '../../test/started/gateway.ts';

/** Calls before those that count: caches are filled, connections kept, rare first times over. */
const WARM_UP = 200;
const LIMIT_MS = 60_000;

/** What trace.ts has coverage count, one of these at a time by its name: a gateway in this process, and so many requests to it. */
test.each([1, 20].flatMap((batch) => [0, 400].map((requests) => [batch, requests] as const)))(
  'batch %i, requests %i',
  run,
  LIMIT_MS,
);

async function run(batch: number, requests: number) {
  using backend = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: answer });
  await using gateway = await startGateway({
    backends: [{ name: 'one', url: backend.url.href }],
    plans: { bench: { rps: 10_000_000, burst: 10_000_000 } },
  });
  const key = gateway.key('bench');
  for (let i = 0; i < WARM_UP + requests; i++) {
    const body = batch === 1 ? call(i) : Array.from({ length: batch }, (_, j) => call(i * batch + j));
    const response = await gateway.post(body, key);
    expect(await response.text()).not.toContain('"error"');
    expect(response.status).toBe(200);
  }
}

function call(id: number) {
  const account = `${String(id).padStart(43, '1').replaceAll('0', 'z')}x`;
  return { jsonrpc: '2.0', id, method: 'getAccountInfo', params: [account, { encoding: 'base64' }] };
}

async function answer(request: Request): Promise<Response> {
  const body: unknown = await request.json();
  return Response.json(Array.isArray(body) ? body.map(answerTo) : answerTo(body));
}

function answerTo(call: unknown) {
  const { id, method } = call as { id: unknown; method: string }; // what the gateway sends
  const context = { apiVersion: '2.2.7', slot: 368_000_000 };
  const value = { data: ['', 'base64'], executable: false, lamports: 1, owner: '1', rentEpoch: 0, space: 0 };
  if (method === 'getAccountInfo') return { jsonrpc: '2.0', result: { context, value }, id };
  return { jsonrpc: '2.0', result: method === 'getHealth' ? 'ok' : 368_000_000, id };
}

import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { result, startBackend } from '../fakes/backend.ts';
import { startGateway } from '../started/gateway.ts';

/** A gateway on one backend that has finalized slot 1,000. */
let backend: ReturnType<typeof startBackend>;
let gateway: Awaited<ReturnType<typeof startGateway>>;
let key: string;

async function start(config: object = {}): Promise<void> {
  gateway = await startGateway({ gateway: config, backends: [{ name: 'a', url: backend.url }] });
  key = gateway.key('trial', 1_000_000);
  await gateway.gateway.probeAll(new AbortController().signal);
}
beforeEach(async () => {
  backend = startBackend();
  backend.probed((call) => (call.method === 'getSlot' ? result(call, '1000') : undefined));
  await start();
});
afterEach(async () => {
  await gateway[Symbol.asyncDispose]();
  await backend[Symbol.asyncDispose]();
});

async function ask(id: string, method: string, params: string) {
  const body = `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${params}}`;
  const response = await gateway.post(body, key);
  return { response, text: await response.text() };
}

/** What the account has used, a row for each method. */
function used() {
  gateway.gateway.flush();
  const sums =
    'sum(calls) AS calls, sum(credits - refunded) AS credits, sum(errors) AS errors, sum(bytes_out) AS bytes';
  return gateway.ledger.query<object, []>(`SELECT method, ${sums} FROM usage_hours GROUP BY method`).all();
}

describe('a finalized block', () => {
  test('is answered from memory for the same price and usage (§2.3.8)', async () => {
    backend.script((call) => result(call, '{"blockhash":"h"}'));
    const first = await ask('"me"', 'getBlock', '[5,{"rewards":false}]');
    const [once = {}] = used();
    const second = await ask('"me"', 'getBlock', '[5,{"rewards":false}]');
    expect([second.text, backend.seen.length]).toEqual([first.text, 1]);
    const doubled = Object.entries(once).map(([name, n]) => [name, typeof n === 'number' ? 2 * n : n]);
    expect(used()).toEqual([Object.fromEntries(doubled)]);
    const field = ({ response }: typeof first, name: string) => Number(response.headers.get(name));
    expect(field(second, 'x-credits-cost')).toBe(field(first, 'x-credits-cost'));
    const spent = field(first, 'x-credits-left') - field(second, 'x-credits-left');
    expect(spent).toBe(field(first, 'x-credits-cost'));
  });
});

test('with gateway.cache_bytes = 0 nothing is kept', async () => {
  await gateway[Symbol.asyncDispose]();
  await start({ cache_bytes: 0 });
  for (let i = 0; i < 2; i++) await ask('1', 'getGenesisHash', '[]');
  expect(backend.seen.length).toBe(2);
  expect(await gateway.gateway.metrics.text()).not.toContain('sluice_gateway_cache');
});

test('the metrics show the memory of kept answers, hits and misses', async () => {
  for (let i = 0; i < 3; i++) await ask('1', 'getGenesisHash', '[]');
  const reads = ['hit', 'miss'].map((outcome) => gateway.metric(`cache_reads_total{outcome="${outcome}"}`));
  expect(await Promise.all(reads)).toEqual([2, 1]);
  expect(await gateway.metric('cache_bytes')).toBeGreaterThan(100);
});

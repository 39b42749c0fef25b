import { describe, expect, test } from 'bun:test';
import { serveLocalnet } from '../../localnet/http/server.ts';
import { addressNumber, list, startChain } from './harness.ts';

const RANGE = '[449500000,450000000]';
const TARGET = addressNumber(5);
const AIRDROP_LAMPORTS = 1_000_000_000n;
const call = (id: number, method: string, params: string) =>
  `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${params}}`;
const airdrop = (id: number) => call(id, 'requestAirdrop', `["${TARGET}",${AIRDROP_LAMPORTS}]`);

async function readerOf(response: Response) {
  const reader = (response.body ?? new ReadableStream<Uint8Array>()).getReader();
  await reader.read();
  return reader;
}

describe('a batch is carried out as it is read', () => {
  test('so that a slow reader of many long answers costs neither memory nor other callers', async () => {
    using net = await startChain();
    net.advance(10);
    const onFault = (cause: unknown) => net.faults.push(cause);
    const server = serveLocalnet({ chain: net.chain, hostname: '127.0.0.1', port: 0, onFault });
    const post = (body: string) =>
      fetch(server.url, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
    try {
      Bun.gc(true);
      const before = process.memoryUsage.rss();
      const calls = Array.from({ length: 40 }, (_, id) => call(id, 'getBlocks', RANGE));
      const reader = await readerOf(await post(`[${calls.join(',')}]`));
      expect(await (await post(call(1, 'getHealth', '[]'))).text()).toContain('"ok"');
      // Long enough for a server that ignores backpressure to make all of it, 200 MB.
      await Bun.sleep(300);
      expect(process.memoryUsage.rss() - before).toBeLessThan(60_000_000);
      await reader.cancel();
      expect(net.faults).toEqual([]);
    } finally {
      await server.stop(true);
    }
  });

  test('an element only when the one before was read', async () => {
    using net = await startChain();
    net.advance(10);
    const response = await net.request(`[${call(1, 'getBlocks', RANGE)},${airdrop(2)}]`);
    const reader = await readerOf(response);
    expect(await net.balance(TARGET)).toBe(0n);
    for (let next = await reader.read(); !next.done;) next = await reader.read();
    expect(await net.balance(TARGET)).toBe(AIRDROP_LAMPORTS);
  });

  test('and no further when its reader leaves', async () => {
    using net = await startChain();
    net.advance(10);
    const reader = await readerOf(await net.request(`[${call(1, 'getBlocks', RANGE)},${airdrop(2)}]`));
    await reader.cancel();
    for (let turns = 0; turns < 200; turns += 1) await new Promise(setImmediate);
    expect(await net.balance(TARGET)).toBe(0n);
  });

  test('and not at all when an element behind is unreadable', async () => {
    using net = await startChain();
    net.advance(10);
    expect(await net.post(`[${airdrop(1)},7]`)).toContain('"Parse error"');
    expect(await net.balance(TARGET)).toBe(0n);
  });

  test('in order, each answer as it is alone, notifications and faults between', async () => {
    using net = await startChain();
    net.advance(10);
    const elements = [
      call(1, 'getBlocks', '[1,100000]'),
      call(2, 'noSuchMethod', '[]'),
      call(3, 'getBlocksWithLimit', '[7,4096]'),
      '{}',
      call(4, 'getBlocks', '[5,5]'),
      call(5, 'getBlocks', '["x"]'),
      call(6, 'getSlot', '[]'),
    ];
    const notification = '{"jsonrpc":"2.0","method":"getSlot"}';
    const alone: string[] = [];
    for (const element of elements) alone.push((await net.post(element)).trimEnd());
    const batch = await net.post(`[${notification},${elements.join(`,${notification},`)}]`);
    expect(batch).toBe(`[${alone.join(',')}]\n`);
  });
});

describe('lists of slots', () => {
  test.each([1n, 4_095n, 4_096n, 4_097n, 8_192n, 8_193n])('of %i are whole', async (length) => {
    using net = await startChain();
    const slots = list(await net.result('getBlocksWithLimit', 11n, length));
    expect(slots).toEqual(Array.from({ length: Number(length) }, (_, index) => 11n + BigInt(index)));
    expect(await net.result('getBlocks', 11n, 10n + length)).toEqual(slots);
  });
});

import { describe, expect, test } from 'bun:test';
import { serveLocalnet } from '../../localnet/http/server.ts';
import {
  addressNumber,
  alice,
  bob,
  object,
  ownedAccount,
  startChain,
  systemAccount,
  list,
  RICH,
} from './harness.ts';
import { parseJson } from '../../localnet/json/value.ts';

const OWNER = addressNumber(1_000_000);
const COUNT = 3_000;
const DATA_BYTES = 20_000;
/** About 80 MB of JSON over one shared 20 kB of data. */
const data = new Uint8Array(DATA_BYTES).fill(3);
const accounts = Array.from(
  { length: COUNT },
  (_, n) => [addressNumber(n), ownedAccount(OWNER, data)] as const,
);
const SCAN = `{"jsonrpc":"2.0","id":1,"method":"getProgramAccounts","params":["${OWNER}",{"encoding":"base64","commitment":"processed"}]}`;

const GROWN_MAX = 30_000_000;

describe('a scan is streamed', () => {
  test('without a slow reader making the process hold it', async () => {
    using net = await startChain({ accounts });
    const onFault = (cause: unknown) => net.faults.push(cause);
    const server = serveLocalnet({ chain: net.chain, hostname: '127.0.0.1', port: 0, onFault });
    try {
      const begin = async () => {
        const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: SCAN };
        const { body } = await fetch(server.url, init);
        const begun = (body ?? new ReadableStream<Uint8Array>()).getReader();
        await begun.read();
        Bun.gc(true);
        const before = process.memoryUsage.rss();
        // Long enough for a server that ignores backpressure to make all of it.
        await Bun.sleep(300);
        return { reader: begun, grown: process.memoryUsage.rss() - before };
      };
      // Other work of this process can only add to what is seen: the least of a few looks is the reader's own.
      let { reader, grown } = await begin();
      for (let tries = 1; tries < 4 && grown >= GROWN_MAX; tries++) {
        await reader.cancel();
        ({ reader, grown } = await begin());
      }
      expect(grown).toBeLessThan(GROWN_MAX);
      let total = 0;
      for (let next = await reader.read(); next.value !== undefined; next = await reader.read())
        total += next.value.length;
      expect(total).toBeGreaterThan(COUNT * DATA_BYTES);
      expect(net.faults).toEqual([]);
    } finally {
      await server.stop(true);
    }
  });

  test('and shows one moment, whatever happens while it is read', async () => {
    using net = await startChain({
      accounts: [...RICH, [bob.address, systemAccount(1_005_000n)], ...accounts],
    });
    net.advance(10);
    const body = `{"jsonrpc":"2.0","id":1,"method":"getProgramAccounts","params":["11111111111111111111111111111111",{"encoding":"base64","commitment":"processed"}]}`;
    const response = await net.request(body);
    // The answer is begun and not yet read: the chain goes on, beyond the lag.
    await net.transfer(alice, bob.address, 1_000_000n);
    await net.transfer(bob, addressNumber(77), 1_500_000n);
    net.advance(20);
    const { result } = object(parseJson(await response.text()));
    const rows = list(result).map(object);
    const balances = new Map(rows.map((row) => [row['pubkey'], object(row['account'])['lamports']]));
    expect(balances.get(bob.address)).toBe(1_005_000n);
    expect(balances.get(alice.address)).toBe(10_000_000_000n);
    expect(balances.has(addressNumber(77))).toBe(false);
  });

  test('and is released when the client goes away', async () => {
    using net = await startChain({ accounts });
    const response = await net.request(SCAN);
    const reader = (response.body ?? new ReadableStream<Uint8Array>()).getReader();
    await reader.read();
    await reader.cancel();
    net.advance(20);
    expect(net.chain.heldSlots()).toBeLessThanOrEqual(6);
  });
});

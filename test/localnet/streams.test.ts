import { describe, expect, test } from 'bun:test';
import { type AccountForm, encodeAccount } from '../../localnet/encode/account.ts';
import { serveLocalnet } from '../../localnet/http/server.ts';
import { parseJson, printJson, printJsonPieces } from '../../localnet/json/value.ts';
import {
  addressNumber,
  alice,
  bob,
  list,
  object,
  ownedAccount,
  RICH,
  startChain,
  systemAccount,
  text,
} from './harness.ts';

const OWNER = addressNumber(1_000_000);
const COUNT = 3_000;
const DATA_BYTES = 20_000;
/** About 80 MB of JSON over one shared 20 kB of data. */
const shared = new Uint8Array(DATA_BYTES).fill(3);
const accounts = Array.from(
  { length: COUNT },
  (_, n) => [addressNumber(n), ownedAccount(OWNER, shared)] as const,
);
const SCAN = `{"jsonrpc":"2.0","id":1,"method":"getProgramAccounts","params":["${OWNER}",{"encoding":"base64","commitment":"processed"}]}`;

const GROWN_MAX = 30_000_000;

/** A reader of an answer that has begun. */
async function readerOf(response: Response) {
  const reader = (response.body ?? new ReadableStream<Uint8Array>()).getReader();
  await reader.read();
  return reader;
}

describe('a scan is streamed', () => {
  test('without a slow reader making the process hold it', async () => {
    using net = await startChain({ accounts });
    const onFault = (cause: unknown) => net.faults.push(cause);
    const server = serveLocalnet({ chain: net.chain, hostname: '127.0.0.1', port: 0, onFault });
    try {
      const begin = async () => {
        const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: SCAN };
        const reader = await readerOf(await fetch(server.url, init));
        Bun.gc(true);
        const before = process.memoryUsage.rss();
        // Turns enough for a server that ignores backpressure to make all of it.
        for (let turns = 0; turns < 20_000; turns++) await new Promise(setImmediate);
        return { reader, grown: process.memoryUsage.rss() - before };
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

  test('from a view that is held as it was, however often an account changes after it', async () => {
    using net = await startChain({ accounts: [...RICH, [bob.address, systemAccount(1_005_000n)]] });
    net.advance(10);
    await net.transfer(alice, bob.address, 1_000_000n);
    const view = net.chain.viewAt('processed');
    const release = view.hold();
    for (const lamports of [2_000_000n, 3_000_000n]) await net.transfer(alice, bob.address, lamports);
    expect(net.chain.viewAt('confirmed').account(bob.address)?.lamports).toBe(1_005_000n);
    net.advance(20);
    expect(view.account(bob.address)?.lamports).toBe(2_005_000n);
    release();
    net.advance(1);
    expect(net.chain.heldSlots()).toBeLessThanOrEqual(6);
  });

  test('and is released when the client goes away', async () => {
    using net = await startChain({ accounts });
    await (await readerOf(await net.request(SCAN))).cancel();
    net.advance(20);
    expect(net.chain.heldSlots()).toBeLessThanOrEqual(6);
  });
});

const RANGE = '[449500000,450000000]';
const TARGET = addressNumber(5);
const AIRDROP_LAMPORTS = 1_000_000_000n;
const call = (id: number, method: string, params: string) =>
  `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${params}}`;
const airdrop = (id: number) => call(id, 'requestAirdrop', `["${TARGET}",${AIRDROP_LAMPORTS}]`);

async function startAdvanced() {
  const net = await startChain();
  net.advance(10);
  return net;
}

describe('a batch is carried out as it is read', () => {
  test.each([
    ['an element only when the one before was read', false, AIRDROP_LAMPORTS],
    ['and no further when its reader leaves', true, 0n],
  ])('%s', async (_, leaves, lamports) => {
    using net = await startAdvanced();
    const reader = await readerOf(await net.request(`[${call(1, 'getBlocks', RANGE)},${airdrop(2)}]`));
    expect(await net.balance(TARGET)).toBe(0n);
    if (leaves) await reader.cancel();
    else while (!(await reader.read()).done);
    for (let turns = 0; turns < 200; turns += 1) await new Promise(setImmediate);
    expect(await net.balance(TARGET)).toBe(lamports);
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

const BYTES = 10 * 1024 * 1024;
/** Incompressible, and different everywhere: a slice in the wrong place shows. */
function noise(length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  let state = 1;
  for (let at = 0; at < length; at += 1) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    bytes[at] = state >>> 24;
  }
  return bytes;
}
const data = noise(BYTES);
const PIECE_CHARACTERS_MAX = 128 * 1024;

describe('the text of a large account', () => {
  const forms: AccountForm[] = [
    { encoding: 'base64', slice: undefined },
    { encoding: 'base64+zstd', slice: undefined },
    { encoding: 'jsonParsed', slice: undefined },
    { encoding: 'base64', slice: { offset: 1n, length: 500_001n } },
  ];
  test.each(forms)('is made in small pieces that are the whole together: %p', (form) => {
    const json = encodeAccount(OWNER, ownedAccount(OWNER, data), form, () => undefined);
    const pieces = [...printJsonPieces(json)];
    expect(Math.max(...pieces.map((piece) => piece.length))).toBeLessThanOrEqual(PIECE_CHARACTERS_MAX);
    expect(pieces.join('') === printJson(json)).toBeTrue();
    const [encoded = null, encoding] = list(object(parseJson(pieces.join('')))['data']);
    const decoded = Buffer.from(text(encoded), 'base64');
    const plain = encoding === 'base64+zstd' ? Bun.zstdDecompressSync(decoded) : decoded;
    const expected = form.slice === undefined ? data : data.subarray(1, 500_002);
    expect(Buffer.compare(plain, expected)).toBe(0);
  });

  test.each([0, 1, 2, 3, 4_096, 4_097, 98_304, 98_305, 196_609])('of %i bytes is their base64', (length) => {
    const state = ownedAccount(OWNER, data.subarray(7, 7 + length));
    const json = encodeAccount(OWNER, state, { encoding: 'base64', slice: undefined }, () => undefined);
    expect(printJson(json)).toContain(`"data":["${Buffer.from(state.data).toString('base64')}","base64"]`);
  });
});

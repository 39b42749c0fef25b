import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { address, createSolanaRpc, type Signature } from '@solana/kit';
import { Connection, PublicKey } from '@solana/web3.js';
import { createHistory } from '../fakes/history.ts';
import { startHotNode } from '../fakes/hot-node.ts';
import { startOldFaithful } from '../fakes/old-faithful.ts';
import { startSuperbank } from '../fakes/superbank.ts';
import { startGateway } from '../started/gateway.ts';

const ADDRESS = '11111111111111111111111111111111';
const history = createHistory({
  seed: 7,
  slots: 90,
  epochSlots: 20,
  addresses: [ADDRESS, 'SysvarC1ock11111111111111111111111111111111'],
});
const rows = history.transactions.filter(({ addresses }) => addresses.includes(ADDRESS));
const signatures = rows.map(({ signature }) => signature);

const hot = startHotNode({ history, held: { floor: 60, top: 90 }, bigtable: undefined, strictCursors: true });
const faithful = startOldFaithful({ history, epochs: [0, 2], addressIndex: true });
const superbank = startSuperbank({
  history,
  held: { floor: 0, top: 70 },
  timesOut: false,
  emitHttpErrors: false,
});
let gateway: Awaited<ReturnType<typeof startGateway>>;
let url: string;
beforeAll(async () => {
  gateway = await startGateway({
    backends: [
      { name: 'live', url: hot.url },
      { name: 'epochs', url: faithful.url, profile: 'old-faithful' },
      { name: 'rows', url: superbank.url, profile: 'superbank' },
    ],
  });
  await gateway.gateway.probeAll(new AbortController().signal);
  url = `${gateway.url.href}?api-key=${gateway.key('scale')}`;
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  for (const fake of [hot, faithful, superbank]) await fake[Symbol.asyncDispose]();
});

describe('an SDK, unchanged, reads one history from a live node and two archives', () => {
  test('kit pages through every signature of an address, newest first', async () => {
    const rpc = createSolanaRpc(url);
    const seen: Signature[] = [];
    for (;;) {
      const before = seen.at(-1);
      const page = await rpc
        .getSignaturesForAddress(address(ADDRESS), { limit: 7, ...(before === undefined ? {} : { before }) })
        .send();
      if (page.length === 0) break;
      seen.push(...page.map(({ signature }) => signature));
    }
    expect<readonly string[]>(seen).toEqual(signatures);
  });

  test('web3.js has them in one call, and down to a signature', async () => {
    const connection = new Connection(url, 'confirmed');
    const all = await connection.getSignaturesForAddress(new PublicKey(ADDRESS));
    expect(all.map(({ signature }) => signature)).toEqual(signatures);
    const [first = '', last = ''] = [signatures[3], signatures.at(-3)];
    const some = await connection.getSignaturesForAddress(new PublicKey(ADDRESS), {
      before: first,
      until: last,
    });
    expect(some.map(({ signature }) => signature)).toEqual(signatures.slice(4, -3));
  });

  test('kit reads lists of blocks, block times and transactions on both sides of the seam', async () => {
    const rpc = createSolanaRpc(url);
    const blocks = await rpc.getBlocks(1n, 90n).send();
    expect(blocks.map(Number)).toEqual([...history.slots]);
    const limited = await rpc.getBlocksWithLimit(50n, 20).send();
    expect(limited.map(Number)).toEqual(history.slots.filter((slot) => slot >= 50).slice(0, 20));
    for (const row of [rows[0], rows.at(-1)]) {
      if (row === undefined) throw new Error('the chain has no transaction');
      const signature = row.signature as Signature; // of the scripted chain, in the form of one
      const transaction = await rpc
        .getTransaction(signature, { encoding: 'json', maxSupportedTransactionVersion: 0 })
        .send();
      expect(Number(transaction?.slot)).toBe(row.slot);
      expect(await rpc.getBlockTime(BigInt(row.slot)).send()).not.toBeNull();
    }
    expect(Number(await rpc.getFirstAvailableBlock().send())).toBeLessThanOrEqual(1);
  });
});

import { expect, test } from 'bun:test';
import { createChain } from '../../localnet/chain/chain.ts';
import { transferWire } from '../../localnet/protocol/keypair.ts';
import { readTransaction } from '../../localnet/protocol/transaction.ts';
import { openLedger } from '../../localnet/store/ledger.ts';
import { alice, BEGAN_MS, bob, systemAccount } from './harness.ts';

test('a transaction that cannot be written down did not happen, and the chain goes on', async () => {
  const ledger = openLedger(undefined);
  let isFull = false;
  const chain = await createChain({
    ledger: {
      ...ledger,
      commit: (...args) => {
        if (isFull) throw new Error('database or disk is full');
        ledger.commit(...args);
      },
    },
    slotMs: 400,
    rootedLag: 4,
    files: [],
    nowMs: BEGAN_MS,
    random: (bytes) => new Uint8Array(bytes),
    genesis: async () => [[alice.address, systemAccount(10_000_000_000n)]],
  });
  const balance = (commitment: 'processed' | 'finalized') =>
    chain.viewAt(commitment).account(bob.address)?.lamports;
  const send = () => {
    const { blockhash } = chain.latestBlockhash(chain.slotAt('processed'));
    const read = readTransaction(transferWire(alice, bob.address, 1_000_000n, blockhash));
    if (read.kind !== 'read') throw new Error(read.reason);
    return chain.send(read.transaction);
  };

  isFull = true;
  expect(send).toThrow('database or disk is full');
  expect(balance('processed')).toBeUndefined();
  expect(chain.viewAt('processed').account(alice.address)?.lamports).toBe(10_000_000_000n);
  isFull = false;
  expect(send()).toMatchObject({ kind: 'kept', record: { position: 0 } });
  expect(balance('processed')).toBe(1_000_000n);
  expect(balance('finalized')).toBeUndefined();
  chain.close();
});

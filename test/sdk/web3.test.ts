import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import {
  Connection,
  Keypair,
  LAMPORTS_PER_SOL,
  type PublicKey,
  SystemProgram,
  Transaction,
} from '@solana/web3.js';
import { startStack, until } from '../started/stack.ts';

let service: Awaited<ReturnType<typeof startStack>>;
let connection: Connection;
const payer = Keypair.generate();
beforeAll(async () => {
  service = await startStack();
  connection = new Connection(`${service.url.href}?api-key=${service.key('scale')}`, 'confirmed');
  await confirmed(await connection.requestAirdrop(payer.publicKey, 10 * LAMPORTS_PER_SOL));
});
afterAll(async () => service[Symbol.asyncDispose]());

/** Waits, by polling: this endpoint has no WebSocket. */
async function confirmed(signature: string) {
  return until(async () => {
    const { value } = await connection.getSignatureStatuses([signature]);
    if (value[0]?.err) throw new Error(JSON.stringify(value[0].err));
    return value[0]?.confirmationStatus === 'confirmed' || value[0]?.confirmationStatus === 'finalized'
      ? value[0]
      : undefined;
  });
}

async function transfer(to: PublicKey, lamports: number): Promise<string> {
  const { blockhash, lastValidBlockHeight } = await connection.getLatestBlockhash();
  const transaction = new Transaction({ feePayer: payer.publicKey, blockhash, lastValidBlockHeight }).add(
    SystemProgram.transfer({ fromPubkey: payer.publicKey, toPubkey: to, lamports }),
  );
  transaction.sign(payer);
  return connection.sendRawTransaction(transaction.serialize());
}

describe('@solana/web3.js 1.x, unchanged, with the key in the URL (spec 4.3.4)', () => {
  test('sends a transfer, confirms it by polling, and reads it back from history', async () => {
    const to = Keypair.generate().publicKey;
    const signature = await transfer(to, 123_456_789);
    const { slot } = await confirmed(signature);
    expect(await connection.getBalance(to)).toBe(123_456_789);

    const transaction = await connection.getTransaction(signature, { maxSupportedTransactionVersion: 0 });
    expect(transaction?.slot).toBe(slot);
    expect(transaction?.meta?.fee).toBe(5_000);
    expect(transaction?.meta?.postBalances).toContain(123_456_789);

    const [row] = await connection.getSignaturesForAddress(to);
    expect([row?.signature, row?.slot, row?.err]).toEqual([signature, slot, null]);

    const block = await connection.getBlock(slot, { maxSupportedTransactionVersion: 0 });
    expect(block?.transactions.map(({ transaction: { signatures } }) => signatures[0])).toContain(signature);
  });

  test('the batched getTransactions gives every transaction in its place', async () => {
    const to = Keypair.generate().publicKey;
    const signatures: string[] = [];
    for (let i = 1; i <= 5; i++) signatures.push(await transfer(to, 1_000_000 + i));
    for (const signature of signatures) await confirmed(signature);
    const unknown = '1'.repeat(64);
    const read = await connection.getTransactions(
      [...signatures.slice(0, 3), unknown, ...signatures.slice(3)],
      {
        maxSupportedTransactionVersion: 0,
      },
    );
    expect(read.map((transaction) => transaction?.transaction.signatures[0] ?? null)).toEqual([
      ...signatures.slice(0, 3),
      null,
      ...signatures.slice(3),
    ]);
  });
});

describe('@solana/web3.js with the key in x-token', () => {
  test('works with httpHeaders', async () => {
    const other = new Connection(service.url.href, { httpHeaders: { 'x-token': service.key('scale') } });
    expect(await other.getSlot()).toBeGreaterThan(0);
  });
});

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { createSolanaRpc, generateKeyPairSigner, isSolanaError, lamports, type Signature } from '@solana/kit';
import {
  Connection,
  Keypair,
  PublicKey,
  SendTransactionError,
  SystemProgram,
  Transaction,
  TransactionMessage,
  VersionedTransaction,
} from '@solana/web3.js';
import programs from '../../deploys/watch/programs.json';
import { startServed } from './served.ts';

let net: Awaited<ReturnType<typeof startServed>>;
beforeAll(async () => {
  net = await startServed(programs);
});
afterAll(async () => {
  expect(net.faults).toEqual([]);
  await net[Symbol.asyncDispose]();
});

/** Asks until the answer is there; the test's own timeout bounds it. */
async function until<T>(ask: () => Promise<T | null | undefined | false>): Promise<T> {
  for (;;) {
    const answer = await ask();
    if (answer !== null && answer !== undefined && answer !== false) return answer;
    await Bun.sleep(5); // between two questions to a chain that moves by itself
  }
}

describe('@solana/web3.js 1.x', () => {
  const connect = () => new Connection(net.url, 'confirmed');

  test('funds, sends legacy and v0 transactions, and reads them back in a batch', async () => {
    const connection = connect();
    const [payer, to] = [Keypair.generate(), Keypair.generate()];
    const airdrop = await connection.requestAirdrop(payer.publicKey, 5_000_000_000);
    await until(async () => (await connection.getBalance(payer.publicKey)) > 0);
    const transfer = SystemProgram.transfer({
      fromPubkey: payer.publicKey,
      toPubkey: to.publicKey,
      lamports: 1_000_000,
    });
    const latest = await connection.getLatestBlockhash();
    const legacy = new Transaction({ ...latest, feePayer: payer.publicKey }).add(transfer);
    const sentLegacy = await connection.sendTransaction(legacy, [payer]);
    const message = new TransactionMessage({
      payerKey: payer.publicKey,
      recentBlockhash: latest.blockhash,
      instructions: [transfer],
    });
    const versioned = new VersionedTransaction(message.compileToV0Message());
    versioned.sign([payer]);
    const sentVersioned = await connection.sendTransaction(versioned);
    await until(async () => {
      const { value } = await connection.getSignatureStatus(sentVersioned);
      return value?.confirmationStatus === 'finalized';
    });
    const found = await connection.getTransactions([airdrop, sentLegacy, sentVersioned], {
      maxSupportedTransactionVersion: 0,
    });
    expect(found.map((one) => one?.version)).toEqual(['legacy', 'legacy', 0]);
    expect(found.map((one) => one?.meta?.err)).toEqual([null, null, null]);
    expect(await connection.getBalance(to.publicKey)).toBe(2_000_000);
    const signatures = await connection.getSignaturesForAddress(to.publicKey);
    expect(signatures.map(({ signature }) => signature)).toEqual([sentVersioned, sentLegacy]);
    const block = await connection.getBlock(found[2]?.slot ?? 0, { maxSupportedTransactionVersion: 0 });
    expect(block?.transactions.map(({ transaction }) => transaction.signatures[0])).toContain(sentVersioned);
    expect((await connection.getBlockSignatures(found[2]?.slot ?? 0)).signatures).toContain(sentVersioned);
    expect(await connection.getBlockTime(found[2]?.slot ?? 0)).toBe(block?.blockTime ?? 0);
  });

  test('reads a failed simulation', async () => {
    const connection = connect();
    const payer = Keypair.generate();
    await connection.requestAirdrop(payer.publicKey, 1_000_000_000);
    await until(async () => (await connection.getBalance(payer.publicKey)) > 0);
    const transfer = SystemProgram.transfer({
      fromPubkey: payer.publicKey,
      toPubkey: PublicKey.unique(),
      lamports: 10 ** 12,
    });
    const sending = connection.sendTransaction(new Transaction().add(transfer), [payer]);
    const error = await sending.then(
      () => undefined,
      (cause: unknown) => cause,
    );
    expect(error).toBeInstanceOf(SendTransactionError);
    expect(String(error)).toContain('custom program error: 0x1');
    expect(String(error)).toContain('insufficient lamports');
  });

  test('reads what a node can be asked', async () => {
    const connection = connect();
    const loader = new PublicKey('BPFLoaderUpgradeab1e11111111111111111111111');
    const accounts = await connection.getProgramAccounts(loader, {
      dataSlice: { offset: 0, length: 4 },
      filters: [{ dataSize: 36 }],
    });
    expect(accounts.length).toBeGreaterThan(100);
    expect(accounts[0]?.account.data).toEqual(Buffer.from([2, 0, 0, 0]));
    const [program] = await connection.getMultipleAccountsInfo([accounts[0]?.pubkey ?? loader]);
    expect(program?.executable).toBe(true);
    expect((await connection.getEpochInfo()).slotsInEpoch).toBe(432_000);
    expect((await connection.getEpochSchedule()).slotsPerEpoch).toBe(432_000);
    expect((await connection.getVersion())['solana-core']).toBe('4.3.0');
    expect(await connection.getFirstAvailableBlock()).toBe(0);
    expect(await connection.getMinimumBalanceForRentExemption(0)).toBe(890_880);
    expect(await connection.getRecentPrioritizationFees()).toHaveLength(150);
    expect(await connection.getGenesisHash()).toBe(net.chain.genesisHash);
    const { blockhash } = await connection.getLatestBlockhash();
    expect((await connection.isBlockhashValid(blockhash)).value).toBe(true);
    const parsed = await connection.getParsedAccountInfo(accounts[0]?.pubkey ?? loader);
    expect(parsed.value?.data).toMatchObject({ program: 'bpf-upgradeable-loader' });
    const message = new TransactionMessage({
      payerKey: PublicKey.unique(),
      recentBlockhash: blockhash,
      instructions: [],
    });
    expect((await connection.getFeeForMessage(message.compileToV0Message())).value).toBe(5_000);
  });
});

describe('@solana/kit', () => {
  test('reads exact u64, and errors with their context', async () => {
    const rpc = createSolanaRpc(net.url);
    const signer = await generateKeyPairSigner();
    const signature = await rpc.requestAirdrop(signer.address, lamports(9_007_199_254_740_991n)).send();
    await rpc.requestAirdrop(signer.address, lamports(2n)).send();
    const balance = async () =>
      (await rpc.getBalance(signer.address, { commitment: 'confirmed' }).send()).value;
    expect(await until(async () => ((await balance()) > 9_007_199_254_740_991n ? balance() : false))).toBe(
      lamports(9_007_199_254_740_993n),
    );
    const { value } = await rpc
      .getAccountInfo(signer.address, { commitment: 'confirmed', encoding: 'base64' })
      .send();
    expect(String(value?.owner)).toBe('11111111111111111111111111111111');
    expect(value?.space).toBe(0n);
    const config = { encoding: 'json', maxSupportedTransactionVersion: 0, commitment: 'confirmed' } as const;
    const found = await until(() => rpc.getTransaction(signature, config).send());
    expect(found.meta?.fee).toBe(lamports(5_000n));
    const refused = await rpc
      .getSlot({ minContextSlot: 10n ** 12n })
      .send()
      .then(
        () => undefined,
        (cause: unknown) => cause,
      );
    expect(isSolanaError(refused)).toBe(true);
    expect(refused).toMatchObject({ context: { contextSlot: expect.any(BigInt) } });
  });

  test('reads blocks, statuses and scans', async () => {
    const rpc = createSolanaRpc(net.url);
    const tip = await rpc.getSlot({ commitment: 'finalized' }).send();
    const block = await rpc.getBlock(tip, { maxSupportedTransactionVersion: 0 }).send();
    expect(block?.parentSlot).toBe(tip - 1n);
    expect(await rpc.getBlocks(tip - 2n, tip).send()).toEqual([tip - 2n, tip - 1n, tip]);
    expect(await rpc.getBlocksWithLimit(0n, 3).send()).toEqual([0n, 1n, 2n]);
    expect(await rpc.getSignatureStatuses(['1'.repeat(64) as Signature]).send()).toMatchObject({
      value: [null],
    }); // well-formed
    expect(await rpc.getHealth().send()).toBe('ok');
    const loader = 'BPFLoader2111111111111111111111111111111111' as Parameters<
      typeof rpc.getProgramAccounts
    >[0]; // an address
    const scan = await rpc
      .getProgramAccounts(loader, {
        encoding: 'base64',
        withContext: true,
        dataSlice: { offset: 0, length: 4 },
      })
      .send();
    expect(scan.value.length).toBeGreaterThanOrEqual(3);
  });
});

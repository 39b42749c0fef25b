import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { AnchorProvider, BN, Program, Wallet } from '@coral-xyz/anchor';
import { transferSol } from '@metaplex-foundation/mpl-toolbox';
import { generateSigner, lamports, publicKey, sol } from '@metaplex-foundation/umi';
import {
  address,
  type Base58EncodedBytes,
  createKeyPairSignerFromBytes,
  createSolanaRpc,
  getBase58Decoder,
  getBase64EncodedWireTransaction,
  getSignatureFromTransaction,
  isSolanaError,
  type Signature,
  SOLANA_ERROR__INSTRUCTION_ERROR__CUSTOM,
  SOLANA_ERROR__JSON_RPC__SERVER_ERROR_SEND_TRANSACTION_PREFLIGHT_FAILURE,
  SOLANA_ERROR__JSON_RPC__SERVER_ERROR_TRANSACTION_HISTORY_NOT_AVAILABLE,
} from '@solana/kit';
import { Keypair, LAMPORTS_PER_SOL, PublicKey } from '@solana/web3.js';
import type { PollingConnection } from '../../examples/polling-connection.ts';
import { confirm } from '../../examples/send-and-confirm.ts';
import { ASSETS, TREE } from '../fakes/das-assets.ts';
import { counterElf, ERRORS } from '../fixtures/anchor/counter-elf.ts';
import { counterIdl, type CounterIdl } from '../fixtures/anchor/counter-idl.ts';
import { deployProgram } from '../fixtures/anchor/deploy.ts';
import { JSON_HEADERS } from '../started/gateway.ts';
import { until } from '../started/stack.ts';
import { AMOUNT, signTransfer } from './clients/transfer.ts';
import { quickly } from './quickly.ts';
import { startTiers } from './tiers.ts';
import { umiOn } from './umi-client.ts';

// The SDKs as they are, with the key in the URL; with the key in a header, waiting.test.ts has them.
const CONFIRMED = { commitment: 'confirmed' } as const;
const AT_ANY_VERSION = { maxSupportedTransactionVersion: 0 } as const;
const LOADER = address('BPFLoaderUpgradeab1e11111111111111111111111');
const UNKNOWN = '1'.repeat(64) as Signature; // 64 zero bytes
const U64_MAX = new BN('18446744073709551615');

const payer = Keypair.generate();
let tiers: Awaited<ReturnType<typeof startTiers>>;
let connection: PollingConnection;
let rpc: ReturnType<typeof createSolanaRpc>;
beforeAll(async () => {
  tiers = await startTiers('', 100);
  connection = quickly(tiers.endpoint());
  rpc = createSolanaRpc(tiers.endpoint());
  await fund(payer.publicKey, 10 * LAMPORTS_PER_SOL);
}, 30_000);
afterAll(async () => tiers[Symbol.asyncDispose]());

async function fund(to: PublicKey, amount: number): Promise<void> {
  await connection.confirmTransaction(await connection.requestAirdrop(to, amount));
}

/** Sends a transfer by kit and waits until it is confirmed; gives its signature. */
async function pay(from: Keypair, to: PublicKey): Promise<Signature> {
  const { value: blockhash } = await rpc.getLatestBlockhash(CONFIRMED).send();
  const source = await createKeyPairSignerFromBytes(from.secretKey);
  const transaction = await signTransfer(source, address(to.toBase58()), blockhash);
  const wire = getBase64EncodedWireTransaction(transaction);
  await rpc.sendTransaction(wire, { encoding: 'base64', preflightCommitment: 'confirmed' }).send();
  const signature = getSignatureFromTransaction(transaction);
  await confirm(rpc, signature, blockhash.lastValidBlockHeight);
  return signature;
}

describe('@solana/kit and @solana/web3.js', () => {
  test('read a transfer back from history, alone, in its block, and batched in its place', async () => {
    const to = Keypair.generate().publicKey;
    const signature = await pay(payer, to);
    const config = { ...CONFIRMED, ...AT_ANY_VERSION, encoding: 'json' } as const;
    const read = await rpc.getTransaction(signature, config).send();
    expect(read?.meta?.err).toBeNull();
    const there = address(to.toBase58());
    const index = read?.transaction.message.accountKeys.indexOf(there) ?? -1;
    const { value: balance } = await rpc.getBalance(there, CONFIRMED).send();
    expect([Number(balance), read?.meta?.postBalances[index]]).toEqual([AMOUNT, balance]);
    const [row] = await rpc.getSignaturesForAddress(there, { ...CONFIRMED, limit: 5 }).send();
    expect([row?.signature, row?.slot]).toEqual([signature, read?.slot]);

    const block = await connection.getBlock(Number(read?.slot ?? 0), AT_ANY_VERSION);
    expect(block?.transactions.map(({ transaction }) => transaction.signatures[0])).toContain(signature);
    const signatures = [signature, UNKNOWN, await pay(payer, Keypair.generate().publicKey)];
    const batch = await connection.getTransactions(signatures, AT_ANY_VERSION);
    expect(batch.map((each) => each?.transaction.signatures[0] ?? UNKNOWN)).toEqual(signatures);
    expect(batch[0]?.meta?.postBalances).toContain(AMOUNT);
  });

  test('find accounts with getProgramAccounts and its filters', async () => {
    const size = { dataSize: 36n };
    const all = await rpc.getProgramAccounts(LOADER, { encoding: 'base64', filters: [size] }).send();
    expect(all.length).toBeGreaterThan(90);
    const bytes = getBase58Decoder().decode(Buffer.from(all[0]?.account.data[0] ?? '', 'base64').subarray(4));
    const memcmp = { offset: 4n, bytes: bytes as Base58EncodedBytes, encoding: 'base58' } as const; // as decoded
    const filters = [size, { memcmp }];
    const found = await rpc.getProgramAccounts(LOADER, { encoding: 'base64', filters }).send();
    expect(found).toEqual(all.slice(0, 1));
  });

  test('show a failing preflight with its cause and its logs, and a search of the whole history as an error', async () => {
    const poor = Keypair.generate();
    await fund(poor.publicKey, AMOUNT / 2);
    const error: unknown = await pay(poor, payer.publicKey).catch((reason: unknown) => reason);
    if (!isSolanaError(error, SOLANA_ERROR__JSON_RPC__SERVER_ERROR_SEND_TRANSACTION_PREFLIGHT_FAILURE))
      throw error;
    expect(error.context.logs?.join()).toContain('insufficient lamports');
    expect(isSolanaError(error.cause, SOLANA_ERROR__INSTRUCTION_ERROR__CUSTOM)).toBe(true);

    expect((await rpc.getSignatureStatuses([UNKNOWN]).send()).value).toEqual([null]);
    const searched = rpc.getSignatureStatuses([UNKNOWN], { searchTransactionHistory: true }).send();
    const refusal: unknown = await searched.catch((reason: unknown) => reason);
    expect(
      isSolanaError(refusal, SOLANA_ERROR__JSON_RPC__SERVER_ERROR_TRANSACTION_HISTORY_NOT_AVAILABLE),
    ).toBe(true);
  });
});

describe('umi', () => {
  test('reads accounts and assets by its URL alone, sends and polls', async () => {
    const { umi, rpc: das } = umiOn(tiers.endpoint());
    const own = umi.identity.publicKey;
    await fund(new PublicKey(own), LAMPORTS_PER_SOL);
    expect(await das.getBalance(own, CONFIRMED)).toEqual(sol(1));
    expect((await das.getAsset(publicKey(ASSETS[0]?.id ?? ''))).content.metadata.name).toBe('Compressed');
    // The client reads `result` alone, so that the server's own words never reach its caller.
    await expect(das.getAsset(publicKey(TREE))).rejects.toThrow(`Asset not found: ${TREE}`);

    const to = generateSigner(umi).publicKey;
    const transfer = transferSol(umi, { destination: to, amount: lamports(AMOUNT) });
    const signature = await transfer.send(umi, { preflightCommitment: 'confirmed' });
    const status = await until(async () => (await das.getSignatureStatuses([signature]))[0]);
    expect(status.error).toBeNull();
    await until(async () => await das.accountExists(to, CONFIRMED));
  });

  test('gets an answer with its own HTTP client when the key is in the URL', async () => {
    const { umi } = umiOn(tiers.endpoint());
    const data = { jsonrpc: '2.0', id: 'umi', method: 'getHealth' };
    const send = (url: string, more: Record<string, string> = {}) =>
      umi.http.send({ method: 'POST', url, headers: { ...JSON_HEADERS, ...more }, data });
    // It writes the values of headers in lower case, and keys have capitals.
    expect((await send(tiers.url, { 'x-token': tiers.key() })).status).toBe(401);
    const answer = await send(tiers.endpoint());
    expect([answer.status, answer.data]).toEqual([200, { jsonrpc: '2.0', result: 'ok', id: 'umi' }]);
  });
});

describe('anchor', () => {
  let provider: AnchorProvider;
  let program: Program<CounterIdl>;
  beforeAll(async () => {
    const deployed = await deployProgram(tiers.endpoint(), counterElf());
    provider = new AnchorProvider(connection, new Wallet(payer), CONFIRMED);
    program = new Program(counterIdl(deployed), provider);
  }, 30_000);

  /** Makes a counter with `methods.initialize(…).rpc()`; gives its address. */
  async function initialize(start: BN): Promise<PublicKey> {
    const counter = Keypair.generate();
    await program.methods
      .initialize(start)
      .accounts({ counter: counter.publicKey, authority: provider.publicKey })
      .preInstructions([await program.account.counter.createInstruction(counter)])
      .signers([counter])
      .rpc();
    return counter.publicKey;
  }

  test('sends with methods.rpc() and reads with account.fetch, a u64 beyond 2^53 too', async () => {
    const counter = await initialize(U64_MAX.subn(2));
    await program.methods.add(new BN(2)).accounts({ counter }).rpc();
    expect((await program.account.counter.fetch(counter)).count.toString()).toBe(U64_MAX.toString());
  });

  test('finds every account by its discriminator and fewer with filters, and keeps places', async () => {
    const made = [await initialize(new BN(700)), await initialize(new BN(701))];
    const [counter] = made;
    const all = await program.account.counter.all();
    const found = new Set(all.map((each) => each.publicKey.toBase58()));
    for (const each of made) expect(found).toContain(each.toBase58());
    const bytes = new BN(701).toArrayLike(Buffer, 'le', 8);
    const filtered = await program.account.counter.all(bytes); // after the discriminator
    expect(filtered.map(({ account }) => account.count.toNumber())).toEqual([701]);

    // More accounts than one call takes.
    const asked = Array.from(
      { length: 150 },
      (_, i) => (i === 120 && counter) || Keypair.generate().publicKey,
    );
    const read = await program.account.counter.fetchMultiple(asked);
    expect(read.map((account) => account?.count.toNumber() ?? null)).toEqual(
      asked.map((at) => (at === counter ? 700 : null)),
    );
  });

  test("gets the preflight's refusal with its logs, and names the program out of them", async () => {
    const counter = await initialize(U64_MAX);
    const failing = program.methods.add(new BN(1)).accounts({ counter });
    const error = await failing.rpc().catch((reason) => reason);
    const overflow = 'custom program error: 0x1770';
    expect(error.message).toContain(`Error processing Instruction 0: ${overflow}`);
    expect(error.logs).toContain(`Program ${program.programId} failed: ${overflow}`);
    expect(String(error.program)).toBe(program.programId.toBase58());
    await expect(failing.simulate()).rejects.toMatchObject({
      simulationResponse: { err: { InstructionError: [0, { Custom: ERRORS.overflow }] } },
    });
  });
});

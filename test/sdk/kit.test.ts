import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { getTransferSolInstruction } from '@solana-program/system';
import {
  address,
  appendTransactionMessageInstructions,
  type Base58EncodedBytes,
  createDefaultRpcTransport,
  createSolanaRpc,
  createSolanaRpcFromTransport,
  createTransactionMessage,
  devnet,
  generateKeyPairSigner,
  getBase58Decoder,
  getBase64EncodedWireTransaction,
  getSignatureFromTransaction,
  type Instruction,
  isSolanaError,
  type KeyPairSigner,
  lamports,
  pipe,
  type Signature,
  setTransactionMessageFeePayerSigner,
  setTransactionMessageLifetimeUsingBlockhash,
  signTransactionMessageWithSigners,
  SOLANA_ERROR__INSTRUCTION_ERROR__CUSTOM,
  SOLANA_ERROR__JSON_RPC__SERVER_ERROR_SEND_TRANSACTION_PREFLIGHT_FAILURE,
  SOLANA_ERROR__JSON_RPC__SERVER_ERROR_TRANSACTION_HISTORY_NOT_AVAILABLE,
} from '@solana/kit';
import { startStack, until } from '../started/stack.ts';

const SOL = 1_000_000_000n;
const LOADER = address('BPFLoaderUpgradeab1e11111111111111111111111');

let service: Awaited<ReturnType<typeof startStack>>;
let rpc: ReturnType<typeof connect>;
let payer: KeyPairSigner;
beforeAll(async () => {
  service = await startStack();
  rpc = connect(service.key('scale'));
  payer = await generateKeyPairSigner();
  const airdrop = await rpc
    .requestAirdrop(payer.address, lamports(10n * SOL), { commitment: 'confirmed' })
    .send();
  await confirmed(airdrop);
});
afterAll(async () => service[Symbol.asyncDispose]());

/** A client with the key in its URL; `devnet` only tells the types that this cluster has airdrops. */
function connect(key: string) {
  return createSolanaRpc(devnet(`${service.url.href}?api-key=${key}`));
}

/** Waits, by polling, until the transaction is confirmed without an error. */
async function confirmed(signature: Signature) {
  return until(async () => {
    const { value } = await rpc.getSignatureStatuses([signature]).send();
    if (value[0]?.err) throw new Error(JSON.stringify(value[0].err));
    return value[0]?.confirmationStatus === 'confirmed' || value[0]?.confirmationStatus === 'finalized'
      ? value[0]
      : undefined;
  });
}

async function send(instructions: readonly Instruction[]): Promise<Signature> {
  const { value: blockhash } = await rpc.getLatestBlockhash({ commitment: 'confirmed' }).send();
  const transaction = await pipe(
    createTransactionMessage({ version: 0 }),
    (message) => setTransactionMessageFeePayerSigner(payer, message),
    (message) => setTransactionMessageLifetimeUsingBlockhash(blockhash, message),
    (message) => appendTransactionMessageInstructions(instructions, message),
    (message) => signTransactionMessageWithSigners(message),
  );
  await rpc
    .sendTransaction(getBase64EncodedWireTransaction(transaction), {
      encoding: 'base64',
      preflightCommitment: 'confirmed',
    })
    .send();
  return getSignatureFromTransaction(transaction);
}

describe('@solana/kit, unchanged, with the key in the URL (spec 4.3.4)', () => {
  test('sends a transfer, confirms it by polling, and reads it back from history', async () => {
    const to = await generateKeyPairSigner();
    const signature = await send([
      getTransferSolInstruction({ source: payer, destination: to.address, amount: SOL }),
    ]);
    const { slot } = await confirmed(signature);

    expect((await rpc.getBalance(to.address, { commitment: 'confirmed' }).send()).value).toBe(lamports(SOL));

    const transaction = await rpc
      .getTransaction(signature, {
        commitment: 'confirmed',
        encoding: 'json',
        maxSupportedTransactionVersion: 0,
      })
      .send();
    expect(transaction?.slot).toBe(slot);
    expect(transaction?.meta?.err).toBeNull();
    const index = transaction?.transaction.message.accountKeys.indexOf(to.address) ?? -1;
    expect(transaction?.meta?.postBalances[index]).toBe(lamports(SOL));

    const [row] = await rpc.getSignaturesForAddress(to.address, { commitment: 'confirmed', limit: 5 }).send();
    expect(row?.signature).toBe(signature);
    expect(row?.slot).toBe(slot);
  });

  test('finds accounts with getProgramAccounts and its filters', async () => {
    const size = { dataSize: 36n };
    const all = await rpc.getProgramAccounts(LOADER, { encoding: 'base64', filters: [size] }).send();
    expect(all.length).toBeGreaterThan(90);
    const bytes = getBase58Decoder().decode(Buffer.from(all[0]?.account.data[0] ?? '', 'base64').subarray(4));
    const memcmp = { offset: 4n, bytes: bytes as Base58EncodedBytes, encoding: 'base58' } as const; // as decoded
    const filters = [size, { memcmp }];
    expect(await rpc.getProgramAccounts(LOADER, { encoding: 'base64', filters }).send()).toEqual(
      all.slice(0, 1),
    );
  });

  test('a failing preflight is a SolanaError with its cause and its logs', async () => {
    const to = await generateKeyPairSigner();
    const error: unknown = await send([
      getTransferSolInstruction({ source: payer, destination: to.address, amount: 1_000_000n * SOL }),
    ]).catch((reason: unknown) => reason);
    if (!isSolanaError(error, SOLANA_ERROR__JSON_RPC__SERVER_ERROR_SEND_TRANSACTION_PREFLIGHT_FAILURE))
      throw error;
    expect(error.context.logs?.join()).toContain('insufficient lamports');
    expect(isSolanaError(error.cause, SOLANA_ERROR__INSTRUCTION_ERROR__CUSTOM)).toBe(true);
  });

  test('a search of the whole history for a status is an error that says so, not a null', async () => {
    const unknown = '1'.repeat(64) as Signature; // 64 zero bytes
    expect((await rpc.getSignatureStatuses([unknown]).send()).value).toEqual([null]);
    const searched = rpc.getSignatureStatuses([unknown], { searchTransactionHistory: true }).send();
    const error: unknown = await searched.catch((reason: unknown) => reason);
    expect(isSolanaError(error, SOLANA_ERROR__JSON_RPC__SERVER_ERROR_TRANSACTION_HISTORY_NOT_AVAILABLE)).toBe(
      true,
    );
  });
});

describe('@solana/kit with the key in x-token', () => {
  test('works with a transport that carries the header', async () => {
    const transport = createDefaultRpcTransport({
      url: service.url.href,
      headers: { 'x-token': service.key('scale') },
    });
    const slot = await createSolanaRpcFromTransport(transport).getSlot().send();
    expect(slot).toBeGreaterThan(0n);
  });
});

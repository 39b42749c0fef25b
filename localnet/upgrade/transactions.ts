/*
 * The transactions of a redeploy: money for a payer, a buffer with the code, and the loader's upgrade.
 */
import {
  appendTransactionMessageInstructions,
  createTransactionMessage,
  getBase64EncodedWireTransaction,
  lamports,
  pipe,
  setTransactionMessageFeePayerSigner,
  setTransactionMessageLifetimeUsingBlockhash,
  signTransactionMessageWithSigners,
  type Address,
  type Instruction,
  type Rpc,
  type RequestAirdropApi,
  type Signature,
  type SolanaRpcApi,
  type TransactionSigner,
} from '@solana/kit';
import {
  getInitializeBufferInstruction,
  getUpgradeInstruction,
  getWriteInstruction,
} from '@solana-program/loader-v3';
import { getCreateAccountInstruction } from '@solana-program/system';
import { LOADER_V3 } from '../chain/known-address.ts';
import type { Clock } from '../../shared/clock.ts';
import type { UpgradeTarget } from './target.ts';

const BUFFER_HEADER_BYTES = 37;
const CHUNK_BYTES = 900;
const PAYER_LAMPORTS = lamports(100_000_000_000n);
const POLL_MS = 50;

/** What the transactions need. */
export type UpgradeContext = Readonly<{
  rpc: Rpc<SolanaRpcApi & RequestAirdropApi>;
  clock: Clock;
  signal: AbortSignal;
}>;

/** Gives a payer what a buffer and the fees cost. */
export async function fundPayer(context: UpgradeContext, payer: Address): Promise<void> {
  const request = context.rpc.requestAirdrop(payer, PAYER_LAMPORTS, { commitment: 'confirmed' });
  await confirmed(context, await request.send({ abortSignal: context.signal }));
}

/** Puts the target's code into a new buffer. */
export async function writeBuffer(
  context: UpgradeContext,
  target: UpgradeTarget,
  signers: Readonly<{ payer: TransactionSigner; authority: TransactionSigner; buffer: TransactionSigner }>,
): Promise<void> {
  const { payer, authority, buffer } = signers;
  const space = BigInt(BUFFER_HEADER_BYTES + target.elf.length);
  const rent = await context.rpc
    .getMinimumBalanceForRentExemption(space)
    .send({ abortSignal: context.signal });
  const create = getCreateAccountInstruction({
    payer,
    newAccount: buffer,
    lamports: rent,
    space,
    programAddress: LOADER_V3,
  });
  const initialize = getInitializeBufferInstruction({
    sourceAccount: buffer.address,
    bufferAuthority: authority.address,
  });
  await confirmed(context, await send(context, payer, [create, initialize]));
  const writes: Signature[] = [];
  for (let offset = 0; offset < target.elf.length; offset += CHUNK_BYTES) {
    const bytes = target.elf.subarray(offset, offset + CHUNK_BYTES);
    const write = getWriteInstruction({
      bufferAccount: buffer.address,
      bufferAuthority: authority,
      offset,
      bytes,
    });
    writes.push(await send(context, payer, [write]));
  }
  for (const signature of writes) await confirmed(context, signature);
}

/** Lets the loader take the buffer's code. */
export async function upgradeFrom(
  context: UpgradeContext,
  target: UpgradeTarget,
  signers: Readonly<{ payer: TransactionSigner; authority: TransactionSigner; buffer: TransactionSigner }>,
): Promise<void> {
  const upgrade = getUpgradeInstruction({
    programDataAccount: target.programData,
    programAccount: target.program,
    bufferAccount: signers.buffer.address,
    spillAccount: signers.payer.address,
    authority: signers.authority,
  });
  await confirmed(context, await send(context, signers.payer, [upgrade]));
}

async function send(
  context: UpgradeContext,
  payer: TransactionSigner,
  instructions: Instruction[],
): Promise<Signature> {
  const { rpc, signal } = context;
  const { value: blockhash } = await rpc
    .getLatestBlockhash({ commitment: 'confirmed' })
    .send({ abortSignal: signal });
  const message = pipe(
    createTransactionMessage({ version: 0 }),
    (made) => setTransactionMessageFeePayerSigner(payer, made),
    (made) => setTransactionMessageLifetimeUsingBlockhash(blockhash, made),
    (made) => appendTransactionMessageInstructions(instructions, made),
  );
  const wire = getBase64EncodedWireTransaction(await signTransactionMessageWithSigners(message));
  const config = { encoding: 'base64', preflightCommitment: 'confirmed' } as const;
  return rpc.sendTransaction(wire, config).send({ abortSignal: signal });
}

/** Waits for a transaction to be confirmed; throws with its error, or when the signal aborts. */
async function confirmed(context: UpgradeContext, signature: Signature): Promise<void> {
  const { rpc, clock, signal } = context;
  for (;;) {
    signal.throwIfAborted();
    const { value } = await rpc.getSignatureStatuses([signature]).send({ abortSignal: signal });
    const status = value[0] ?? undefined;
    if (status !== undefined && status.err !== null) {
      const print = (_name: string, part: unknown) => (typeof part === 'bigint' ? Number(part) : part);
      throw new Error(`transaction ${signature} failed: ${JSON.stringify(status.err, print)}`);
    }
    if (status?.confirmationStatus === 'confirmed' || status?.confirmationStatus === 'finalized') return;
    await clock.sleep(POLL_MS, signal);
  }
}

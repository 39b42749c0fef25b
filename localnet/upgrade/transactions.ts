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
  type TransactionError,
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
import { readTarget, type UpgradeTarget } from './target.ts';

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

/** The slots of a redeploy: the one that the code before was deployed in, and the one that the new code was. */
export type UpgradeSlots = Readonly<{ previousSlot: bigint; deploySlot: bigint }>;

/**
 * Lets the loader take the buffer's code. The loader redeploys a program once a slot; when somebody else came first,
 * the next slot is tried, until the signal aborts.
 */
export async function upgradeFrom(
  context: UpgradeContext,
  target: UpgradeTarget,
  signers: Readonly<{ payer: TransactionSigner; authority: TransactionSigner; buffer: TransactionSigner }>,
): Promise<UpgradeSlots> {
  const upgrade = getUpgradeInstruction({
    programDataAccount: target.programData,
    programAccount: target.program,
    bufferAccount: signers.buffer.address,
    spillAccount: signers.payer.address,
    authority: signers.authority,
  });
  for (let previousSlot = target.deploySlot; ;) {
    // No preflight: at an older slot it would pass or fail for that slot alone.
    const signature = await send(context, signers.payer, [upgrade], true);
    const landed = await landing(context, signature);
    if (landed.error === undefined) return { previousSlot, deploySlot: landed.slot };
    const present = isInvalidArgument(landed.error)
      ? await readTarget(context.rpc, target.program, context.signal)
      : undefined;
    if (present?.kind !== 'upgradeable' || present.deploySlot < landed.slot)
      throw failed(signature, landed.error);
    previousSlot = present.deploySlot;
  }
}

/** The loader's word for a program that was deployed in this slot already, among other things. */
function isInvalidArgument(error: TransactionError): boolean {
  return (
    typeof error === 'object' &&
    'InstructionError' in error &&
    error.InstructionError[1] === 'InvalidArgument'
  );
}

async function send(
  context: UpgradeContext,
  payer: TransactionSigner,
  instructions: Instruction[],
  skipPreflight = false,
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
  const config = { encoding: 'base64', preflightCommitment: 'confirmed', skipPreflight } as const;
  return rpc.sendTransaction(wire, config).send({ abortSignal: signal });
}

/** Waits for a transaction to be confirmed; throws with its error, or when the signal aborts. */
async function confirmed(context: UpgradeContext, signature: Signature): Promise<void> {
  const { error } = await landing(context, signature);
  if (error !== undefined) throw failed(signature, error);
}

type Landing = Readonly<{ slot: bigint; error: TransactionError | undefined }>;

/** Waits for a transaction's slot to be confirmed, whether it failed or not; throws when the signal aborts. */
async function landing(context: UpgradeContext, signature: Signature): Promise<Landing> {
  const { rpc, clock, signal } = context;
  for (;;) {
    signal.throwIfAborted();
    const { value } = await rpc.getSignatureStatuses([signature]).send({ abortSignal: signal });
    const status = value[0] ?? undefined;
    if (status?.confirmationStatus === 'confirmed' || status?.confirmationStatus === 'finalized')
      return { slot: status.slot, error: status.err ?? undefined };
    await clock.sleep(POLL_MS, signal);
  }
}

function failed(signature: Signature, error: TransactionError): Error {
  const print = (_name: string, part: unknown) => (typeof part === 'bigint' ? Number(part) : part);
  return new Error(`transaction ${signature} failed: ${JSON.stringify(error, print)}`);
}

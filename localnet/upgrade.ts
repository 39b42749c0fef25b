/*
 * Redeploys a program of a running localnet over plain JSON-RPC, with the loader's own transactions, so that
 * everything that watches deploys sees a real one.
 */
import {
  getInitializeBufferInstruction,
  getUpgradeInstruction,
  getWriteInstruction,
} from '@solana-program/loader-v3';
import { getCreateAccountInstruction } from '@solana-program/system';
import {
  type Address,
  appendTransactionMessageInstructions,
  createKeyPairSignerFromPrivateKeyBytes,
  createSolanaRpc,
  createTransactionMessage,
  generateKeyPairSigner,
  getBase64EncodedWireTransaction,
  type Instruction,
  isAddress,
  isSolanaError,
  lamports,
  pipe,
  type RequestAirdropApi,
  type Rpc,
  setTransactionMessageFeePayerSigner,
  setTransactionMessageLifetimeUsingBlockhash,
  type Signature,
  signTransactionMessageWithSigners,
  SOLANA_ERROR__RPC__TRANSPORT_HTTP_ERROR,
  type SolanaRpcApi,
  type TransactionError,
  type TransactionSigner,
} from '@solana/kit';
import type { Clock } from '../shared/clock.ts';
import { addressOf, LOADER_V3 } from './protocol/address.ts';
import { upgradeAuthorityKeypair } from './protocol/keypair.ts';

/** How long a redeploy may take in all. */
const UPGRADE_TIMEOUT_MS = 60_000;

/** What came of it. Every failing kind carries a sentence for the operator. */
type UpgradeOutcome =
  | Readonly<{ kind: 'upgraded'; programId: string; previousSlot: bigint; deploySlot: bigint }>
  | NotUpgradeable
  | Readonly<{ kind: 'unreachable'; sentence: string }>
  | Readonly<{ kind: 'timed-out'; sentence: string }>
  | Readonly<{ kind: 'failed'; sentence: string }>;

/** What to redeploy, and where. Without `authority`, the localnet's own development key signs. */
type UpgradeRequest = Readonly<{
  rpcUrl: string;
  programId: string;
  clock: Clock;
  signal: AbortSignal;
  authority?: TransactionSigner;
  timeoutMs?: number;
}>;

/** Redeploys a program with the code it has, and waits until the new deploy slot is confirmed. Never rejects. */
export async function upgradeProgram(request: UpgradeRequest): Promise<UpgradeOutcome> {
  const timeoutMs = request.timeoutMs ?? UPGRADE_TIMEOUT_MS;
  const signal = AbortSignal.any([request.signal, AbortSignal.timeout(timeoutMs)]);
  try {
    return await upgrade(request, { rpc: createSolanaRpc(request.rpcUrl), clock: request.clock, signal });
  } catch (cause) {
    if (signal.aborted) {
      return {
        kind: 'timed-out',
        sentence: `${request.programId} was not redeployed within ${timeoutMs} ms.`,
      };
    }
    return failureFrom(cause, request.rpcUrl);
  }
}

async function upgrade(request: UpgradeRequest, context: UpgradeContext): Promise<UpgradeOutcome> {
  const { programId } = request;
  const target = await readTarget(context.rpc, programId, context.signal);
  if (target.kind === 'not-upgradeable') return target;
  const authority =
    request.authority ?? (await createKeyPairSignerFromPrivateKeyBytes(upgradeAuthorityKeypair().privateKey));
  if (authority.address !== target.authority) {
    return refusal('other-authority', `${programId} may only be redeployed by ${target.authority}.`);
  }
  const signers = { payer: await generateKeyPairSigner(), buffer: await generateKeyPairSigner(), authority };
  await fundPayer(context, signers.payer.address);
  await writeBuffer(context, target, signers);
  const slots = await upgradeFrom(context, target, signers);
  return { kind: 'upgraded', programId, ...slots };
}

function failureFrom(cause: unknown, rpcUrl: string): UpgradeOutcome {
  const reason = cause instanceof Error ? cause.message : String(cause);
  const isHttp = isSolanaError(cause, SOLANA_ERROR__RPC__TRANSPORT_HTTP_ERROR);
  const isRefused =
    cause instanceof Error &&
    'code' in cause &&
    /^(Connection|ECONN|ENOTFOUND|FailedToOpen)/.test(String(cause.code));
  if (isHttp || isRefused) {
    return { kind: 'unreachable', sentence: `No localnet answers at ${rpcUrl} (${reason}).` };
  }
  return { kind: 'failed', sentence: `The redeploy failed: ${reason}.` };
}

/*
 * The transactions of a redeploy: money for a payer, a buffer with the code, and the loader's upgrade.
 */

const BUFFER_HEADER_BYTES = 37;
const CHUNK_BYTES = 900;
const PAYER_LAMPORTS = lamports(100_000_000_000n);
const POLL_MS = 50;

/** What the transactions need. */
type UpgradeContext = Readonly<{
  rpc: Rpc<SolanaRpcApi & RequestAirdropApi>;
  clock: Clock;
  signal: AbortSignal;
}>;

/** Who pays, who may upgrade, and the buffer. */
type Signers = Readonly<Record<'payer' | 'authority' | 'buffer', TransactionSigner>>;

/** Gives a payer what a buffer and the fees cost. */
export async function fundPayer(context: UpgradeContext, payer: Address): Promise<void> {
  const request = context.rpc.requestAirdrop(payer, PAYER_LAMPORTS, { commitment: 'confirmed' });
  await confirmed(context, await request.send({ abortSignal: context.signal }));
}

/** Puts the target's code into a new buffer. */
export async function writeBuffer(
  context: UpgradeContext,
  target: UpgradeTarget,
  signers: Signers,
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
type UpgradeSlots = Readonly<{ previousSlot: bigint; deploySlot: bigint }>;

/**
 * Lets the loader take the buffer's code. The loader redeploys a program once a slot; when somebody else came first,
 * the next slot is tried, until the signal aborts.
 */
export async function upgradeFrom(
  context: UpgradeContext,
  target: UpgradeTarget,
  signers: Signers,
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

/*
 * What stands at a program's address, read over JSON-RPC, and whether the upgradeable loader could redeploy it.
 */

const PROGRAM_BYTES = 36;
const HEADER_BYTES = 45;

/** A program that an upgrade can be tried on. `elf` is the code it has now. */
type UpgradeTarget = Readonly<{
  kind: 'upgradeable';
  program: Address;
  programData: Address;
  deploySlot: bigint;
  authority: Address;
  elf: Uint8Array;
}>;

/** Why a program cannot be redeployed; `sentence` is for the operator. */
type NotUpgradeable = Readonly<{
  kind: 'not-upgradeable';
  reason: 'malformed' | 'unknown' | 'other-loader' | 'frozen' | 'no-program-data' | 'other-authority';
  sentence: string;
}>;

/** Reads a program at `confirmed`. */
export async function readTarget(
  rpc: Rpc<SolanaRpcApi>,
  program: string,
  signal: AbortSignal,
): Promise<UpgradeTarget | NotUpgradeable> {
  if (!isAddress(program)) return refusal('malformed', `${program} is not an address.`);
  const account = await readAccount(rpc, program, signal);
  if (account === undefined) return refusal('unknown', `There is no program ${program} on this chain.`);
  if (account.owner !== LOADER_V3 || account.data.length !== PROGRAM_BYTES || account.data[0] !== 2) {
    return refusal(
      'other-loader',
      `${program} is not a program of the upgradeable loader (its owner is ${account.owner}).`,
    );
  }
  const programData = addressOf(account.data.subarray(4, PROGRAM_BYTES));
  const code = await readAccount(rpc, programData, signal);
  if (code === undefined || code.data.length < HEADER_BYTES) {
    return refusal('no-program-data', `The ProgramData account of ${program} is gone.`);
  }
  if (code.data[12] !== 1) return refusal('frozen', `${program} is frozen: it has no upgrade authority.`);
  return {
    kind: 'upgradeable',
    program,
    programData,
    deploySlot: new DataView(code.data.buffer, code.data.byteOffset).getBigUint64(4, true),
    authority: addressOf(code.data.subarray(13, HEADER_BYTES)),
    elf: code.data.subarray(HEADER_BYTES),
  };
}

/** A refusal. */
function refusal(reason: NotUpgradeable['reason'], sentence: string): NotUpgradeable {
  return { kind: 'not-upgradeable', reason, sentence };
}

async function readAccount(rpc: Rpc<SolanaRpcApi>, address: Address, signal: AbortSignal) {
  const config = { commitment: 'confirmed', encoding: 'base64' } as const;
  const { value } = await rpc.getAccountInfo(address, config).send({ abortSignal: signal });
  if (value === null) return undefined;
  return { owner: value.owner, data: new Uint8Array(Buffer.from(value.data[0], 'base64')) };
}

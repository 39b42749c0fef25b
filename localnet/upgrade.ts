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
import * as kit from '@solana/kit';
import type { Clock } from '../shared/clock.ts';
import { codeOf } from '../shared/store/private.ts';
import { addressOf, LOADER_V3 } from './protocol/address.ts';
import { upgradeAuthorityKeypair } from './protocol/keypair.ts';

const UPGRADE_TIMEOUT_MS = 60_000;
const BUFFER_HEADER_BYTES = 37;
const CHUNK_BYTES = 900;
const PAYER_LAMPORTS = kit.lamports(100_000_000_000n);
const POLL_MS = 50;
const PROGRAM_BYTES = 36;
const HEADER_BYTES = 45;

/** The outcome; `sentence` is for the operator. */
type UpgradeOutcome =
  | Readonly<{ kind: 'upgraded'; programId: string; previousSlot: bigint; deploySlot: bigint }>
  | Readonly<{ kind: 'failed'; sentence: string }>;

/** The program to redeploy, and where. Without `authority`, the localnet's own development key signs. */
type UpgradeRequest = Readonly<{
  rpcUrl: string;
  programId: string;
  clock: Clock;
  signal: AbortSignal;
  authority?: kit.TransactionSigner;
  timeoutMs?: number;
}>;

/** Redeploys a program with the code it has, and waits until the new deploy slot is confirmed. Never rejects. */
export async function upgradeProgram(request: UpgradeRequest): Promise<UpgradeOutcome> {
  const { rpcUrl, programId, clock, timeoutMs = UPGRADE_TIMEOUT_MS } = request;
  const signal = AbortSignal.any([request.signal, AbortSignal.timeout(timeoutMs)]);
  const context = { rpc: kit.createSolanaRpc(rpcUrl), clock, signal };
  try {
    const target = await readTarget(context, programId);
    const authority =
      request.authority ??
      (await kit.createKeyPairSignerFromPrivateKeyBytes(upgradeAuthorityKeypair().privateKey));
    if (authority.address !== target.authority)
      throw new Refusal(`${programId} may only be redeployed by ${target.authority}.`);
    const signers = {
      payer: await kit.generateKeyPairSigner(),
      buffer: await kit.generateKeyPairSigner(),
      authority,
    };
    await fundPayer(context, signers.payer.address);
    await writeBuffer(context, target, signers);
    return { kind: 'upgraded', programId, ...(await upgradeFrom(context, target, signers)) };
  } catch (cause) {
    if (cause instanceof Refusal) return { kind: 'failed', sentence: cause.message };
    if (signal.aborted)
      return { kind: 'failed', sentence: `${programId} was not redeployed within ${timeoutMs} ms.` };
    const reason = cause instanceof Error ? cause.message : String(cause);
    const isUnreachable =
      kit.isSolanaError(cause, kit.SOLANA_ERROR__RPC__TRANSPORT_HTTP_ERROR) ||
      /^(Connection|ECONN|ENOTFOUND|FailedToOpen)/.test(codeOf(cause));
    const sentence = isUnreachable
      ? `No localnet answers at ${rpcUrl} (${reason}).`
      : `The redeploy failed: ${reason}.`;
    return { kind: 'failed', sentence };
  }
}

type UpgradeContext = Readonly<{
  rpc: kit.Rpc<kit.SolanaRpcApi & kit.RequestAirdropApi>;
  clock: Clock;
  signal: AbortSignal;
}>;

type Signers = Readonly<Record<'payer' | 'authority' | 'buffer', kit.TransactionSigner>>;

export async function fundPayer(context: UpgradeContext, payer: kit.Address): Promise<void> {
  const request = context.rpc.requestAirdrop(payer, PAYER_LAMPORTS, { commitment: 'confirmed' });
  await confirmed(context, await request.send({ abortSignal: context.signal }));
}

export async function writeBuffer(
  context: UpgradeContext,
  { elf }: Readonly<{ elf: Uint8Array }>,
  { payer, authority, buffer }: Signers,
): Promise<void> {
  const space = BigInt(BUFFER_HEADER_BYTES + elf.length);
  const { rpc, signal } = context;
  const rent = await rpc.getMinimumBalanceForRentExemption(space).send({ abortSignal: signal });
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
  const [bufferAccount, writes]: [kit.Address, kit.Signature[]] = [buffer.address, []];
  for (let offset = 0; offset < elf.length; offset += CHUNK_BYTES) {
    const bytes = elf.subarray(offset, offset + CHUNK_BYTES);
    const write = getWriteInstruction({ bufferAccount, bufferAuthority: authority, offset, bytes });
    writes.push(await send(context, payer, [write]));
  }
  for (const signature of writes) await confirmed(context, signature);
}

/**
 * Lets the loader take the buffer's code; gives the slots of the deploy before and of this one. The loader redeploys a
 * program once a slot; when another redeploy came first, the next slot is tried, until the signal aborts.
 */
export async function upgradeFrom(context: UpgradeContext, target: UpgradeTarget, signers: Signers) {
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
    const { slot, err } = await landing(context, signature);
    if (err === null) return { previousSlot, deploySlot: slot };
    if (!isInvalidArgument(err)) throw failed(signature, err);
    const { deploySlot } = await readTarget(context, target.program);
    if (deploySlot < slot) throw failed(signature, err);
    previousSlot = deploySlot;
  }
}

/** The loader's word for a program that was deployed in this slot already, among other things. */
function isInvalidArgument(error: kit.TransactionError): boolean {
  return (
    typeof error === 'object' &&
    'InstructionError' in error &&
    error.InstructionError[1] === 'InvalidArgument'
  );
}

export async function send(
  { rpc, signal }: UpgradeContext,
  payer: kit.TransactionSigner,
  instructions: kit.Instruction[],
  skipPreflight = false,
): Promise<kit.Signature> {
  const { value: blockhash } = await rpc
    .getLatestBlockhash({ commitment: 'confirmed' })
    .send({ abortSignal: signal });
  const message = kit.pipe(
    kit.createTransactionMessage({ version: 0 }),
    (made) => kit.setTransactionMessageFeePayerSigner(payer, made),
    (made) => kit.setTransactionMessageLifetimeUsingBlockhash(blockhash, made),
    (made) => kit.appendTransactionMessageInstructions(instructions, made),
  );
  const wire = kit.getBase64EncodedWireTransaction(await kit.signTransactionMessageWithSigners(message));
  const config = { encoding: 'base64', preflightCommitment: 'confirmed', skipPreflight } as const;
  return rpc.sendTransaction(wire, config).send({ abortSignal: signal });
}

/** Waits for a transaction to be confirmed; throws with its error, or when the signal aborts. */
async function confirmed(context: UpgradeContext, signature: kit.Signature): Promise<void> {
  const { err } = await landing(context, signature);
  if (err !== null) throw failed(signature, err);
}

/** Waits for a transaction's slot to be confirmed, whether it failed or not; throws when the signal aborts. */
export async function landing({ rpc, clock, signal }: UpgradeContext, signature: kit.Signature) {
  for (;;) {
    signal.throwIfAborted();
    const { value } = await rpc.getSignatureStatuses([signature]).send({ abortSignal: signal });
    const status = value[0] ?? undefined;
    if (status?.confirmationStatus === 'confirmed' || status?.confirmationStatus === 'finalized')
      return status;
    await clock.sleep(POLL_MS, signal);
  }
}

function failed(signature: kit.Signature, error: kit.TransactionError): Error {
  const print = (_name: string, part: unknown) => (typeof part === 'bigint' ? Number(part) : part);
  return new Error(`transaction ${signature} failed: ${JSON.stringify(error, print)}`);
}

/** A program that an upgrade can be tried on. `elf` is the code it has now. */
type UpgradeTarget = Readonly<Awaited<ReturnType<typeof readTarget>>>;

/** Why a program cannot be redeployed, in a sentence for the operator. */
class Refusal extends Error {}

/** Reads a program at `confirmed`. Throws a Refusal for what the upgradeable loader could not redeploy. */
export async function readTarget(context: UpgradeContext, program: string) {
  if (!kit.isAddress(program)) throw new Refusal(`${program} is not an address.`);
  const account = await readAccount(context, program);
  if (account === undefined) throw new Refusal(`There is no program ${program} on this chain.`);
  if (account.owner !== LOADER_V3 || account.data.length !== PROGRAM_BYTES || account.data[0] !== 2) {
    throw new Refusal(
      `${program} is not a program of the upgradeable loader (its owner is ${account.owner}).`,
    );
  }
  const programData = addressOf(account.data.subarray(4, PROGRAM_BYTES));
  const code = await readAccount(context, programData);
  if (code === undefined || code.data.length < HEADER_BYTES)
    throw new Refusal(`The ProgramData account of ${program} is gone.`);
  if (code.data[12] !== 1) throw new Refusal(`${program} is frozen: it has no upgrade authority.`);
  return {
    program,
    programData,
    deploySlot: code.data.readBigUInt64LE(4),
    authority: addressOf(code.data.subarray(13, HEADER_BYTES)),
    elf: new Uint8Array(code.data.subarray(HEADER_BYTES)),
  };
}

async function readAccount({ rpc, signal }: UpgradeContext, address: kit.Address) {
  const config = { commitment: 'confirmed', encoding: 'base64' } as const;
  const { value } = await rpc.getAccountInfo(address, config).send({ abortSignal: signal });
  return value === null ? undefined : { owner: value.owner, data: Buffer.from(value.data[0], 'base64') };
}

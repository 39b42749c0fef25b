/*
 * Redeploys a program of a running localnet over plain JSON-RPC, with the loader's own transactions, so that
 * everything that watches deploys sees a real one.
 */
import {
  createKeyPairSignerFromPrivateKeyBytes,
  createSolanaRpc,
  generateKeyPairSigner,
  isSolanaError,
  SOLANA_ERROR__RPC__TRANSPORT_HTTP_ERROR,
  type TransactionSigner,
} from '@solana/kit';
import type { Clock } from '../shared/clock.ts';
import { upgradeAuthorityKeypair } from './genesis/keypair.ts';
import { readTarget, refusal, type NotUpgradeable } from './upgrade/target.ts';
import { fundPayer, upgradeFrom, writeBuffer, type UpgradeContext } from './upgrade/transactions.ts';

/** How long a redeploy may take in all. */
export const UPGRADE_TIMEOUT_MS = 60_000;

/** What came of it. Every failing kind carries a sentence for the operator. */
export type UpgradeOutcome =
  | Readonly<{ kind: 'upgraded'; programId: string; previousSlot: bigint; deploySlot: bigint }>
  | NotUpgradeable
  | Readonly<{ kind: 'unreachable'; sentence: string }>
  | Readonly<{ kind: 'timed-out'; sentence: string }>
  | Readonly<{ kind: 'failed'; sentence: string }>;

/** What to redeploy, and where. Without `authority`, the localnet's own development key signs. */
export type UpgradeRequest = Readonly<{
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

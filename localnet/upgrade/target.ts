/*
 * What stands at a program's address, read over JSON-RPC, and whether the upgradeable loader could redeploy it.
 */
import { isAddress, type Address, type Rpc, type SolanaRpcApi } from '@solana/kit';
import { addressOf } from '../chain/address.ts';
import { LOADER_V3 } from '../chain/known-address.ts';

const PROGRAM_BYTES = 36;
const HEADER_BYTES = 45;

/** A program that an upgrade can be tried on. `elf` is the code it has now. */
export type UpgradeTarget = Readonly<{
  kind: 'upgradeable';
  program: Address;
  programData: Address;
  deploySlot: bigint;
  authority: Address;
  elf: Uint8Array;
}>;

/** Why a program cannot be redeployed; `sentence` is for the operator. */
export type NotUpgradeable = Readonly<{
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
export function refusal(reason: NotUpgradeable['reason'], sentence: string): NotUpgradeable {
  return { kind: 'not-upgradeable', reason, sentence };
}

async function readAccount(rpc: Rpc<SolanaRpcApi>, address: Address, signal: AbortSignal) {
  const config = { commitment: 'confirmed', encoding: 'base64' } as const;
  const { value } = await rpc.getAccountInfo(address, config).send({ abortSignal: signal });
  if (value === null) return undefined;
  return { owner: value.owner, data: new Uint8Array(Buffer.from(value.data[0], 'base64')) };
}

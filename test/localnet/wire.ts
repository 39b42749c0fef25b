import type { Address } from '@solana/kit';
import { addressBytes, COMPUTE_BUDGET_PROGRAM, SYSTEM_PROGRAM } from '../../localnet/protocol/address.ts';
import type { Keypair } from '../../localnet/protocol/keypair.ts';

export const SYSTEM = SYSTEM_PROGRAM;
export const COMPUTE_BUDGET = COMPUTE_BUDGET_PROGRAM;

export type WireInstruction = Readonly<{
  program: Address;
  accounts: readonly Address[];
  data: readonly number[];
}>;

/** A signed legacy transaction of any instructions; every account but the programs is writable, only the payer signs. */
export function builtWire(
  payer: Keypair,
  blockhash: string,
  instructions: readonly WireInstruction[],
): Uint8Array {
  const programs = [...new Set(instructions.map(({ program }) => program))];
  const others = new Set(
    instructions.flatMap(({ accounts }) => accounts).filter((key) => !programs.includes(key)),
  );
  others.delete(payer.address);
  const keys = [payer.address, ...others, ...programs];
  const message = Buffer.concat([
    Uint8Array.of(1, 0, programs.length, keys.length),
    ...keys.map(addressBytes),
    // A blockhash has the form of an address.
    addressBytes(blockhash as Address), // only its bytes matter
    Uint8Array.of(instructions.length),
    ...instructions.map(({ program, accounts, data }) =>
      Uint8Array.of(
        keys.indexOf(program),
        accounts.length,
        ...accounts.map((key) => keys.indexOf(key)),
        data.length,
        ...data,
      ),
    ),
  ]);
  return Buffer.concat([Uint8Array.of(1), payer.sign(message), message]);
}

/** The data of a system transfer. */
export function transferData(lamports: bigint): number[] {
  return [2, 0, 0, 0, ...new Uint8Array(BigUint64Array.of(lamports).buffer)];
}

import type { Address } from '@solana/kit';
import {
  COMPUTE_BUDGET_PROGRAM,
  ED25519_PROGRAM,
  LOADER_V1,
  LOADER_V2,
  LOADER_V3,
  LOADER_V4,
  SECP256K1_PROGRAM,
  SECP256R1_PROGRAM,
  SYSTEM_PROGRAM,
  VOTE_PROGRAM,
} from './address.ts';
import { programOf, type Transaction } from './transaction.ts';

/** Lamports for each signature, those that precompiles verify included. */
const LAMPORTS_PER_SIGNATURE = 5_000n;
const UNITS_PER_INSTRUCTION = 200_000n;
const UNITS_PER_BUILTIN_INSTRUCTION = 3_000n;
const UNITS_MAX = 1_400_000n;
const MICRO_LAMPORTS = 1_000_000n;

const PRECOMPILES: ReadonlySet<Address> = new Set([ED25519_PROGRAM, SECP256K1_PROGRAM, SECP256R1_PROGRAM]);
// Agave's builtins that no feature moves to BPF (SIMD-0170); everything else is allotted a program's units.
const BUILTINS: ReadonlySet<Address> = new Set([
  SYSTEM_PROGRAM,
  VOTE_PROGRAM,
  COMPUTE_BUDGET_PROGRAM,
  LOADER_V1,
  LOADER_V2,
  LOADER_V3,
  LOADER_V4,
  ED25519_PROGRAM,
  SECP256K1_PROGRAM,
]);

/** The fee of a transaction in lamports: its signatures, and its price per compute unit times its unit limit. */
export function feeOf(transaction: Transaction): bigint {
  let signatures = BigInt(transaction.signers);
  for (const instruction of transaction.instructions) {
    const program = programOf(transaction, instruction);
    if (program !== undefined && PRECOMPILES.has(program)) signatures += BigInt(instruction.data[0] ?? 0);
  }
  const { price, limit } = computeBudgetOf(transaction);
  return signatures * LAMPORTS_PER_SIGNATURE + (price * limit + MICRO_LAMPORTS - 1n) / MICRO_LAMPORTS;
}

/** The price in micro-lamports per unit, and the unit limit, that a transaction asks for. */
export function computeBudgetOf(transaction: Transaction): Readonly<{ price: bigint; limit: bigint }> {
  let price = 0n;
  let limit: bigint | undefined;
  let allotted = 0n;
  for (const instruction of transaction.instructions) {
    const program = programOf(transaction, instruction);
    allotted +=
      program !== undefined && BUILTINS.has(program) ? UNITS_PER_BUILTIN_INSTRUCTION : UNITS_PER_INSTRUCTION;
    if (program !== COMPUTE_BUDGET_PROGRAM) continue;
    const { data } = instruction;
    const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
    if (data[0] === 2 && data.length >= 5) limit = BigInt(view.getUint32(1, true));
    if (data[0] === 3 && data.length >= 9) price = view.getBigUint64(1, true);
  }
  const units = limit ?? allotted;
  return { price, limit: units < UNITS_MAX ? units : UNITS_MAX };
}

/*
 * A transaction as it came over the wire: signatures and a legacy or v0 message (Solana's bincode with compact-u16
 * lengths). Only its shape is read here; the machine sanitizes and verifies it.
 */
import {
  getBase58Decoder,
  getCompiledTransactionMessageDecoder,
  getShortU16Decoder,
  type Address,
} from '@solana/kit';

const SIGNATURE_BYTES = 64;
const base58 = getBase58Decoder();
const countDecoder = getShortU16Decoder();
const messageDecoder = getCompiledTransactionMessageDecoder();

/** One top-level instruction, in indexes of the account keys. */
export type Instruction = Readonly<{ programIdIndex: number; accounts: readonly number[]; data: Uint8Array }>;

/** What a v0 message takes from a lookup table. */
export type Lookup = Readonly<{ table: Address; writable: readonly number[]; readonly: readonly number[] }>;

/** A transaction that could be read. `signatures` are base58; the first is its name. */
export type Transaction = Readonly<{
  wire: Uint8Array;
  signature: string;
  signatures: readonly string[];
  message: Uint8Array;
  version: 'legacy' | 0;
  signers: number;
  readonlySigners: number;
  readonlyOthers: number;
  staticKeys: readonly Address[];
  recentBlockhash: string;
  instructions: readonly Instruction[];
  lookups: readonly Lookup[];
}>;

/** A transaction, or why the bytes are none. */
export type ReadTransaction =
  Readonly<{ kind: 'read'; transaction: Transaction }> | Readonly<{ kind: 'malformed'; reason: string }>;

/** Reads wire bytes. Trailing bytes are ignored, as Agave ignores them. */
export function readTransaction(wire: Uint8Array): ReadTransaction {
  try {
    const [count, signaturesAt] = countDecoder.read(wire, 0);
    const messageAt = signaturesAt + count * SIGNATURE_BYTES;
    if (count === 0 || messageAt >= wire.length)
      return { kind: 'malformed', reason: 'io error: unexpected end of file' };
    const message = wire.subarray(messageAt);
    const compiled = messageDecoder.decode(message);
    if (compiled.version !== 'legacy' && compiled.version !== 0) {
      return { kind: 'malformed', reason: `transaction version ${compiled.version} is not supported` };
    }
    const signatures = Array.from({ length: count }, (_, index) =>
      base58.decode(
        wire.subarray(signaturesAt + index * SIGNATURE_BYTES, signaturesAt + (index + 1) * SIGNATURE_BYTES),
      ),
    );
    const { header } = compiled;
    const lookups = 'addressTableLookups' in compiled ? (compiled.addressTableLookups ?? []) : [];
    const transaction: Transaction = {
      wire,
      signature: signatures[0] ?? '',
      signatures,
      message,
      version: compiled.version,
      signers: header.numSignerAccounts,
      readonlySigners: header.numReadonlySignerAccounts,
      readonlyOthers: header.numReadonlyNonSignerAccounts,
      staticKeys: compiled.staticAccounts,
      recentBlockhash: compiled.lifetimeToken,
      instructions: compiled.instructions.map((instruction) => ({
        programIdIndex: instruction.programAddressIndex,
        accounts: instruction.accountIndices ?? [],
        data: new Uint8Array(instruction.data ?? []),
      })),
      lookups: lookups.map((lookup) => ({
        table: lookup.lookupTableAddress,
        writable: lookup.writableIndexes,
        readonly: lookup.readonlyIndexes,
      })),
    };
    return { kind: 'read', transaction };
  } catch (cause) {
    return { kind: 'malformed', reason: cause instanceof Error ? cause.message : String(cause) };
  }
}

/** Where the recent blockhash stands in the message: after the version byte, the header and the static keys. */
export function withBlockhash(transaction: Transaction, blockhash: Uint8Array): Uint8Array {
  const headerAt = transaction.version === 'legacy' ? 0 : 1;
  const [, keysAt] = countDecoder.read(transaction.message, headerAt + 3);
  const replaced = new Uint8Array(transaction.wire);
  const messageAt = transaction.wire.length - transaction.message.length;
  replaced.set(blockhash, messageAt + keysAt + transaction.staticKeys.length * 32);
  return replaced;
}

/** The program that an instruction calls; a static key, or none when the index is out of range. */
export function programOf(transaction: Transaction, instruction: Instruction): Address | undefined {
  return transaction.staticKeys[instruction.programIdIndex];
}

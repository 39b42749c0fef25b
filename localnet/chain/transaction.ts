/*
 * A transaction as it came over the wire: signatures and a legacy or v0 message (Solana's bincode with compact-u16
 * lengths). Only its shape is read here; the machine sanitizes and verifies it.
 */
import { getBase58Decoder, type Address } from '@solana/kit';
import { addressOf } from './address.ts';
import { createWireReader, MalformedWire, type WireReader } from './wire-reader.ts';

const SIGNATURE_BYTES = 64;
const ADDRESS_BYTES = 32;
const VERSIONED = 0x80;
const base58 = getBase58Decoder();

/** One top-level instruction, in indexes of the account keys. */
export type Instruction = Readonly<{ programIdIndex: number; accounts: readonly number[]; data: Uint8Array }>;

/** What a v0 message takes from a lookup table. */
export type Lookup = Readonly<{ table: Address; writable: readonly number[]; readonly: readonly number[] }>;

/** The parts of a message; `blockhashAt` is where its blockhash stands within it. */
type Message = Readonly<{
  version: 'legacy' | 0;
  signers: number;
  readonlySigners: number;
  readonlyOthers: number;
  staticKeys: readonly Address[];
  blockhashAt: number;
  recentBlockhash: string;
  instructions: readonly Instruction[];
  lookups: readonly Lookup[];
}>;

/** A transaction that could be read. `signatures` are base58; the first is its name. */
export type Transaction = Message &
  Readonly<{ wire: Uint8Array; message: Uint8Array; signature: string; signatures: readonly string[] }>;

/** A transaction, or why the bytes are none. */
export type ReadTransaction =
  Readonly<{ kind: 'read'; transaction: Transaction }> | Readonly<{ kind: 'malformed'; reason: string }>;

/** Reads wire bytes. Trailing bytes are ignored and left out, as Agave ignores them. */
export function readTransaction(bytes: Uint8Array): ReadTransaction {
  try {
    const reader = createWireReader(bytes);
    const signatures = reader.list(() => base58.decode(reader.bytes(SIGNATURE_BYTES)));
    const [signature] = signatures;
    if (signature === undefined) return { kind: 'malformed', reason: 'a transaction without a signature' };
    const messageAt = reader.at();
    const message = readMessage(reader);
    const wire = bytes.slice(0, reader.at());
    return {
      kind: 'read',
      transaction: { ...message, wire, message: wire.subarray(messageAt), signature, signatures },
    };
  } catch (cause) {
    if (cause instanceof MalformedWire) return { kind: 'malformed', reason: cause.message };
    throw cause;
  }
}

function readMessage(reader: WireReader): Message {
  const messageAt = reader.at();
  const first = reader.byte();
  if (first > VERSIONED) throw new MalformedWire(`transaction version ${first - VERSIONED} is not supported`);
  const isVersioned = first === VERSIONED;
  const signers = isVersioned ? reader.byte() : first;
  const readonlySigners = reader.byte();
  const readonlyOthers = reader.byte();
  const readAddress = () => addressOf(reader.bytes(ADDRESS_BYTES));
  const staticKeys = reader.list(readAddress);
  const blockhashAt = reader.at() - messageAt;
  const recentBlockhash = readAddress();
  const instructions = reader.list(() => readInstruction(reader));
  const lookups = isVersioned
    ? reader.list(() => ({
        table: readAddress(),
        writable: reader.list(reader.byte),
        readonly: reader.list(reader.byte),
      }))
    : [];
  const version = isVersioned ? 0 : 'legacy';
  const header = { version, signers, readonlySigners, readonlyOthers } as const;
  return { ...header, staticKeys, blockhashAt, recentBlockhash, instructions, lookups };
}

function readInstruction(reader: WireReader): Instruction {
  const programIdIndex = reader.byte();
  const accounts = reader.list(reader.byte);
  return { programIdIndex, accounts, data: reader.bytes(reader.count()) };
}

/** The wire bytes with another blockhash; the signatures no longer fit them. */
export function withBlockhash(transaction: Transaction, blockhash: Uint8Array): Uint8Array {
  const replaced = new Uint8Array(transaction.wire);
  const messageAt = transaction.wire.length - transaction.message.length;
  replaced.set(blockhash, messageAt + transaction.blockhashAt);
  return replaced;
}

/** The program that an instruction calls; a static key, or none when the index is out of range. */
export function programOf(transaction: Transaction, instruction: Instruction): Address | undefined {
  return transaction.staticKeys[instruction.programIdIndex];
}

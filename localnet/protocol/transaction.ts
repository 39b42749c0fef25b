/*
 * A transaction as it came over the wire: signatures and a legacy or v0 message (Solana's bincode with compact-u16
 * lengths). Only its shape is read here; the machine sanitizes and verifies it.
 */
import { createHash } from 'node:crypto';
import { type Address, getBase58Decoder, getBase58Encoder } from '@solana/kit';
import type { AccountState, ReadAccount } from './account.ts';
import {
  ADDRESS_LOOKUP_TABLE_PROGRAM,
  addressOf,
  LOADER_V3,
  MEMO_PROGRAM,
  MEMO_V1_PROGRAM,
  NATIVE_LOADER,
  SYSTEM_PROGRAM,
  SYSVAR_OWNER,
} from './address.ts';

const SIGNATURE_BYTES = 64;
const ADDRESS_BYTES = 32;
const VERSIONED = 0x80;
const base58 = getBase58Decoder();
const base58Encoder = getBase58Encoder();
const utf8 = new TextDecoder('utf-8', { fatal: true });

/** One top-level instruction, in indexes of the account keys. */
type Instruction = Readonly<{ programIdIndex: number; accounts: readonly number[]; data: Uint8Array }>;

/** What a v0 message takes from a lookup table. */
type Lookup = Readonly<{ table: Address; writable: readonly number[]; readonly: readonly number[] }>;

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
type ReadTransaction =
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

/*
 * Bytes read strictly: what ends too early or counts in a way that Solana's own reader would not is refused. LiteSVM
 * aborts the process on bytes that it cannot read, so nothing reaches it that was not read to the end here.
 */

/** Why bytes are no transaction, in the words of Rust's readers. */
class MalformedWire extends Error {}

/** A cursor over bytes. Every method refuses by throwing MalformedWire, which `readTransaction` alone catches. */
type WireReader = Readonly<{
  at(): number;
  byte(): number;
  bytes(length: number): Uint8Array;
  /** A compact-u16: at most three bytes, as few as possible. */
  count(): number;
  /** As many items as a count says. */
  list<Item>(read: () => Item): Item[];
}>;

/** Reads from the beginning. */
export function createWireReader(wire: Uint8Array): WireReader {
  let at = 0;

  function byte(): number {
    const value = wire[at];
    if (value === undefined) throw new MalformedWire('io error: unexpected end of file');
    at += 1;
    return value;
  }

  function bytes(length: number): Uint8Array {
    if (at + length > wire.length) throw new MalformedWire('io error: unexpected end of file');
    at += length;
    return wire.subarray(at - length, at);
  }

  function count(): number {
    let value = 0;
    for (let place = 0; place < 3; place += 1) {
      const part = byte();
      if (part === 0 && place > 0) throw new MalformedWire('invalid value: a length with a needless byte');
      value |= (part & 0x7f) << (7 * place);
      if (part < 0x80) {
        if (value > 0xffff) break;
        return value;
      }
    }
    throw new MalformedWire('invalid value: a length above u16');
  }

  function list<Item>(read: () => Item): Item[] {
    const length = count();
    const items: Item[] = [];
    for (let index = 0; index < length; index += 1) items.push(read());
    return items;
  }

  return { at: () => at, byte, bytes, count, list };
}

/*
 * The account keys of a transaction in the runtime's order: static keys, then writable and readonly keys loaded
 * from lookup tables; and which of them may be written.
 */

const TABLE_HEADER_BYTES = 56;

/** Keys loaded from lookup tables. */
export type LoadedKeys = Readonly<{ writable: readonly Address[]; readonly: readonly Address[] }>;

/** Looks the keys of a v0 message up. A table or an index that is not there gives nothing: the machine refuses it. */
export function loadKeys(transaction: Transaction, account: ReadAccount): LoadedKeys {
  const writable: Address[] = [];
  const readonly: Address[] = [];
  for (const lookup of transaction.lookups) {
    const table = account(lookup.table);
    if (table === undefined || table.owner !== ADDRESS_LOOKUP_TABLE_PROGRAM) continue;
    const keyAt = (index: number) => {
      const start = TABLE_HEADER_BYTES + index * 32;
      return start + 32 <= table.data.length ? [addressOf(table.data.subarray(start, start + 32))] : [];
    };
    writable.push(...lookup.writable.flatMap(keyAt));
    readonly.push(...lookup.readonly.flatMap(keyAt));
  }
  return { writable, readonly };
}

/** All keys, in the order that indexes refer to. */
export function allKeys(transaction: Transaction, loaded: LoadedKeys): Address[] {
  return [...transaction.staticKeys, ...loaded.writable, ...loaded.readonly];
}

/** Whether the message asks to write the account at `index`. */
function isRequestedWritable(transaction: Transaction, loaded: LoadedKeys, index: number): boolean {
  const { signers, readonlySigners, readonlyOthers, staticKeys } = transaction;
  if (index < signers) return index < signers - readonlySigners;
  if (index < staticKeys.length) return index < staticKeys.length - readonlyOthers;
  return index < staticKeys.length + loaded.writable.length;
}

/**
 * Whether the runtime lets the account be written: requested, and neither reserved (native programs, sysvars) nor
 * called as a program, unless the upgradeable loader takes part (Agave's `is_maybe_writable`).
 */
export function isWritable(
  transaction: Transaction,
  loaded: LoadedKeys,
  index: number,
  account: ReadAccount,
): boolean {
  if (!isRequestedWritable(transaction, loaded, index)) return false;
  const keys = allKeys(transaction, loaded);
  const key = keys[index];
  if (key === undefined) return false;
  const owner = account(key)?.owner;
  if (owner === NATIVE_LOADER || owner === SYSVAR_OWNER || key === NATIVE_LOADER) return false;
  const isCalled = transaction.instructions.some((instruction) => instruction.programIdIndex === index);
  return !isCalled || keys.includes(LOADER_V3);
}

/*
 * Durable nonces: a transaction whose first instruction advances a nonce account may carry, instead of a recent
 * blockhash, the nonce that the account holds.
 */

const ADVANCE_NONCE_ACCOUNT = 4;
const NONCE_ACCOUNT_BYTES = 80;
const CURRENT_VERSION = 1;
const INITIALIZED = 1;
const AUTHORITY_AT = 8;
const NONCE_AT = 40;

/** The nonce account that carries a transaction, when its nonce is the transaction's blockhash and its authority signs. */
export function nonceAccountOf(transaction: Transaction, account: ReadAccount): Address | undefined {
  const advance = transaction.instructions[0];
  if (advance === undefined || programOf(transaction, advance) !== SYSTEM_PROGRAM) return undefined;
  if (advance.data[0] !== ADVANCE_NONCE_ACCOUNT || advance.data[1] !== 0) return undefined;
  const nonceAddress = transaction.staticKeys[advance.accounts[0] ?? -1];
  if (nonceAddress === undefined) return undefined;
  const state = account(nonceAddress);
  if (state === undefined || state.owner !== SYSTEM_PROGRAM || state.data.length !== NONCE_ACCOUNT_BYTES)
    return undefined;
  const view = new DataView(state.data.buffer, state.data.byteOffset);
  if (view.getUint32(0, true) !== CURRENT_VERSION || view.getUint32(4, true) !== INITIALIZED)
    return undefined;
  if (base58.decode(state.data.subarray(NONCE_AT, NONCE_AT + 32)) !== transaction.recentBlockhash)
    return undefined;
  const authority = addressOf(state.data.subarray(AUTHORITY_AT, AUTHORITY_AT + 32));
  const signs = advance.accounts.some(
    (index) => index < transaction.signers && transaction.staticKeys[index] === authority,
  );
  return signs ? nonceAddress : undefined;
}

/** The nonce account after `blockhash` was used up by a transaction that failed. */
export function advancedNonce(state: AccountState, blockhash: string): AccountState {
  const data = new Uint8Array(state.data);
  data.set(
    createHash('sha256')
      .update('DURABLE_NONCE')
      .update(new Uint8Array(base58Encoder.encode(blockhash)))
      .digest(),
    NONCE_AT,
  );
  return { ...state, data };
}

/** The memos of a transaction as getSignaturesForAddress gives them: `[length] text`, joined by `; `. */
export function memoOf(transaction: Transaction): string | null {
  const memos = transaction.instructions.flatMap((instruction) => {
    const program = programOf(transaction, instruction);
    if (program !== MEMO_PROGRAM && program !== MEMO_V1_PROGRAM) return [];
    return [`[${instruction.data.length}] ${textOf(instruction.data)}`];
  });
  return memos.length === 0 ? null : memos.join('; ');
}

function textOf(data: Uint8Array): string {
  try {
    return utf8.decode(data);
  } catch {
    return '(unparseable)';
  }
}

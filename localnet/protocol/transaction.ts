/*
 * A transaction as it came over the wire: signatures and a legacy or v0 message (Solana's bincode with compact-u16
 * lengths). Only its shape is read here; the machine sanitizes and verifies it.
 */
import { createHash } from 'node:crypto';
import { getNonceDecoder, getNonceEncoder, NonceState, NonceVersion } from '@solana-program/system';
import { type Address, getBase58Decoder } from '@solana/kit';
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
const utf8 = new TextDecoder('utf-8', { fatal: true });

/** A transaction that could be read. Its first signature, in base58, is its name. */
export type Transaction = ReturnType<typeof readWire>;

/** One top-level instruction, in indexes of the account keys. */
type Instruction = Transaction['instructions'][number];

/** Reads wire bytes, or says why they are no transaction. Trailing bytes are ignored and left out, as Agave ignores them. */
export function readTransaction(bytes: Uint8Array) {
  try {
    return { kind: 'read', transaction: readWire(bytes) } as const;
  } catch (cause) {
    if (cause instanceof MalformedWire) return { kind: 'malformed', reason: cause.message } as const;
    throw cause;
  }
}

function readWire(bytes: Uint8Array) {
  const reader = createWireReader(bytes);
  const readAddress = () => addressOf(reader.bytes(ADDRESS_BYTES));
  const signatures = reader.list(() => base58.decode(reader.bytes(SIGNATURE_BYTES)));
  const messageAt = reader.at();
  const first = reader.byte();
  if (first > VERSIONED) throw new MalformedWire(`transaction version ${first - VERSIONED} is not supported`);
  const version = first === VERSIONED ? 0 : ('legacy' as const);
  const signers = version === 0 ? reader.byte() : first;
  const readonlySigners = reader.byte();
  const readonlyOthers = reader.byte();
  const staticKeys = reader.list(readAddress);
  const blockhashAt = reader.at();
  const recentBlockhash = readAddress();
  const instructions = reader.list(() => ({
    programIdIndex: reader.byte(),
    accounts: reader.list(reader.byte),
    data: reader.bytes(reader.count()),
  }));
  const readLookup = () => ({
    table: readAddress(),
    writable: reader.list(reader.byte),
    readonly: reader.list(reader.byte),
  });
  const lookups = version === 0 ? reader.list(readLookup) : [];
  const wire = bytes.slice(0, reader.at());
  const [signature] = signatures;
  if (signature === undefined) throw new MalformedWire('a transaction without a signature');
  const header = { version, signers, readonlySigners, readonlyOthers } as const;
  const parts = { staticKeys, blockhashAt, recentBlockhash, instructions, lookups };
  return { signature, signatures, wire, message: wire.subarray(messageAt), ...header, ...parts } as const;
}

/** The wire bytes with another blockhash; the signatures no longer fit them. */
export function withBlockhash({ wire, blockhashAt }: Transaction, blockhash: Uint8Array): Uint8Array {
  const replaced = new Uint8Array(wire);
  replaced.set(blockhash, blockhashAt);
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
export function createWireReader(wire: Uint8Array) {
  let at = 0;

  function byte(): number {
    const value = wire[at];
    if (value === undefined) throw new MalformedWire('io error: failed to fill whole buffer');
    at += 1;
    return value;
  }

  function bytes(length: number): Uint8Array {
    if (at + length > wire.length) throw new MalformedWire('io error: failed to fill whole buffer');
    at += length;
    return wire.subarray(at - length, at);
  }

  /** A compact-u16: at most three bytes, as few as possible. */
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
    return Array.from({ length: count() }, read);
  }

  return { at: () => at, byte, bytes, count, list };
}

/*
 * The account keys of a transaction in the runtime's order: static keys, then writable and readonly keys loaded
 * from lookup tables; and which of them may be written.
 */

/** The header of a lookup table, before its addresses. */
export const LOOKUP_TABLE_HEADER_BYTES = 56;

export type LoadedKeys = Readonly<{ writable: readonly Address[]; readonly: readonly Address[] }>;

/** Looks the keys of a v0 message up. A table or an index that is not there gives nothing: the machine refuses it. */
export function loadKeys(transaction: Transaction, account: ReadAccount): LoadedKeys {
  const writable: Address[] = [];
  const readonly: Address[] = [];
  for (const lookup of transaction.lookups) {
    const table = account(lookup.table);
    if (table === undefined || table.owner !== ADDRESS_LOOKUP_TABLE_PROGRAM) continue;
    const keyAt = (index: number) => {
      const start = LOOKUP_TABLE_HEADER_BYTES + index * 32;
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

/**
 * The keys that the runtime lets be written: those that the message asks to write, but neither reserved ones (native
 * programs, sysvars) nor those called as a program, unless the upgradeable loader takes part (Agave's `is_maybe_writable`).
 */
export function writableKeysOf(transaction: Transaction, loaded: LoadedKeys, account: ReadAccount) {
  const { signers, readonlySigners, readonlyOthers, staticKeys, instructions } = transaction;
  const keys = allKeys(transaction, loaded);
  const called = keys.includes(LOADER_V3) ? [] : instructions.map(({ programIdIndex }) => programIdIndex);
  return keys.filter((key, index) => {
    const owner = account(key)?.owner;
    if (owner === NATIVE_LOADER || owner === SYSVAR_OWNER || key === NATIVE_LOADER) return false;
    if (called.includes(index)) return false;
    if (index < signers) return index < signers - readonlySigners;
    if (index < staticKeys.length) return index < staticKeys.length - readonlyOthers;
    return index < staticKeys.length + loaded.writable.length;
  });
}

/*
 * Durable nonces: a transaction whose first instruction advances a nonce account may carry, instead of a recent
 * blockhash, the nonce that the account holds.
 */

const ADVANCE_NONCE_ACCOUNT = 4;
const WITHDRAW_NONCE_ACCOUNT = 5;
const INITIALIZE_NONCE_ACCOUNT = 6;
const WITH_NEWEST_BLOCKHASH: ReadonlySet<unknown> = new Set([
  ADVANCE_NONCE_ACCOUNT,
  WITHDRAW_NONCE_ACCOUNT,
  INITIALIZE_NONCE_ACCOUNT,
]);
const NONCE_ACCOUNT_BYTES = 80;
const nonceDecoder = getNonceDecoder();
const nonceEncoder = getNonceEncoder();

/** The nonce account that carries a transaction, when its nonce is the transaction's blockhash and its authority signs. */
export function nonceAccountOf(transaction: Transaction, account: ReadAccount): Address | undefined {
  const { instructions, staticKeys, signers, recentBlockhash } = transaction;
  const [advance] = instructions;
  if (advance === undefined || programOf(transaction, advance) !== SYSTEM_PROGRAM) return undefined;
  if (advance.data[0] !== ADVANCE_NONCE_ACCOUNT || advance.data[1] !== 0) return undefined;
  const nonceAddress = staticKeys[advance.accounts[0] ?? -1];
  const found = nonceAddress === undefined ? undefined : account(nonceAddress);
  if (found?.owner !== SYSTEM_PROGRAM || found.data.length !== NONCE_ACCOUNT_BYTES) return undefined;
  const { version, state, authority, blockhash } = nonceDecoder.decode(found.data);
  const isUsable = version === NonceVersion.Current && state === NonceState.Initialized;
  if (!isUsable || blockhash !== recentBlockhash) return undefined;
  const signs = advance.accounts.some((index) => index < signers && staticKeys[index] === authority);
  return signs ? nonceAddress : undefined;
}

/** Whether an instruction makes a nonce, or compares one with what would be made: both of the bank's newest blockhash. */
export function derivesNonce(transaction: Transaction): boolean {
  return transaction.instructions.some(
    (each) => programOf(transaction, each) === SYSTEM_PROGRAM && WITH_NEWEST_BLOCKHASH.has(each.data[0]),
  );
}

/** The nonce account after its nonce was used up by a transaction that failed, in a bank of this newest blockhash. */
export function advancedNonce(state: AccountState, blockhash: Uint8Array): AccountState {
  const next = createHash('sha256').update('DURABLE_NONCE').update(blockhash).digest();
  const nonce = { ...nonceDecoder.decode(state.data), blockhash: addressOf(next) };
  return { ...state, data: new Uint8Array(nonceEncoder.encode(nonce)) };
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

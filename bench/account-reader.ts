import { getBase58Encoder } from '@solana/kit';
import Assembler from 'stream-json/core/assembler.js';
import { jsonParser, type Token } from 'stream-json/core/parser.js';
import type { ScanOptions } from './arguments.ts';

/** What a scan asked for, by which each of its accounts is judged. */
type AccountRules = Pick<ScanOptions, 'filters' | 'slice'> & Readonly<{ program: string }>;

/** Takes the text of an answer piece by piece. It throws a sentence when the text can be no such answer. */
export type AccountReader = Readonly<{
  push(text: string): void;
  /** What the text was when it ended; `refused`: an error instead of accounts. */
  end(): Ending;
}>;

type Ending =
  | Readonly<{ kind: 'whole'; slot: number | null }>
  | Readonly<{ kind: 'unfinished'; reason: string }>
  | Readonly<{ kind: 'refused'; reason: string }>;

/** Told what is wrong with each account; `undefined`: nothing. */
type OnAccount = (wrong: string | undefined) => void;

/** An account is at most 10 MiB on the chain, 14 MB in base64. What is longer never ends. */
const ACCOUNT_CHARACTERS_MAX = 64_000_000;
/** Of addresses that a scan knows again: a power of two, and what may be in use of it. */
const WORDS_MAX = 2 ** 24;
const HASHES_MAX = 6_000_000;

/** Checks the accounts of one scan in turn; gives what is wrong with each. */
export function accountCheck({
  program,
  filters,
  slice,
}: AccountRules): (account: unknown) => string | undefined {
  const base58 = getBase58Encoder();
  const size = filters.find((filter) => 'dataSize' in filter)?.dataSize;
  const compared = filters.flatMap((filter) => {
    if (!('memcmp' in filter)) return [];
    const { offset, bytes, encoding } = filter.memcmp;
    return {
      offset,
      bytes: Buffer.from(encoding === 'base64' ? Buffer.from(bytes, 'base64') : base58.encode(bytes)),
    };
  });
  const from = slice?.offset ?? 0;
  const sliced = slice?.length ?? Infinity;
  const seen = new SeenAddresses();
  return (value) => {
    const { pubkey, account } = Object(value);
    if (!isAddress(pubkey)) return 'its address is none';
    // The limbs are those of the address above.
    if (!seen.add(LIMBS)) return 'it came before';
    const { data, owner, lamports, executable, space } = Object(account);
    if (owner !== program) return 'another program owns it';
    if (!isWhole(lamports) || typeof executable !== 'boolean') return 'lamports or executable are wrong';
    if (!Array.isArray(data) || data.length !== 2 || data[1] !== 'base64') return 'its data is not base64';
    const bytes = bytesOf(data[0]);
    if (bytes === undefined) return 'its data is not base64';
    if (space !== undefined && !isWhole(space)) return 'its space is no number';
    const whole: number | undefined = space ?? size;
    const length = Math.min(sliced, Math.max(0, (whole ?? Infinity) - from));
    if (whole === undefined ? bytes.length > length : bytes.length !== length)
      return 'its data has another length';
    if (size !== undefined && whole !== size) return 'it does not match dataSize';
    for (const { offset, bytes: expected } of compared) {
      if (whole !== undefined && offset + expected.length > whole) return 'it does not match memcmp';
      // What the slice leaves out cannot be seen.
      const at = offset - from;
      const [start, end] = [Math.max(0, at), Math.min(at + expected.length, sliced)];
      if (start < end && !expected.subarray(start - at, end - at).equals(bytes.subarray(start, end)))
        return 'it does not match memcmp';
    }
    return undefined;
  };
}

/** The addresses of a scan as hashes of 63 bits in 64 MiB at most. Of more than it can keep, the later ones are not kept. */
class SeenAddresses {
  /** Two words a hash, by open addressing; 0 is free. */
  #words = new Uint32Array(131_072);
  #count = 0;

  /** Whether the address, as its limbs, is new. */
  add(limbs: Uint32Array): boolean {
    let [low, high] = [0, 0];
    for (const limb of limbs) {
      low = Math.imul(low ^ limb, 0x9e3779b1);
      low ^= low >>> 15;
      high = Math.imul(high + limb, 0x85ebca6b);
      high ^= high >>> 13;
    }
    if (8 * this.#count >= 3 * this.#words.length) this.#grow();
    return this.#put(low >>> 0, (high | 1) >>> 0);
  }

  #put(low: number, high: number): boolean {
    const words = this.#words;
    const last = words.length - 2;
    let at = (2 * low) & last;
    for (; words[at + 1] !== 0; at = (at + 2) & last)
      if (words[at] === low && words[at + 1] === high) return false;
    if (this.#count >= HASHES_MAX) return true;
    words[at] = low;
    words[at + 1] = high;
    this.#count++;
    return true;
  }

  #grow(): void {
    const old = this.#words;
    if (old.length >= WORDS_MAX) return;
    this.#words = new Uint32Array(2 * old.length);
    this.#count = 0;
    for (let at = 0; at < old.length; at += 2)
      if (old[at + 1] !== 0) this.#put(old[at] ?? 0, old[at + 1] ?? 0);
    // Freed now and not when the runtime collects.
    old.buffer.transfer(0);
  }
}

/** The digits of base58, by their value. */
export const BASE58 = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
const DIGITS = new Int8Array(128).fill(-1);
for (const [i, character] of [...BASE58].entries()) DIGITS[character.charCodeAt(0)] = i;
/** 256 bits as ten limbs of 26, the lowest first: a product with 58 stays below 2^32. */
const LIMBS = new Uint32Array(10);

/** Whether the text is 32 bytes in base58. kit's own check decodes by BigInt, which is slow for every account of gigabytes. */
export function isAddress(text: unknown): boolean {
  if (typeof text !== 'string' || text.length < 32 || text.length > 44) return false;
  LIMBS.fill(0);
  for (let i = 0; i < text.length; i++) {
    let carry = DIGITS[text.charCodeAt(i)] ?? -1;
    if (carry < 0) return false;
    for (let limb = 0; limb < LIMBS.length; limb++) {
      const sum = (LIMBS[limb] ?? 0) * 58 + carry;
      LIMBS[limb] = sum & 0x3ffffff;
      carry = Math.floor(sum / 0x4000000);
    }
  }
  // Nine limbs are 234 bits; the tenth may have 22.
  const bits = 234 + 32 - Math.clz32(LIMBS[9] ?? 0);
  if (bits > 256) return false;
  // Each leading `1` is a byte of 0 in front of the number.
  const zeros = /^1*/.exec(text)?.[0].length ?? 0;
  let bytes = 0;
  for (let limb = LIMBS.length - 1; limb >= 0 && bytes === 0; limb--) {
    const value = LIMBS[limb] ?? 0;
    if (value > 0) bytes = Math.ceil((26 * limb + 32 - Math.clz32(value)) / 8);
  }
  return zeros + bytes === 32;
}

function isWhole(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= 0;
}

/** The bytes of a text in base64, padded and with nothing else in it. */
function bytesOf(text: unknown): Buffer | undefined {
  if (typeof text !== 'string') return undefined;
  const bytes = Buffer.from(text, 'base64');
  // The decoder passes over what is no base64; what it made of it shows that.
  return bytes.toString('base64') === text ? bytes : undefined;
}

/** Where a JSON answer is: before it, in it, in a `result` with a context, in its accounts, or behind it. */
type Position = 'before' | 'answer' | 'result' | 'accounts' | 'behind';

/** Reads a JSON answer of any length by stream-json, an account at a time. */
export class JsonAccounts implements AccountReader {
  readonly #parse = jsonParser({ packValues: true, streamValues: false });
  readonly #check: (account: unknown) => string | undefined;
  readonly #onAccount: OnAccount;
  readonly #id: number;
  #position: Position = 'before';
  /** Whether the accounts stand in `result.value`. */
  #hasContext = false;
  #hasResult = false;
  #key = '';
  /** The keys of the answer and of its result, each behind its position. */
  readonly #keys = new Set<string>();
  /** A value that is small is put together; of the accounts one at a time. */
  #value: Assembler | undefined;
  readonly #members: Partial<Record<Position, Record<string, unknown>>> = {};
  #sinceAccount = 0;

  constructor(id: number, check: (account: unknown) => string | undefined, onAccount: OnAccount) {
    this.#id = id;
    this.#check = check;
    this.#onAccount = onAccount;
  }

  push(text: string): void {
    this.#sinceAccount += text.length;
    const tokens = this.#parse(text);
    if (typeof tokens === 'object' && tokens !== null && 'values' in tokens)
      for (const token of tokens.values) this.#take(token);
    if (this.#sinceAccount > ACCOUNT_CHARACTERS_MAX) throw new Error('an account has no end');
  }

  end(): Ending {
    const { jsonrpc, id, error = null } = this.#members.answer ?? {};
    if (this.#position !== 'behind') return { kind: 'unfinished', reason: 'the JSON is not complete' };
    if (error !== null) return refusalOf(error);
    if (jsonrpc !== '2.0' || id !== this.#id)
      return { kind: 'unfinished', reason: 'the answer has another id or version' };
    if (!this.#hasResult) return { kind: 'unfinished', reason: 'the answer has no accounts' };
    const { slot } = Object(this.#members.result?.['context']);
    return { kind: 'whole', slot: isWhole(slot) ? slot : null };
  }

  #take(token: Token): void {
    if (this.#value !== undefined) return this.#assemble(this.#value, token);
    if (token.name === 'keyValue') this.#enterKey(token.value);
    else if (token.name === 'endObject') this.#position = this.#position === 'result' ? 'answer' : 'behind';
    else if (token.name === 'endArray') this.#position = this.#hasContext ? 'result' : 'answer';
    else if (!this.#enter(token.name)) this.#assemble(new Assembler(), token);
  }

  #enterKey(key: string): void {
    const placed = `${this.#position} ${key}`;
    if (this.#keys.has(placed)) throw new Error(`the answer has "${key}" twice`);
    this.#keys.add(placed);
    this.#key = key;
  }

  /** Whether the value that begins is one of those that are too large to be put together. */
  #enter(name: Token['name']): boolean {
    if (this.#position === 'before') {
      if (name !== 'startObject') throw new Error('the answer is no object');
      this.#position = 'answer';
      return true;
    }
    const isResult = this.#position === 'answer' && this.#key === 'result';
    if (isResult && name === 'startObject') {
      this.#hasContext = true;
      this.#position = 'result';
      return true;
    }
    if (name !== 'startArray' || !(isResult || (this.#position === 'result' && this.#key === 'value')))
      return false;
    this.#hasResult = true;
    this.#position = 'accounts';
    return true;
  }

  #assemble(value: Assembler, token: Token): void {
    value.consume(token);
    this.#value = value.done ? undefined : value;
    if (!value.done) return;
    if (this.#position !== 'accounts') (this.#members[this.#position] ??= {})[this.#key] = value.current;
    else {
      this.#onAccount(this.#check(value.current));
      this.#sinceAccount = 0;
    }
  }
}

/** Reads the gateway's lines: an account each, and a closing one with their number and the slot. */
export class LineAccounts implements AccountReader {
  readonly #check: (account: unknown) => string | undefined;
  readonly #onAccount: OnAccount;
  #rest = '';
  #accounts = 0;
  #closing: Readonly<{ accounts: unknown; slot: unknown }> | undefined;

  constructor(check: (account: unknown) => string | undefined, onAccount: OnAccount) {
    this.#check = check;
    this.#onAccount = onAccount;
  }

  push(text: string): void {
    let from = 0;
    for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', from)) {
      this.#take(this.#rest + text.slice(from, at));
      this.#rest = '';
      from = at + 1;
    }
    this.#rest += text.slice(from);
    if (this.#rest.length > ACCOUNT_CHARACTERS_MAX) throw new Error('an account has no end');
  }

  end(): Ending {
    if (this.#rest !== '') return { kind: 'unfinished', reason: 'the last line has no end' };
    if (this.#closing === undefined) return { kind: 'unfinished', reason: 'the closing line is missing' };
    const { accounts, slot } = this.#closing;
    if (accounts !== this.#accounts)
      return { kind: 'unfinished', reason: `the closing line counts ${String(accounts)} accounts` };
    if (slot !== null && !isWhole(slot))
      return { kind: 'unfinished', reason: 'the slot of the closing line is no number' };
    return { kind: 'whole', slot };
  }

  #take(line: string): void {
    if (this.#closing !== undefined) throw new Error('a line follows the closing one');
    const value: unknown = JSON.parse(line);
    if (typeof value === 'object' && value !== null && 'accounts' in value && 'slot' in value) {
      this.#closing = value;
      return;
    }
    this.#accounts++;
    this.#onAccount(this.#check(value));
  }
}

/** The error of an answer. */
function refusalOf(error: unknown): Extract<Ending, { kind: 'refused' }> {
  const { code, message } = Object(error);
  const known = Number.isInteger(code) ? String(code) : '?';
  return { kind: 'refused', reason: typeof message === 'string' ? `${known} ${message}` : known };
}

/*
 * Accounts from files, as `solana account --output json` writes them and a test validator loads them:
 * `{"pubkey":…,"account":{"lamports":…,"data":[…,"base64"],"owner":…,"executable":…,"rentEpoch":…}}`. Other members are ignored.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Address, getBase58Encoder, isAddress } from '@solana/kit';
import { fileReason } from '../../shared/store/private.ts';
import { isJsonArray, isJsonObject, type Json, parseJson, printJson } from '../json/value.ts';
import { type AccountState, RENT_EXEMPT_EPOCH } from '../protocol/account.ts';

/** An account that is to be there, and the file that it is from. */
export type FileAccount = Readonly<{ file: string; address: Address; state: AccountState }>;

/** Which files: those of a folder, and single ones with the address that each has on the chain, `-` for the file's own. */
export type AccountSources = Readonly<{
  dir: string | undefined;
  named: readonly (readonly [address: string, file: string])[];
}>;

const DATA_BYTES_MAX = 10 * 1024 * 1024;
const U64_MAX = RENT_EXEMPT_EPOCH;
const SHOWN_CHARACTERS_MAX = 60;
const base58 = getBase58Encoder();

/** Reads every file, or says everything that is wrong with them, a sentence each with the file and the member. */
export function readAccountFiles({ dir, named }: AccountSources) {
  const lines: string[] = [];
  const accounts = new Map<Address, FileAccount>();
  function add(file: string, given?: string): void {
    const read = readAccount(file, given, (member, found, expected) =>
      lines.push(`${file}: ${member}: found ${found}, expected ${expected}`),
    );
    if (typeof read === 'string') return void lines.push(`${file}: ${read}`);
    if (read === undefined) return;
    const other = accounts.get(read.address);
    if (other !== undefined) lines.push(`${file}: pubkey: ${read.address} is in ${other.file} too`);
    accounts.set(read.address, read);
  }
  try {
    if (dir !== undefined) for (const name of jsonFilesOf(dir)) add(join(dir, name));
  } catch (error) {
    lines.push(`localnet.accounts: the folder ${dir} cannot be read (${fileReason(error)})`);
  }
  for (const [address, file] of named) add(file, address === '-' ? undefined : address);
  if (lines.length > 0) return { kind: 'problems', lines } as const;
  return { kind: 'read', accounts: [...accounts.values()] } as const;
}

function jsonFilesOf(dir: string): readonly string[] {
  return readdirSync(dir)
    .filter((name) => name.endsWith('.json'))
    .sort();
}

/** Files what is wrong with one member. */
type Complain = (member: string, found: string, expected: string) => void;

/** The account in a file; a sentence when there is none to look at, and undefined when something was complained of. */
function readAccount(file: string, given: string | undefined, complain: Complain) {
  let text: string;
  let json: Json;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    return `cannot be read (${fileReason(error)})`;
  }
  try {
    json = parseJson(text);
  } catch {
    return 'is not JSON';
  }
  const { pubkey, account } = isJsonObject(json) ? json : {};
  if (!isJsonObject(account)) return 'has no member account with the fields of an account';
  const read = <Value>(name: string, value: Json | undefined, kind: Kind<Value>): Value | undefined => {
    const [expected, readValue] = kind;
    const found = readValue(value);
    if (found === undefined) complain(name, shown(value), expected);
    return found;
  };
  const address = read(given === undefined ? 'pubkey' : '--account', given ?? pubkey, ADDRESS);
  const lamports = read('account.lamports', account.lamports, LAMPORTS);
  const owner = read('account.owner', account.owner, ADDRESS);
  const executable = read('account.executable', account.executable, FLAG);
  const rentEpoch = read('account.rentEpoch', account.rentEpoch, U64);
  const data = read('account.data', account.data, DATA);
  if (address === undefined || lamports === undefined || owner === undefined) return undefined;
  if (executable === undefined || rentEpoch === undefined || data === undefined) return undefined;
  return { file, address, state: { lamports, data, owner, executable, rentEpoch } };
}

/** The form of a member, and its value when it has it. */
type Kind<Value> = readonly [expected: string, read: (value: Json | undefined) => Value | undefined];

const ADDRESS: Kind<Address> = [
  'an address in base58',
  (value) => (typeof value === 'string' && isAddress(value) ? value : undefined),
];
const FLAG: Kind<boolean> = ['true or false', (value) => (typeof value === 'boolean' ? value : undefined)];
const U64: Kind<bigint> = [`a whole number up to ${U64_MAX}`, (value) => wholeFrom(0n, value)];
const LAMPORTS: Kind<bigint> = [`a whole number from 1 to ${U64_MAX}`, (value) => wholeFrom(1n, value)];
const DATA: Kind<Uint8Array> = [
  `[text, "base64"], "base58" or "base64+zstd", at most ${DATA_BYTES_MAX} bytes`,
  (value) => (isJsonArray(value) && value.length === 2 ? bytesFrom(value[0], value[1]) : undefined),
];

function wholeFrom(min: bigint, value: Json | undefined): bigint | undefined {
  return typeof value === 'bigint' && value >= min && value <= U64_MAX ? value : undefined;
}

function bytesFrom(text: Json | undefined, encoding: Json | undefined): Uint8Array | undefined {
  if (typeof text !== 'string') return undefined;
  try {
    const data = new Uint8Array(decoded(text, encoding));
    return data.length <= DATA_BYTES_MAX ? data : undefined;
  } catch {
    return undefined; // no base58, or no zstd
  }
}

function decoded(text: string, encoding: Json | undefined) {
  if (encoding === 'base58') return base58.encode(text);
  const data = Buffer.from(text, 'base64');
  if (data.toString('base64') !== text) throw new Error('no base64');
  if (encoding === 'base64') return data;
  if (encoding === 'base64+zstd') return Bun.zstdDecompressSync(data);
  throw new Error('unknown encoding');
}

function shown(value: Json | undefined): string {
  const text = value === undefined ? 'nothing' : printJson(value);
  return text.length > SHOWN_CHARACTERS_MAX ? `${text.slice(0, SHOWN_CHARACTERS_MAX - 3)}...` : text;
}

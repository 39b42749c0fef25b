/*
 * Readers of parameters, named for what they read: import them as `read`. They refuse with -32602 in serde's words; members that no reader asks for are ignored, as
 * Agave ignores them.
 */
import { type Address, getBase58Encoder, isAddress } from '@solana/kit';
import type { View } from '../chain/accounts.ts';
import type { Chain } from '../chain/chain.ts';
import type { Commitment } from '../chain/slots.ts';
import { isJsonArray, isJsonObject, type Json, type JsonObject, printJson } from '../json/value.ts';

const U64_MAX = 18446744073709551615n;
const SIGNATURE_BYTES = 64;
const SIGNATURE_CHARACTERS_MAX = 88;
const COMMITMENTS = ['processed', 'confirmed', 'finalized'] as const;
const base58 = getBase58Encoder();

/** Positional parameters: missing ones are undefined, null optional ones too. */
export type Params = readonly (Json | undefined)[];

export function positional(params: Json, required: number, optional: number): Params {
  const listed = params ?? [];
  if (!isJsonArray(listed) && required + optional > 0) throw invalidParams('`params` should be an array');
  if (!isJsonArray(listed) || (required + optional === 0 && listed.length > 0))
    throw invalidParams('Invalid parameters: No parameters were expected', printJson(listed));
  if (listed.length < required)
    throw invalidParams(`\`params\` should have at least ${required} argument(s)`);
  if (listed.length <= required + optional) return listed;
  throw invalidParams(
    `Invalid parameters: Expected from ${required} to ${required + optional} parameters.`,
    `Got: ${listed.length}`,
  );
}

export function isAbsent(value: Json | undefined): value is null | undefined {
  return value === undefined || value === null;
}

export function wrongType(value: Json | undefined, expected: string): Error {
  return invalidParams(`Invalid params: invalid type: ${describe(value)}, expected ${expected}.`);
}

function describe(value: Json | undefined): string {
  if (isAbsent(value)) return 'null';
  if (typeof value === 'string') return `string ${JSON.stringify(value)}`;
  if (typeof value === 'boolean') return `boolean \`${value}\``;
  if (typeof value === 'bigint') return `integer \`${value}\``;
  if (typeof value === 'number') return `floating point \`${value}\``;
  return isJsonArray(value) ? 'sequence' : 'map';
}

export function string(value: Json | undefined): string {
  if (typeof value !== 'string') throw wrongType(value, 'a string');
  return value;
}

/** A u64, up to `max`. */
export function u64(value: Json | undefined, type = 'u64', max = U64_MAX): bigint {
  if (typeof value !== 'bigint') throw wrongType(value, type);
  if (value < 0n || value > max)
    throw invalidParams(`Invalid params: invalid value: integer \`${value}\`, expected ${type}.`);
  return value;
}

export function optionalU64(value: Json | undefined, type?: string, max?: bigint): bigint | undefined {
  return isAbsent(value) ? undefined : u64(value, type, max);
}

export function boolean(value: Json | undefined, fallback: boolean): boolean {
  if (isAbsent(value)) return fallback;
  if (typeof value !== 'boolean') throw wrongType(value, 'a boolean');
  return value;
}

/** A map with the members that it cannot do without. */
export function struct(value: Json | undefined, name: string, ...required: string[]): JsonObject {
  if (!isJsonObject(value)) throw wrongType(value, name);
  const missing = required.find((member) => value[member] === undefined);
  if (missing !== undefined) throw invalidParams(`Invalid params: missing field \`${missing}\`.`);
  return value;
}

/** A configuration object, with the members that it cannot do without; empty when absent. */
export function config(value: Json | undefined, name: string, ...required: string[]): JsonObject {
  return isAbsent(value) ? {} : struct(value, `struct ${name}`, ...required);
}

export function list(value: Json | undefined): readonly Json[] {
  if (!isJsonArray(value)) throw wrongType(value, 'a sequence');
  return value;
}

export function inputs<Item>(value: Json | undefined, max: number, read: (item: Json) => Item) {
  const listed = list(value);
  if (listed.length > max) throw invalidParams(`Too many inputs provided; max ${max}`);
  return listed.map(read);
}

/** One of the names of an enumeration; `fallback` when absent. */
export function variant<const Name extends string>(
  value: Json | undefined,
  names: readonly Name[],
  fallback: Name,
): Name {
  if (isAbsent(value)) return fallback;
  const text = string(value);
  const found = names.find((name) => name === text);
  if (found !== undefined) return found;
  const expected = names.map((name) => `\`${name}\``);
  const listed = expected.length === 2 ? expected.join(' or ') : `one of ${expected.join(', ')}`;
  throw invalidParams(`Invalid params: unknown variant \`${text}\`, expected ${listed}.`);
}

/** An address. Agave distinguishes invalid base58 from a wrong length. */
export function address(value: Json | undefined): Address {
  return keyOf(value, 'Invalid param: ');
}

/** A blockhash has the form of an address; Agave refuses one in the bare words of its parser. */
export function blockhash(value: Json | undefined): Address {
  return keyOf(value, '');
}

function keyOf(value: Json | undefined, complaint: string): Address {
  const text = string(value);
  if (isAddress(text)) return text;
  throw invalidParams(`${complaint}${isBase58(text) ? 'WrongSize' : 'Invalid'}`);
}

export function signature(value: Json | undefined): string {
  const text = string(value);
  if (!isBase58(text)) throw invalidParams('Invalid param: Invalid');
  if (text.length > SIGNATURE_CHARACTERS_MAX || base58.encode(text).length !== SIGNATURE_BYTES)
    throw invalidParams('Invalid param: WrongSize');
  return text;
}

export function isBase58(text: string): boolean {
  return /^[1-9A-HJ-NP-Za-km-z]*$/.test(text);
}

export type RpcError = Readonly<{ code: number; message: string; data?: Json }>;

/**
 * How a method refuses a call: readers of parameters nest too deeply to hand a refusal up by hand. `http/dispatch.ts`
 * is the only place that catches it.
 */
export class RpcFailure extends Error {
  readonly error: RpcError;
  constructor(code: number, message: string, data?: Json) {
    super(message);
    this.error = data === undefined ? { code, message } : { code, message, data };
  }
}

/** -32602 with a text, as Agave words it. */
export function invalidParams(message: string, data?: Json): RpcFailure {
  return new RpcFailure(-32602, message, data);
}

/** The commitment of a configuration: finalized when absent, and when misspelt, because Agave flattens it. */
export function commitment({ commitment }: JsonObject): Commitment {
  return COMMITMENTS.find((each) => each === commitment) ?? 'finalized';
}

/** A commitment that is a parameter of its own: Agave insists on it being there, and a known one. */
export function commitmentConfig(param: Json | undefined): JsonObject {
  if (isAbsent(param)) return {};
  const { commitment } = struct(param, 'struct CommitmentConfig', 'commitment');
  return { commitment: variant(commitment, COMMITMENTS, 'finalized') };
}

/** The commitment of a preflight, which Agave does not flatten either. */
export function preflightCommitment(config: JsonObject): Commitment {
  return variant(config.preflightCommitment, COMMITMENTS, 'finalized');
}

/** The slot of a commitment for the history methods, which know nothing of the slot in progress. */
export function historySlot(chain: Chain, config: JsonObject): bigint {
  const named = commitment(config);
  if (named === 'processed') throw invalidParams('Method does not support commitment below `confirmed`');
  return reached(chain.slotAt(named), config);
}

/** The slot of a commitment's bank; -32016 while it is below the configuration's minContextSlot. */
export function bankSlot(chain: Chain, param: Json | undefined): bigint {
  const settings = config(param, 'RpcContextConfig');
  return reached(chain.slotAt(commitment(settings)), settings);
}

/** The state at a commitment; -32016 as above. */
export function view(chain: Chain, config: JsonObject): View {
  const found = chain.viewAt(commitment(config));
  reached(found.slot, config);
  return found;
}

function reached(slot: bigint, config: JsonObject): bigint {
  const minimum = optionalU64(config.minContextSlot);
  if (minimum === undefined || slot >= minimum) return slot;
  throw new RpcFailure(-32016, 'Minimum context slot has not been reached', { contextSlot: slot });
}

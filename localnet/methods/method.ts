import type { Chain } from '../chain/chain.ts';
import type { Json } from '../json/value.ts';
import type { Params } from '../request/params.ts';

/** What a method gives: a value, or text in pieces for a result that reads a held view while it is written. */
export type MethodResult = Readonly<{ kind: 'value'; value: Json }> | ScanResult;

/** A result written piece by piece. `release` is called once, when it was written or given up. */
export type ScanResult = Readonly<{ kind: 'pieces'; pieces: Iterable<string>; release(): void }>;

/** One method: its parameters, and what it answers. Refuses by throwing RpcFailure. */
export type Method = Readonly<{
  required: number;
  optional: number;
  answer(chain: Chain, params: Params): MethodResult;
}>;

/** A method of a table. */
export type NamedMethods = Readonly<Record<string, Method>>;

/** A method that takes so many parameters, and so many more that may be absent. */
export function method(required: number, optional: number, answer: Method['answer']): Method {
  return { required, optional, answer };
}

/** The version that stands in every context: the release of Agave whose runtime runs here. */
export const API_VERSION = '4.3.0';

/** A plain result. */
export function value(result: Json): MethodResult {
  return { kind: 'value', value: result };
}

/** A result in the context of a bank. */
export function inContext(slot: bigint, result: Json): MethodResult {
  return value({ context: contextOf(slot), value: result });
}

/** The context of a bank. */
export function contextOf(slot: bigint): Json {
  return { apiVersion: API_VERSION, slot };
}

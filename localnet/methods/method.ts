import type { Chain } from '../chain/chain.ts';
import type { Json } from '../json/value.ts';
import type { Params } from '../request/params.ts';

/** One method: its parameters, and what it answers. Refuses by throwing RpcFailure. */
export type Method = Readonly<{
  required: number;
  optional: number;
  answer(chain: Chain, params: Params): Json;
}>;

export type NamedMethods = Readonly<Record<string, Method>>;

/** A method that takes so many parameters, and so many more that may be absent. */
export function method(required: number, optional: number, answer: Method['answer']): Method {
  return { required, optional, answer };
}

/** The version that stands in every context: the release of Agave whose runtime runs here. */
export const API_VERSION = '4.3.0';

export function inContext(slot: bigint, value: Json): Json {
  return { context: { apiVersion: API_VERSION, slot }, value };
}

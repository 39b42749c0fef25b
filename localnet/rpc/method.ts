import type { Chain } from '../chain/chain.ts';
import type { MethodResult } from './answer.ts';
import type { Params } from './params.ts';

/** One method: how many parameters it takes, and what it answers. Refuses by throwing RpcFailure. */
export type Method = Readonly<{
  required: number;
  optional: number;
  answer(chain: Chain, params: Params): MethodResult;
}>;

/** A method of a table. */
export type NamedMethods = Readonly<Record<string, Method>>;

import type { Json } from '../json/value.ts';
import type { MethodResult } from './answer.ts';

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

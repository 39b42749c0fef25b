import { printJson, type Json } from '../json/value.ts';
import type { RpcError } from './failure.ts';

/** What a method gives: a value, or text in pieces for a result too large to hold. */
export type MethodResult = Readonly<{ kind: 'value'; value: Json }> | ScanResult;

/** A result written piece by piece. `release` is called once, when it was written or given up. */
export type ScanResult = Readonly<{ kind: 'pieces'; pieces: Iterable<string>; release(): void }>;

/** The answer to one call. `idText` is the id's JSON. */
export type Answer =
  | Readonly<{ kind: 'text'; text: string }>
  | Readonly<{ kind: 'pieces'; head: string; result: ScanResult; tail: string }>;

/** The envelope around a result: jsonrpc, result, id, in this order. */
export function resultAnswer(result: MethodResult, idText: string): Answer {
  const head = '{"jsonrpc":"2.0","result":';
  const tail = `,"id":${idText}}`;
  if (result.kind === 'value') return { kind: 'text', text: head + printJson(result.value) + tail };
  return { kind: 'pieces', head, result, tail };
}

/** The envelope around an error. Agave leaves `jsonrpc` out when the call did (`isVersioned` false). */
export function errorAnswer(error: RpcError, idText: string, isVersioned = true): Answer {
  const data = error.data === undefined ? '' : `,"data":${printJson(error.data)}`;
  const text = `{${isVersioned ? '"jsonrpc":"2.0",' : ''}"error":{"code":${error.code},"message":${JSON.stringify(error.message)}${data}},"id":${idText}}`;
  return { kind: 'text', text };
}

import { printJson, printJsonPieces, type Json } from '../json/value.ts';
import type { RpcError } from './failure.ts';

/** What a method gives: a value, or text in pieces for a result that reads a held view while it is written. */
export type MethodResult = Readonly<{ kind: 'value'; value: Json }> | ScanResult;

/** A result written piece by piece. `release` is called once, when it was written or given up. */
export type ScanResult = Readonly<{ kind: 'pieces'; pieces: Iterable<string>; release(): void }>;

/** The answer to one call, in order of writing. */
export type Answer = Readonly<{ head: string; result: Omit<ScanResult, 'kind'>; tail: string }>;

const NOTHING_HELD = (): void => {};

/** The envelope around a result: jsonrpc, result, id, in this order. `idText` is the id's JSON. */
export function resultAnswer(result: MethodResult, idText: string): Answer {
  const head = '{"jsonrpc":"2.0","result":';
  const tail = `,"id":${idText}}`;
  if (result.kind === 'pieces') return { head, result, tail };
  return { head, result: { pieces: printJsonPieces(result.value), release: NOTHING_HELD }, tail };
}

/** The envelope around an error. Agave leaves `jsonrpc` out when the call did (`isVersioned` false). */
export function errorAnswer(error: RpcError, idText: string, isVersioned = true): Answer {
  const data = error.data === undefined ? '' : `,"data":${printJson(error.data)}`;
  const text = `{${isVersioned ? '"jsonrpc":"2.0",' : ''}"error":{"code":${error.code},"message":${JSON.stringify(error.message)}${data}},"id":${idText}}`;
  return { head: text, result: { pieces: [], release: NOTHING_HELD }, tail: '' };
}

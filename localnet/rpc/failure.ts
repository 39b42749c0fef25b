import type { Json } from '../json/value.ts';

/** A JSON-RPC error object's members. */
export type RpcError = Readonly<{ code: number; message: string; data?: Json }>;

/**
 * How a method refuses a call: readers of parameters nest too deeply to hand a refusal up by hand. `rpc/dispatch.ts`
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

import type { MethodClass } from '../route/methods.ts';

/** The error of a JSON-RPC answer. */
export type RpcFailure = Readonly<{ code: number; message: string }>;

/** What an error says about asking another backend. */
export type Advice =
  /** It is the answer; another backend would say the same. */
  | 'final'
  /** Another backend may know better. */
  | 'elsewhere'
  /** One other backend may be asked; more would be waste. */
  | 'once';

const ELSEWHERE = new Set([
  -32601, // this node lacks the method
  -32001, // the block was cleaned up here
  -32004, // the block is not here (yet)
  -32005, // the node is behind
  -32010, // the key is not in this node's secondary indexes
  -32011, // no history on this node
  -32014, // the block's status is not known here yet
  -32016, // the node has not reached minContextSlot
  -32018, // not an epoch boundary here: an archive knows
  -32019, // the node's long-term storage does not answer
  -32020, // the cursor is not known here
  -32021, // no slot history here
  -32000, // a vendor's own: a time-out, or minContextSlot (Superbank, Cloudbreak)
]);

/** -32603 internal, -32007 skipped or missing, -32012 a scan that failed. */
const ONCE = new Set([-32603, -32007, -32012]);

/** Codes by which fronts of paid backends say that they throttle us, inside HTTP 200 (rpc.md 8.15). */
const THROTTLED = new Set([429, -429, -32029, -32090, -32429]);

/**
 * What to do about an error of the method (Agave `custom_error.rs`). A write goes elsewhere only when the node says
 * that it is behind, because it says so before it takes the transaction (DESIGN 3.5), or that it throttles us.
 */
export function adviceOn({ code, message }: RpcFailure, kind: MethodClass): Advice {
  if (THROTTLED.has(code)) return 'elsewhere';
  if (kind === 'write') return code === -32005 ? 'elsewhere' : 'final';
  if (ELSEWHERE.has(code)) return 'elsewhere';
  if (ONCE.has(code)) return 'once';
  // Agave reports an unreachable BigTable to getBlocks as a bad parameter.
  if (code === -32602 && message.startsWith('BigTable query failed')) return 'elsewhere';
  return 'final';
}

/** Whether the code says that we, not the caller, are throttled: it must not reach the caller as his own limit. */
export function isThrottling({ code }: RpcFailure): boolean {
  return THROTTLED.has(code);
}

const ERROR_MEMBER = Buffer.from('"error"');

/** The error of a whole answer, `undefined` when it has none. Parses only what holds the word. */
export function failureOf(answer: Uint8Array): RpcFailure | undefined {
  const bytes = Buffer.from(answer.buffer, answer.byteOffset, answer.length);
  if (bytes.indexOf(ERROR_MEMBER) === -1) return undefined;
  try {
    const { error }: { error?: unknown } = JSON.parse(bytes.toString());
    if (typeof error !== 'object' || error === null || !('code' in error)) return undefined;
    const message = 'message' in error ? String(error.message) : '';
    return typeof error.code === 'number' ? { code: error.code, message } : undefined;
  } catch {
    return undefined;
  }
}

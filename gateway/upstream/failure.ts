import { type ProfileName, PROFILES } from '../../shared/config/profiles.ts';
import type { MethodClass } from '../../shared/config/methods.ts';
import { LEFT_OUT, LOST } from '../http/stream-body.ts';
import { NO_DESCRIPTORS, type NoReply } from './http-connection.ts';

/** How an attempt on a backend failed before any byte of an answer was kept. */
export type Failure =
  | NoReply
  /** Its front answered with a status that is not an answer to the call. */
  | { readonly kind: 'status'; readonly status: number }
  /** 200, but not a JSON-RPC object: an error page, an empty body. */
  | { readonly kind: 'garbage'; readonly reason: string };

/** Whether the failure speaks against the backend, and not only against this call: a 413 or 400 does not. */
export function isItsFault(failure: Failure): boolean {
  if (failure.kind !== 'status') return failure.reason !== NO_DESCRIPTORS;
  const { status } = failure;
  return status >= 500 || status < 400 || status === 429 || status === 401 || status === 403;
}

/** The error of an answer. */
export type RpcFailure = Readonly<{ code: number; message: string }>;

/** The advice of an outcome about another attempt. */
export type Advice = Readonly<{
  /** Another backend may do better. */
  other: boolean;
  /** It takes a retry of the pool's budget, because a backend in trouble must not double the load of the others. */
  costsBudget: boolean;
  /** So many attempts more, and none after them, whatever they advise. */
  atMost: number;
  /** How long to wait first, and up to twice that; the same backend is good enough then. */
  delayMs: number;
}>;

/** All others would say the same. */
export const FINAL: Advice = { other: false, costsBudget: false, atMost: 0, delayMs: 0 };
/** Another may have what this one lacks. */
export const MISS: Advice = { other: true, costsBudget: false, atMost: Infinity, delayMs: 0 };
const MISS_ONCE: Advice = { ...MISS, atMost: 1 };
/** Another may be well. */
const TROUBLE: Advice = { ...MISS, costsBudget: true };
const TROUBLE_ONCE: Advice = { ...TROUBLE, atMost: 1 };
/** It is not known yet. */
const LATER: Advice = { ...TROUBLE, atMost: 2, delayMs: 200 };

/** The node is behind, or says for another reason that it is not well. */
export const NODE_UNHEALTHY = -32005;
/** The node has not reached the call's `minContextSlot`. */
export const SLOT_NOT_REACHED = -32016;
/** Skipped, or missing in this node's ledger. */
export const SKIPPED = -32007;
/** Skipped, or missing in long-term storage: what an archive says. */
export const SKIPPED_FOR_GOOD = -32009;
const SIGNATURE_VERIFICATION = -32003;

const BY_CODE: ReadonlyMap<number, Advice> = new Map<number, Advice>([
  [-32601, MISS], // this node lacks the method
  [-32001, MISS], // the block was cleaned up here
  [-32010, MISS], // the key is not in this node's secondary indexes
  [-32011, MISS], // no history on this node
  [SLOT_NOT_REACHED, MISS],
  [-32018, MISS], // not an epoch boundary here: an archive knows
  [-32020, MISS], // the cursor is not known here
  [-32021, MISS], // no slot history here
  [-32004, MISS_ONCE], // the block is not here (yet)
  [SKIPPED, MISS_ONCE],
  [NODE_UNHEALTHY, TROUBLE],
  [-32019, TROUBLE], // the node's long-term storage does not answer
  [-32000, TROUBLE], // a vendor's own: a time-out, or minContextSlot (Superbank, Cloudbreak)
  [-32603, TROUBLE_ONCE], // internal error
  [-32012, TROUBLE_ONCE], // a scan that failed
  [-32014, LATER], // the block's status is not known yet
]);

/** The reasons of what did not come because its backend was given up. */
export const GIVEN_UP: ReadonlySet<string> = new Set([LEFT_OUT, LOST]);

/** Advises after a failed attempt whether to try another backend; a write may only when the first cannot have acted on it. */
export function adviceOnFailure(failure: Failure, kind: MethodClass): Advice {
  const status = failure.kind === 'status' ? failure.status : undefined;
  const isUntouched = failure.kind === 'unsent' || status === 429 || status === 503;
  // Another backend would refuse the same bytes.
  if ((kind === 'write' && !isUntouched) || status === 400 || status === 431) return FINAL;
  // What was never sent, is too long for a front, or waits at a backend that is left out or hung, moves only once.
  const isFree = failure.kind === 'unsent' || status === TOO_LARGE;
  return isFree || (failure.kind === 'no-answer' && GIVEN_UP.has(failure.reason)) ? MISS : TROUBLE;
}

/** Whether a backend may have acted on a write all the same. What refuses, or has no room, says that it was not taken. */
export function mayHaveActed(failure: Failure): boolean {
  if (failure.kind !== 'status') return failure.kind !== 'unsent';
  const { status } = failure;
  return status < 300 || status === 408 || (status >= 500 && status !== 503);
}

/** The status of a backend, or of its front, that takes no request of this length. */
export const TOO_LARGE = 413;

/** Codes by which fronts of paid backends throttle us, inside HTTP 200: the caller must not take it for a limit of his own. */
export const THROTTLED = new Set([429, -429, -32029, -32090, -32429]);

/** Advises on an error of the method (Agave `custom_error.rs`); a write goes elsewhere only when it was not taken. */
export function adviceOn({ code, message }: RpcFailure, kind: MethodClass, profile: ProfileName): Advice {
  if (THROTTLED.has(code)) return TROUBLE;
  if (kind === 'write') return code === NODE_UNHEALTHY ? TROUBLE : FINAL;
  if (code === -32000 && profile === 'das') {
    // The asset server says everything of its own so: only its database's trouble is worth another attempt.
    if (message.includes('RecordNotFound')) return MISS_ONCE; // another index may be ahead
    return /^Database (Connection|Error)/.test(message) ? TROUBLE : FINAL;
  }
  // Cloudbreak says so of a commitment that it does not know.
  if (code === SIGNATURE_VERIFICATION && !PROFILES[profile].processed) return MISS;
  // Agave reports an unreachable BigTable to getBlocks as a bad parameter.
  if (code === -32602 && message.startsWith('BigTable query failed')) return TROUBLE;
  return BY_CODE.get(code) ?? FINAL;
}

/** Stands for the code of an error that has none, which no JSON-RPC server should send, or is too long to be read. */
export const NO_CODE = 0;

const ERROR_MEMBER = Buffer.from('"error"');

/** The error of a whole answer, `undefined` when it has none. Parses only what holds the word. */
export function failureOf(answer: Uint8Array): RpcFailure | undefined {
  const bytes = Buffer.from(answer.buffer, answer.byteOffset, answer.length);
  if (bytes.indexOf(ERROR_MEMBER) === -1) return undefined;
  try {
    const { error }: { error?: unknown } = JSON.parse(bytes.toString());
    if (error === undefined || error === null) return undefined;
    const { code, message } = Object(error);
    return { code: typeof code === 'number' ? code : NO_CODE, message: String(message ?? '') };
  } catch {
    return undefined;
  }
}

import {
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  COMMA,
  OPEN_ARRAY,
  OPEN_OBJECT,
  afterName,
  afterSpace,
  afterString,
  afterValue,
} from '../json/scan.ts';
import type { Call } from '../request/envelope.ts';
import type { CallContext, Forward, Reply } from '../upstream/forward.ts';
import { readAll } from '../upstream/probe.ts';
import type { Pool } from '../upstream/selection.ts';
import { HISTORY_NOT_AVAILABLE, INVALID_PARAMS, NODE_UNHEALTHY, rpcError, rpcResult } from './refusal.ts';

/** `params` is `undefined` when the call had none; `asked`: the flag was true. */
type WithoutHistory = Readonly<{ params: Uint8Array | undefined; asked: boolean }>;

/**
 * The parameters of `getSignatureStatuses` without `searchTransactionHistory` in their second value, and every other
 * byte the caller's own (DESIGN 3.4). Named parameters pass as they are: Agave refuses them.
 */
export function withoutHistory(params: Uint8Array | undefined): WithoutHistory {
  const open = params === undefined ? undefined : configAt(params);
  if (params === undefined || open === undefined) return { params, asked: false };
  const parts: Uint8Array[] = [];
  let asked: boolean | undefined;
  const first = afterSpace(params, open + 1);
  let [kept, end] = [0, first];
  for (let from = first; params[from] !== CLOSE_OBJECT;) {
    const value = afterSpace(params, afterName(params, from));
    const to = afterValue(params, value);
    // Of two flags the last one counts, as it does for JSON.parse.
    if (isFlag(params.subarray(from, afterString(params, from)))) asked = params[value] === TRUE;
    else parts.push(params.subarray(kept++ === 0 ? from : end, to));
    end = to;
    const next = afterSpace(params, to);
    from = params[next] === COMMA ? afterSpace(params, next + 1) : next;
  }
  if (asked === undefined) return { params, asked: false };
  const left = Buffer.concat([params.subarray(0, first), ...parts, params.subarray(end)]);
  return { params: new Uint8Array(left), asked };
}

/** Where the second value of an array of parameters opens an object. The envelope has checked the grammar. */
function configAt(params: Uint8Array): number | undefined {
  const signatures = afterSpace(params, 1);
  if (params[0] !== OPEN_ARRAY || params[signatures] === CLOSE_ARRAY) return undefined;
  const comma = afterSpace(params, afterValue(params, signatures));
  if (params[comma] !== COMMA) return undefined;
  const config = afterSpace(params, comma + 1);
  return params[config] === OPEN_OBJECT ? config : undefined;
}

function isFlag(quoted: Uint8Array): boolean {
  const text = Buffer.from(quoted.buffer, quoted.byteOffset, quoted.length).toString('latin1');
  return (text.includes('\\') ? JSON.stringify(JSON.parse(text)) : text) === '"searchTransactionHistory"';
}

/** The first byte of `true`, and of no other value. */
const TRUE = 0x74;

/** Why a null entry is not passed on: the caller asked for history and would read it as "never happened". */
const REASON = 'Transaction history is not available from this node';

/** 256 statuses of the longest kind are about 60 KB. */
const ANSWER_BYTES_MAX = 1_048_576;

/**
 * Adds the rule of `getSignatureStatuses` (spec 4.3.2, DESIGN 3.5): the flag `searchTransactionHistory` never
 * reaches a backend, and when it was true an answer with a null entry becomes -32011.
 */
export function withStatusRule(forward: Forward): Forward {
  return async function forwardByRule(call, route, context) {
    if (call.method !== 'getSignatureStatuses') return forward(call, route, context);
    if ((call.params?.length ?? 0) > PARAMS_BYTES_MAX) return tooMany(call, context);
    const { params, asked } = withoutHistory(call.params);
    if (!asked) return forward({ ...call, params }, route, context);
    return unlessNull(
      await forward({ ...call, params }, route, { ...context, acceptEncoding: 'identity' }),
      call,
    );
  };
}

/** 256 signatures are 23 KB; megabytes are not searched for a flag. */
const PARAMS_BYTES_MAX = 65_536;

/** Agave's own words (`rpc.rs`). */
function tooMany({ id }: Call, { onSettled }: CallContext): Reply {
  onSettled();
  const bytes = rpcError(INVALID_PARAMS, 'Too many inputs provided; max 256', id);
  return { kind: 'whole', bytes, encoding: undefined };
}

async function unlessNull(reply: Reply, { id }: Call): Promise<Reply> {
  if (reply.kind !== 'whole' && reply.kind !== 'stream') return reply;
  const read =
    reply.kind === 'whole' ? { ...reply, kind: 'all' as const } : await readAll(reply.body, ANSWER_BYTES_MAX);
  if (read.kind !== 'all') return { kind: 'no-backend' };
  const { bytes } = read;
  const whole = { kind: 'whole', bytes, encoding: undefined } as const;
  return hasNull(bytes) ? { ...whole, bytes: rpcError(HISTORY_NOT_AVAILABLE, REASON, id) } : whole;
}

function hasNull(bytes: Uint8Array): boolean {
  try {
    const answer: unknown = JSON.parse(new TextDecoder().decode(bytes));
    const result = isRecord(answer) ? answer['result'] : undefined;
    const value = isRecord(result) ? result['value'] : undefined;
    return Array.isArray(value) && value.includes(null);
  } catch {
    return false; // not ours to judge: the caller sees what the backend said
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Adds the answers that are the pool's and not one node's (DESIGN 3.5): its health, and its first available block with
 * the archives included. Until every backend with history has replied, a node answers for its own blocks.
 */
export function withPoolAnswers(forward: Forward, pool: Pool): Forward {
  return async function forwardUnlessOwn(call, route, context) {
    const bytes = ownAnswer(call.method, call.id);
    if (bytes === undefined) return forward(call, route, context);
    context.onSettled();
    const reply: Reply = { kind: 'whole', bytes, encoding: undefined };
    return reply;
  };

  function ownAnswer(method: string, id: Uint8Array): Uint8Array<ArrayBuffer> | undefined {
    if (method === 'getHealth') {
      return pool.isHealthy() ? rpcResult('"ok"', id) : rpcError(NODE_UNHEALTHY, 'Node is unhealthy', id);
    }
    if (method !== 'getFirstAvailableBlock' && method !== 'minimumLedgerSlot') return undefined;
    const floor = pool.floor();
    return floor === undefined ? undefined : rpcResult(String(floor), id);
  }
}

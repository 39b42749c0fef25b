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

/**
 * Adds the rules of single methods (DESIGN 3.5). Some answers are the pool's and not one node's: its health, and its
 * first available block with the archives included; until every backend with history has replied, a node answers for its
 * own blocks. The flag `searchTransactionHistory` of `getSignatureStatuses` (spec 4.3.2) never reaches a backend, and
 * when it was true an answer with a null entry becomes -32011.
 */
export function withRules(forward: Forward, pool: Pool): Forward {
  return async function forwardByRule(call, route, context) {
    if (call.method === 'getSignatureStatuses') return forwardStatuses(call, route, context);
    const own = ownAnswer(call);
    return own === undefined ? forward(call, route, context) : answerWith(own, context);
  };

  function ownAnswer({ method, id }: Call): Uint8Array<ArrayBuffer> | undefined {
    if (method === 'getHealth') {
      return pool.isHealthy() ? rpcResult('"ok"', id) : rpcError(NODE_UNHEALTHY, 'Node is unhealthy', id);
    }
    if (method !== 'getFirstAvailableBlock' && method !== 'minimumLedgerSlot') return undefined;
    const floor = pool.floor();
    return floor === undefined ? undefined : rpcResult(String(floor), id);
  }

  async function forwardStatuses(
    call: Call,
    route: Parameters<Forward>[1],
    context: CallContext,
  ): Promise<Reply> {
    if ((call.params?.length ?? 0) > PARAMS_BYTES_MAX) {
      // Agave's own words (`rpc.rs`).
      return answerWith(rpcError(INVALID_PARAMS, 'Too many inputs provided; max 256', call.id), context);
    }
    const { params, asked } = withoutHistory(call.params);
    if (!asked) return forward({ ...call, params }, route, context);
    const reply = await forward({ ...call, params }, route, { ...context, acceptEncoding: 'identity' });
    if (reply.kind !== 'whole' && reply.kind !== 'stream') return reply;
    const read = reply.kind === 'whole' ? reply : await readAll(reply.body, ANSWER_BYTES_MAX);
    if (read.kind !== 'all' && read.kind !== 'whole') return { kind: 'no-backend' };
    const bytes = hasNull(read.bytes) ? rpcError(HISTORY_NOT_AVAILABLE, REASON, call.id) : read.bytes;
    return { kind: 'whole', bytes, encoding: undefined };
  }
}

function answerWith(bytes: Uint8Array<ArrayBuffer>, { onSettled }: CallContext): Reply {
  onSettled();
  return { kind: 'whole', bytes, encoding: undefined };
}

/** 256 signatures are 23 KB; megabytes are not searched for a flag. */
const PARAMS_BYTES_MAX = 65_536;

/** 256 statuses of the longest kind are about 60 KB. */
const ANSWER_BYTES_MAX = 1_048_576;

/** Why a null entry is not passed on: the caller asked for history and would read it as "never happened". */
const REASON = 'Transaction history is not available from this node';

function hasNull(bytes: Uint8Array): boolean {
  try {
    const { result }: { result?: { value?: unknown } | null } = JSON.parse(new TextDecoder().decode(bytes));
    return Array.isArray(result?.value) && result.value.includes(null);
  } catch {
    return false; // not ours to judge: the caller sees what the backend said
  }
}

/**
 * The parameters of `getSignatureStatuses` without `searchTransactionHistory` in their second value, and every other
 * byte the caller's own (DESIGN 3.4); `asked`: the flag was true. Named parameters pass as they are: Agave refuses them.
 */
export function withoutHistory(params: Uint8Array | undefined) {
  const open = params === undefined ? undefined : configAt(params);
  if (params === undefined || open === undefined) return { params, asked: false };
  const parts: Uint8Array[] = [];
  let asked: boolean | undefined;
  const first = afterSpace(params, open + 1);
  let end = first;
  for (let from = first; params[from] !== CLOSE_OBJECT;) {
    const value = afterSpace(params, afterName(params, from));
    const to = afterValue(params, value);
    // Of two flags the last one counts, as it does for JSON.parse.
    if (isFlag(params.subarray(from, afterString(params, from)))) asked = params[value] === TRUE;
    else parts.push(params.subarray(parts.length === 0 ? from : end, to));
    end = to;
    const next = afterSpace(params, to);
    from = params[next] === COMMA ? afterSpace(params, next + 1) : next;
  }
  if (asked === undefined) return { params, asked: false };
  return { params: Buffer.concat([params.subarray(0, first), ...parts, params.subarray(end)]), asked };
}

/** Where the second value of an array of parameters opens an object. The envelope has checked the grammar. */
function configAt(params: Uint8Array): number | undefined {
  const signatures = afterSpace(params, 1);
  if (params[0] !== OPEN_ARRAY || params[signatures] === CLOSE_ARRAY) return undefined;
  const comma = afterSpace(params, afterValue(params, signatures));
  const config = afterSpace(params, comma + 1);
  return params[comma] === COMMA && params[config] === OPEN_OBJECT ? config : undefined;
}

function isFlag(quoted: Uint8Array): boolean {
  return JSON.parse(new TextDecoder().decode(quoted)) === 'searchTransactionHistory';
}

/** The first byte of `true`, and of no other value. */
const TRUE = 0x74;

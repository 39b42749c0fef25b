import type { Clock } from '../../shared/clock.ts';
import type { Method } from '../../shared/config/methods.ts';
import { configOf, elementsOf, joined, memberOf, valuesOf } from '../json/slices.ts';
import { isNull } from '../json/scan.ts';
import { type Call, rpcError, rpcResult } from '../request/envelope.ts';
import type { CallReply } from '../upstream/failover.ts';
import { type Forward, readReply, type TimedContext } from '../upstream/forward.ts';
import type { ForwardRoute, Pool } from '../upstream/selection.ts';

/**
 * Adds the rules of single methods. The pool answers for its health, and for the first block of all backends with history
 * as soon as it is known. The flag `searchTransactionHistory` of `getSignatureStatuses` reaches a backend as false; when
 * it was true, a null entry becomes -32011: the caller would read it as "never happened". Errors are Agave's
 * (`custom_error.rs`).
 */
export function withRules(forward: Forward, pool: Pool, clock: Clock): Forward {
  return async function forwardByRule(call, route, context) {
    const { answering } = route.method;
    if (answering === 'statuses') return forwardStatuses(call, route, context);
    const answer = poolAnswer(answering, call.id);
    if (answer === undefined) return forward(call, route, context);
    context.onSettled?.();
    return answer;
  };

  function poolAnswer(answering: Method['answering'], id: Uint8Array): CallReply | undefined {
    if (answering === 'health')
      return pool.isHealthy() ? rpcResult('"ok"', id) : rpcError(-32005, 'Node is unhealthy', id);
    if (answering !== 'floor') return undefined;
    const floor = pool.floor();
    return floor === undefined ? undefined : rpcResult(String(floor), id);
  }

  async function forwardStatuses(call: Call, route: ForwardRoute, context: TimedContext): Promise<CallReply> {
    if ((call.params?.length ?? 0) > PARAMS_BYTES_MAX) {
      context.onSettled?.();
      return rpcError(-32602, 'Too many inputs provided; max 256', call.id);
    }
    const { params, wantsHistory } = withoutHistory(call.params);
    if (!wantsHistory) return forward({ ...call, params }, route, context);
    const started = await forward({ ...call, params }, route, context);
    const reply = await readReply(started, ANSWER_BYTES_MAX, clock);
    if (reply.kind !== 'whole') return reply;
    const statuses = elementsOf(memberOf(memberOf(reply.bytes, 'result'), 'value'));
    if (statuses?.some(isNull) !== true) return reply;
    return rpcError(-32011, 'Transaction history is not available from this node', call.id);
  }
}

/** 256 signatures are 23 KB; more is not searched for a flag. */
const PARAMS_BYTES_MAX = 32_768;

/** 256 statuses of the longest kind are about 60 KB. */
const ANSWER_BYTES_MAX = 1_048_576;

/**
 * The caller's bytes with the flag in their second value as `false`, and whether it was true. The member stays, because
 * Agave 3.1 refuses a config without it; what is no boolean stays too, for the node to refuse, and so do named parameters.
 */
export function withoutHistory(params: Uint8Array | undefined) {
  const flags = valuesOf(configOf(params), FLAG);
  const set = flags.filter(([first]) => first === TRUE);
  if (params === undefined || set.length === 0) return { params, wantsHistory: false };
  const parts: (string | Uint8Array)[] = [];
  let end = 0;
  for (const value of set) {
    const at = value.byteOffset - params.byteOffset;
    parts.push(params.subarray(end, at), 'false');
    end = at + value.length;
  }
  parts.push(params.subarray(end));
  // Of two flags the last one counts, as it does for Agave and JSON.parse.
  return { params: joined(parts), wantsHistory: set.at(-1) === flags.at(-1) };
}

const FLAG = 'searchTransactionHistory';
/** The first byte of `true`, and of no other value. */
const TRUE = 0x74;

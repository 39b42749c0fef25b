import type { Asking, Forward, Reply } from '../backend/forward.ts';
import { readAll } from '../backend/read-all.ts';
import { HISTORY_NOT_AVAILABLE, INVALID_PARAMS, rpcError } from '../response/rpc-error.ts';
import type { Call } from '../request/call.ts';
import { withoutHistory } from './history-flag.ts';

/** Why a null entry is not passed on: the caller asked for history and would read it as "never happened". */
const REASON = 'Transaction history is not available from this node';

/** 256 statuses of the longest kind are about 60 KB. */
const ANSWER_BYTES_MAX = 1_048_576;

/**
 * Adds the rule of `getSignatureStatuses` (spec 4.3.2, DESIGN 3.5): the flag `searchTransactionHistory` never
 * reaches a backend, and when it was true an answer with a null entry becomes -32011.
 */
export function withStatusRule(forward: Forward): Forward {
  return async function forwardByRule(call, route, asking) {
    if (call.method !== 'getSignatureStatuses') return forward(call, route, asking);
    if ((call.params?.length ?? 0) > PARAMS_BYTES_MAX) return tooMany(call, asking);
    const { params, asked } = withoutHistory(call.params);
    if (!asked) return forward({ ...call, params }, route, asking);
    return unlessNull(
      await forward({ ...call, params }, route, { ...asking, acceptEncoding: 'identity' }),
      call,
    );
  };
}

/** 256 signatures are 23 KB; nobody looks through megabytes for a flag. */
const PARAMS_BYTES_MAX = 65_536;

/** Agave's own words (`rpc.rs`). */
function tooMany({ id }: Call, { onOver }: Asking): Reply {
  onOver();
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

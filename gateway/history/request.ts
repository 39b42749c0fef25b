import { METHODS } from '../methods/table.ts';
import type { Call } from '../request/envelope.ts';
import type { Backend } from '../upstream/backend.ts';
import { failureOf } from '../upstream/failure.ts';
import type { CallContext, Forward, Reply } from '../upstream/forward.ts';
import { readAll } from '../upstream/probe.ts';
import { SMALL_BODY_BYTES_MAX, decodeSmallBody } from '../upstream/response-reader.ts';
import type { Route } from '../upstream/router.ts';
import { isNull, joined, memberOf } from '../json/slices.ts';

/** The backends of a history method: live nodes, which hold some days, and archives, which hold the rest. */
export type Tiers = Readonly<{ live: readonly Backend[]; archive: readonly Backend[] }>;

/** What a request to backends changes in the caller's call. */
export type Changes = Readonly<{
  method?: string;
  params?: Uint8Array | undefined;
  /** Excludes the long-term storage behind a node. */
  localOnly?: boolean;
  signal?: AbortSignal;
}>;

/** A reply that is no stream. */
type ReadReply = Exclude<Reply, { kind: 'stream' }>;

/** One call of a history method, which may need several backends. */
export type HistoryRequest = Readonly<{
  call: Call;
  /** The method's name to backends. */
  method: string;
  tiers: Tiers;
  signal: AbortSignal;
  /** Sends the call to the best of some backends. Never rejects. */
  send(backends: readonly Backend[], changes?: Changes): Promise<Reply>;
  /** The same, with the answer uncompressed and read to its end. One that is cut or above 8 MiB is `no-backend`. */
  read(backends: readonly Backend[], changes: Changes): Promise<ReadReply>;
  /** Sends parameters that are not understood to live nodes, whose errors are Agave's; archives accept some of them. */
  sendUnparsed(): Promise<Reply>;
}>;

/** A route to backends. */
export type ForwardRoute = Extract<Route, { kind: 'forward' }>;

/** No page of 1,000 signatures and no list of 500,000 slots is longer. */
const READ_BYTES_MAX = 8_388_608;

/**
 * Answers a call by `rule`. However many backends work on it, `context.onSettled` is called once, when the rule has its reply
 * and no backend works any more.
 */
export async function answerBy(
  rule: (request: HistoryRequest) => Promise<Reply>,
  forward: Forward,
  call: Call,
  route: ForwardRoute,
  context: CallContext,
  tiers: Tiers,
): Promise<Reply> {
  let open = 1;
  let sent = 0;
  const close = () => void (--open === 0 && context.onSettled());

  async function send(
    backends: readonly Backend[],
    { method = route.name, params = call.params, ...changes }: Changes & Partial<CallContext> = {},
  ): Promise<Reply> {
    open++;
    sent++;
    const to = { ...route, name: method, method: METHODS.get(method) ?? route.method, backends };
    const reply = await forward({ ...call, params, method }, to, {
      ...context,
      ...changes,
      onSettled: close,
    });
    if (reply.kind === 'caller-left' && reply.unsent === true) sent--;
    return reply;
  }

  try {
    const reply = await rule({
      call,
      method: route.name,
      tiers,
      signal: context.signal,
      send,
      async read(backends, changes) {
        const reply = await send(backends, { ...changes, acceptEncoding: 'identity' });
        if (reply.kind !== 'stream') return reply;
        const body = await readAll(reply.body, READ_BYTES_MAX);
        return body.kind === 'all' ? wholeReply(body.bytes) : { kind: 'no-backend' };
      },
      sendUnparsed: () => send(tiers.live.length > 0 ? tiers.live : route.backends),
    });
    if (reply.kind !== 'caller-left') return reply;
    return sent > 0 ? { kind: 'caller-left' } : { kind: 'caller-left', unsent: true };
  } finally {
    close();
  }
}

/** The result of an answer that was read; `undefined`: it has none. */
export function resultOf(reply: ReadReply): Uint8Array | undefined {
  return reply.kind === 'whole' ? memberOf(reply.bytes, 'result') : undefined;
}

/** `{"jsonrpc":"2.0","result":RESULT,"id":ID}` of the result's pieces, the id verbatim. */
export function resultReply(result: readonly (string | Uint8Array)[], { call }: HistoryRequest): Reply {
  return wholeReply(joined(['{"jsonrpc":"2.0","result":', ...result, ',"id":', call.id, '}']));
}

/** Agave's code and text (`custom_error.rs`). */
const STORAGE_UNREACHABLE =
  '"error":{"code":-32019,"message":"Failed to query long-term storage; please try again"}';

/** The answer when a part of history is missing, so that what the others have does not look like all of it. */
export function unavailable({ call, signal }: HistoryRequest): Reply {
  if (signal.aborted) return { kind: 'caller-left' };
  return wholeReply(joined([`{"jsonrpc":"2.0",${STORAGE_UNREACHABLE},"id":`, call.id, '}']));
}

function wholeReply(bytes: Uint8Array<ArrayBuffer>): Extract<Reply, { kind: 'whole' }> {
  return { kind: 'whole', bytes, encoding: undefined };
}

/** What a tier's reply says about the other tier. */
export type Outcome =
  | { readonly kind: 'found' }
  /** An error that the other tier would repeat. */
  | { readonly kind: 'refused' }
  /** "Not here", which may be "not at all". */
  | { readonly kind: 'null' }
  /** An error that the other tier may not have. */
  | { readonly kind: 'lacking'; readonly code: number }
  /** No backend of the tier could answer. */
  | { readonly kind: 'unreachable' }
  | { readonly kind: 'caller-left' };

/** By Agave's `custom_error.rs`; -32000 is Superbank's time-out. */
const LACKING = new Set([
  -32000, -32001, -32004, -32005, -32007, -32009, -32011, -32014, -32019, -32020, -32021, -32601, -32603,
]);

/** Classifies a tier's reply. A stream is never a null, because nulls are short. */
export function outcomeOf(reply: Reply): Outcome {
  if (reply.kind === 'stream') return { kind: 'found' };
  if (reply.kind === 'caller-left') return { kind: 'caller-left' };
  if (reply.kind !== 'whole') return { kind: 'unreachable' };
  const bytes = reply.bytes.length > SMALL_BODY_BYTES_MAX ? undefined : decodeSmallBody(reply);
  if (bytes === undefined) return { kind: 'found' };
  const failure = failureOf(bytes);
  if (failure === undefined) return { kind: isNull(memberOf(bytes, 'result')) ? 'null' : 'found' };
  const { code, message } = failure;
  const isLacking = LACKING.has(code) || message.startsWith('BigTable query failed');
  return isLacking ? { kind: 'lacking', code } : { kind: 'refused' };
}

/** Whether the reply is the answer, whatever the other tier has. */
export function isFinal(reply: Reply): boolean {
  const { kind } = outcomeOf(reply);
  return kind === 'found' || kind === 'refused' || kind === 'caller-left';
}

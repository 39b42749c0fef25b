import { afterSpace, CLOSE_ARRAY, OPEN_ARRAY } from '../json/scan.ts';
import { METHODS } from '../methods/table.ts';
import type { Call } from '../request/envelope.ts';
import { rpcError } from '../respond/refusal.ts';
import type { Backend } from '../upstream/backend.ts';
import { failureOf } from '../upstream/failure.ts';
import type { Asking, Forward, Reply } from '../upstream/forward.ts';
import { readAll } from '../upstream/probe.ts';
import { SAYING_BYTES_MAX, sayingOf } from '../upstream/response-reader.ts';
import type { Route } from '../upstream/router.ts';
import { isNull, joined, memberOf } from './slices.ts';

/** The backends of a history method: live nodes, which hold some days, and archives, which hold the rest. */
export type Tiers = Readonly<{ live: readonly Backend[]; archive: readonly Backend[] }>;

/** How a tier is asked, where that differs from how the caller asked. */
export type Asked = Readonly<{
  params?: Uint8Array | undefined;
  /** Another method than the caller's. */
  method?: string;
  localOnly?: boolean;
  /** The answer must come uncompressed, because it is read here. */
  readable?: boolean;
  signal?: AbortSignal;
}>;

/** One call on its way through the tiers. */
export type Passage = Readonly<{
  call: Call;
  /** The method's name to backends. */
  name: string;
  tiers: Tiers;
  signal: AbortSignal;
  /** Asks some backends of the route. Never rejects. */
  ask(backends: readonly Backend[], asked?: Asked): Promise<Reply>;
  /** Asks live nodes exactly as the caller asked, for their own words about odd parameters; archives overlook some. */
  through(): Promise<Reply>;
}>;

/** A route to backends. */
export type ForwardRoute = Extract<Route, { kind: 'forward' }>;

/**
 * Takes a call through its tiers by `rule`. However many backends are asked meanwhile, `asking.onOver` is called once,
 * when the rule has its answer and no backend works on the call any more.
 */
export async function pass(
  rule: (passage: Passage) => Promise<Reply>,
  forward: Forward,
  call: Call,
  route: ForwardRoute,
  asking: Asking,
  tiers: Tiers,
): Promise<Reply> {
  let open = 1;
  let asks = 0;
  const close = () => void (--open === 0 && asking.onOver());

  function send(sent: Call, to: ForwardRoute, changes: Partial<Asking>): Promise<Reply> {
    open++;
    asks++;
    return forward(sent, to, { ...asking, ...changes, onOver: close });
  }

  const passage: Passage = {
    call,
    name: route.name,
    tiers,
    signal: asking.signal,
    ask(backends, { params = call.params, method, localOnly = false, readable = false, signal } = {}) {
      const to = { ...(method === undefined ? route : routeOf(method, route)), backends };
      const changes = {
        localOnly,
        ...(readable && { acceptEncoding: 'identity' }),
        ...(signal !== undefined && { signal }),
      };
      return send({ ...call, params, method: to.name }, to, changes);
    },
    through: () => send(call, tiers.live.length > 0 ? { ...route, backends: tiers.live } : route, {}),
  };
  try {
    const reply = await rule(passage);
    // A backend that was asked before the caller left has worked for him.
    return reply.kind === 'caller-left' && asks > 1 ? { kind: 'caller-left' } : reply;
  } finally {
    close();
  }
}

function routeOf(name: string, route: ForwardRoute): ForwardRoute {
  return { ...route, name, method: METHODS.get(name) ?? route.method };
}

/** No page of 1,000 signatures and no list of 500,000 slots is longer. */
const READ_BYTES_MAX = 8_388_608;

/** Agave's own words (`custom_error.rs`). */
const STORAGE_UNREACHABLE = -32019;
const STORAGE_REASON = 'Failed to query long-term storage; please try again';

/** What is said when the archive cannot answer and the live nodes' answer alone would read as the end of history. */
export function storageUnreachable(id: Uint8Array): Reply {
  return wholeOf(rpcError(STORAGE_UNREACHABLE, STORAGE_REASON, id));
}

/** `{"jsonrpc":"2.0","result":RESULT,"id":ID}` of the result's pieces, the id verbatim. */
export function resultAnswer(result: readonly (string | Uint8Array)[], id: Uint8Array): Reply {
  return wholeOf(joined(['{"jsonrpc":"2.0","result":', ...result, ',"id":', id, '}']));
}

/** Bytes of ours as an answer that is there at once, uncompressed. */
function wholeOf(bytes: Uint8Array<ArrayBuffer>): Extract<Reply, { kind: 'whole' }> {
  return { kind: 'whole', bytes, encoding: undefined };
}

/** The reply with a stream read to its end; one that breaks off or has no end in sight is no answer. */
export async function readWhole(reply: Reply): Promise<Exclude<Reply, { kind: 'stream' }>> {
  if (reply.kind !== 'stream') return reply;
  const read = await readAll(reply.body, READ_BYTES_MAX);
  return read.kind === 'all' ? wholeOf(read.bytes) : { kind: 'no-backend' };
}

/** A list of slots of one tier: the text inside its brackets, how many there are and the last one. */
export type Slots = Readonly<{ inside: Uint8Array; count: number; last: number }>;

/** A tier's list, or the reply that stands for it. */
export async function readSlots(asked: Promise<Reply>): Promise<Slots | { readonly reply: Reply }> {
  const reply = await readWhole(await asked);
  return (reply.kind === 'whole' ? slotsIn(reply.bytes) : undefined) ?? { reply };
}

/**
 * The list of an answer, found by the first `"result"`, which no escaped id can spell, and counted by its commas: to
 * take half a million numbers apart would hold up every other call for a tenth of a second.
 */
function slotsIn(answer: Uint8Array<ArrayBuffer>): Slots | undefined {
  const named = Buffer.from(answer.buffer, answer.byteOffset, answer.length).indexOf(RESULT);
  const colon = afterSpace(answer, named + RESULT.length);
  const open = afterSpace(answer, colon + 1);
  if (named === -1 || answer[colon] !== COLON || answer[open] !== OPEN_ARRAY) return undefined;
  let commas = 0;
  let last = 0;
  for (let i = open + 1; ; i++) {
    const byte = answer[i] ?? 0;
    if (byte >= ZERO && byte <= NINE) last = last * 10 + byte - ZERO;
    else if (byte === COMMA) {
      commas++;
      last = 0;
    } else if (byte === CLOSE_ARRAY) {
      const inside = answer.subarray(open + 1, i);
      return commas === 0 && afterSpace(answer, open + 1) === i
        ? { inside, count: 0, last: -1 }
        : { inside, count: commas + 1, last };
    } else if (afterSpace(answer, i) === i) return undefined;
  }
}

const RESULT = Buffer.from('"result"');
const COLON = 0x3a;
const COMMA = 0x2c;
const ZERO = 0x30;
const NINE = 0x39;

/** What a tier's reply says about asking the other tier. */
export type Verdict =
  | { readonly kind: 'found' }
  /** An error that the other tier would repeat. */
  | { readonly kind: 'refused' }
  /** "Not here", which may be "not at all". */
  | { readonly kind: 'null' }
  /** An error that the other tier may mend. */
  | { readonly kind: 'lacking'; readonly code: number }
  /** No backend of the tier could answer. */
  | { readonly kind: 'unreachable' }
  | { readonly kind: 'caller-left' };

/** By Agave's `custom_error.rs`; -32000 is Superbank's time-out. */
const LACKING = new Set([
  -32000, -32001, -32004, -32005, -32007, -32009, -32011, -32014, -32019, -32020, -32021, -32601, -32603,
]);

/** Judges a tier's reply. An answer under way is never a null: nulls are short. */
export function verdictOf(reply: Reply): Verdict {
  if (reply.kind === 'stream') return FOUND;
  if (reply.kind === 'caller-left') return { kind: 'caller-left' };
  if (reply.kind !== 'whole') return UNREACHABLE;
  if (reply.bytes.length > SAYING_BYTES_MAX) return FOUND;
  const bytes = sayingOf(reply);
  if (bytes === undefined) return FOUND;
  const failure = failureOf(bytes);
  if (failure === undefined) return isNull(memberOf(bytes, 'result')) ? NULL : FOUND;
  const { code, message } = failure;
  return LACKING.has(code) || message.startsWith('BigTable query failed')
    ? { kind: 'lacking', code }
    : REFUSED;
}

/** Whether the other tier need not be asked. */
export function isOver({ kind }: Verdict): boolean {
  return kind === 'found' || kind === 'refused' || kind === 'caller-left';
}

const FOUND: Verdict = { kind: 'found' };
const REFUSED: Verdict = { kind: 'refused' };
const NULL: Verdict = { kind: 'null' };
const UNREACHABLE: Verdict = { kind: 'unreachable' };

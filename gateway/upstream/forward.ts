import type { Clock } from '../../shared/clock.ts';
import { PROFILES } from '../../shared/config/profiles.ts';
import type { Method, MethodClass } from '../methods/table.ts';
import { type Call, requestBytes, writeRequest } from '../request/envelope.ts';
import { type Backend, COMMITMENTS, type EnteringCall, enterOneOf } from './backend.ts';
import {
  type Advice,
  adviceOn,
  adviceOnFailure,
  type Failure,
  isItsFault,
  mayHaveActed,
  NODE_UNHEALTHY,
  SKIPPED,
  SKIPPED_FOR_GOOD,
  SLOT_NOT_REACHED,
  THROTTLED,
  TOO_LARGE,
} from './failure.ts';
import { type HttpReply, LOST } from './http-connection.ts';
import {
  isUnread,
  judge,
  mapBody,
  readAll,
  type ResponseStart,
  type StreamedAnswer,
  type StreamEnd,
  watched,
  type WholeAnswer,
} from './response-reader.ts';
import type { ForwardRoute, Need, Pool, RetryBudget } from './selection.ts';

/** A backend's answer under way, or what is left to say when no backend gave one. */
export type Reply =
  | ResponseStart
  /** `too-large` for every backend. `replied`: the rate keeps its token. */
  | Readonly<{ kind: 'no-backend' | 'too-large'; replied?: boolean }>
  /** A transaction whose outcome is unknown. A backend may have worked on it, so the rate keeps its token. */
  | { readonly kind: 'maybe-sent' }
  /** The caller left before an answer began. What was sent was sent, so the call is paid for, unless it was `unsent`. */
  | { readonly kind: 'caller-left'; readonly unsent?: true };

/**
 * Sends a call to its route's backends, the best first, until one begins an answer. Only before the first byte is
 * another tried, so no caller ever sees two answers; an error that another backend may mend is the answer when none
 * does. Aborting `signal` (the caller left) ends the backend's exchange, also in the middle of the answer. Never rejects.
 */
export type Forward = (
  call: Call,
  route: ForwardRoute,
  context: TimedContext,
  first?: FirstAttempt,
) => Promise<Reply>;

/** An attempt that was made before, by the straight way (`direct.ts`), at a backend that is not left yet. */
type FirstAttempt = Readonly<{
  backend: Backend;
  sentId: Uint8Array;
  outcome: HttpReply | ResponseStart | Failure;
}>;

/** A call's caller, and how it is sent. */
export type CallContext = EnteringCall &
  Readonly<{
    /** Nodes leave their long-term storage out, because an archive serves it. */
    localOnly?: boolean;
    /** It is one of several requests of a call: the time to its first byte is its own. */
    isPart?: boolean;
    /** Other backends follow these, whose attempts share the time of one. */
    hasNext?: boolean;
    /** The answer is read here to its end, and has the deadline of all attempts: its caller sees nothing of it before. */
    isReadHere?: boolean;
    /** It is one of several copies of a call, which is counted once, by whoever made them. */
    isCopy?: boolean;
    /** Called once when no backend works on the call any more, with or without an answer: permits are held until then. */
    onSettled?: (() => void) | undefined;
  }>;

/** And since when, on the monotonic clock: the deadline of all attempts counts from there, whatever a rule makes of the call. */
export type TimedContext = CallContext & Readonly<{ startedMs: number }>;

/** What happens on the way, for metrics and logs. */
export type ForwardEvents = Readonly<{
  /** A call waited `ms` for its answer to begin. */
  onResponseStart(method: Method, ms: number): void;
  /** An attempt failed before the first byte. */
  onFailure(backend: Backend, failure: Failure): void;
  /** A call that a backend's trouble would have sent to another one was `made`, or the pool's budget was used up. */
  onRetry(made: boolean): void;
  /** A stream broke off after the first byte for another reason than its caller leaving. */
  onCut(backend: Backend, end: Extract<StreamEnd, { kind: 'cut' }>): void;
}>;

export type ForwardParts = ForwardEvents &
  Readonly<{
    clock: Clock;
    /** The longest time to the first byte of an attempt, waiting for a place included; all attempts have twice that. */
    dueMs: Readonly<Record<MethodClass, number>>;
    pool: Pool;
    budget: RetryBudget;
    /** The id of the next send to a backend. */
    nextId(): Uint8Array;
    /** A number from 0 up to 1. */
    random(): number;
  }>;

/** How long a call waits when all its backends hang, so that its caller has an answer within a second. */
const HANGING_MS = 500;
/** An attempt with less time left is not begun: its timeout would count against the backend. */
const ATTEMPT_MS_MIN = 250;

/** How often, and how long apart, a call is sent again whose answer is not known yet (-32014). */
const LATER_MAX = 2;
const LATER_MS_MIN = 200;
const LATER_MS_MAX = 400;

export function createForward(parts: ForwardParts): Forward {
  const { clock, pool, budget, nextId, random, dueMs, onResponseStart, onRetry, onCut } = parts;

  return async function forward(call, { name, member, method, backends }, context, first) {
    const { signal, accountId, localOnly = false, startedMs, onSettled } = context;
    const limitMs = dueMs[method.class];
    let sinceMs = clock.monotonic();
    const begunMs = context.isPart ? sinceMs : startedMs;
    const lastMs = Math.min(startedMs + 2 * limitMs, context.hasNext ? sinceMs + limitMs : Infinity);
    const bytes = requestBytes(call, member);
    const need = pool.needOf(call, method, accountId);
    const failover = createFailover(parts, method, need);
    const able = backends.filter(({ config }) => bytes <= (config.bodyBytesMax ?? Infinity));
    if (able.length === 0) return over({ kind: 'too-large' });
    const ordered = pool.inOrder(able, need);
    const waitMs = endMsAt(ordered) - sinceMs;
    const entered = first?.backend ?? (await enterOneOf(ordered, context, waitMs, clock));
    if (first === undefined && signal.aborted) {
      entered?.leave();
      return over({ kind: 'caller-left', unsent: true });
    }
    if (entered === undefined) return over({ kind: 'no-backend' });
    if (first === undefined && !context.isCopy) budget.deposit();
    const untried = ordered.filter((backend) => backend !== entered);
    let sent = first;
    let left = Infinity;
    let waits = 0;
    for (let at: Backend | undefined = entered; at !== undefined; at = enterNext(untried, clock)) {
      if (sent === undefined && endMsAt([at]) - clock.monotonic() < ATTEMPT_MS_MIN) {
        at.leave(); // there is no time for an answer, after a wait for a place or other requests of the call
        at.endProbation();
        break;
      }
      const outcome = namedBy(at, await attempt(at, sent));
      sent = undefined;
      sinceMs = clock.monotonic();
      if (outcome.kind !== 'stream') at.leave();
      if (signal.aborted && outcome.kind !== 'stream') {
        at.endProbation();
        return over({ kind: 'caller-left' });
      }
      const others = untried.filter(({ hasRoom }) => hasRoom);
      const decision = failover.take(at, outcome, others);
      if (typeof decision === 'object')
        return decision.kind === 'whole' ? over(decision) : begun(decision, at);
      if (decision === 'final' || (decision === 'later' && waits++ === LATER_MAX)) break;
      if (outcome.kind === 'stream' || (decision === 'later' && others.length === 0)) untried.push(at);
      if (outcome.kind === 'no-answer' && outcome.reason === LOST) untried.unshift(at);
      if (decision.endsWith('-once')) left = Math.min(left, 1);
      const isOver = untried.length === 0 || sinceMs >= endMsAt(untried);
      if (isOver || left-- === 0 || (!decision.startsWith('miss') && !mayRetry())) break;
      if (decision === 'later')
        await clock.sleep(LATER_MS_MIN + random() * (LATER_MS_MAX - LATER_MS_MIN), signal);
      if (signal.aborted) return over({ kind: 'caller-left' });
    }
    return over(failover.rest());

    /** Sends the call to one backend once, and judges the reply, or what came of it when it was `sent` before. Never rejects. */
    async function attempt(backend: Backend, sent: FirstAttempt | undefined) {
      const { config, client } = backend;
      const isNew = isStale(sent?.outcome);
      const known = isNew ? undefined : sent;
      const sentId = known?.sentId ?? nextId();
      const body = Buffer.allocUnsafe(bytes);
      writeRequest(call, sentId, member, body, 0);
      const request = {
        body,
        dueMs: endMsAt([backend]) - clock.monotonic(),
        kind: method.class,
        accountId,
        hasOther: () => untried.some(({ isSilent }) => !isSilent),
        localOnly: localOnly && PROFILES[config.profile].bigtable,
        // Once more on a new one; another kept one may be closing too.
        isNew,
      };
      const sentMs = clock.monotonic();
      const reply = known?.outcome ?? (await client.send(request, signal));
      const ms = clock.monotonic() - sentMs;
      if (known === undefined) pool.noteTime(backend, backends, need, ms, reply.kind === 'reply');
      if (reply.kind !== 'reply') return reply;
      const sentCall = { name, sentId, callerId: call.id };
      return judge(reply, sentCall, config.trustsEnd, signal, method.class === 'write');
    }

    /** When the next attempt, at one of these backends, must have given its first byte. */
    function endMsAt(choices: readonly Backend[]): number {
      if (choices.every(({ isSilent }) => isSilent)) return startedMs + HANGING_MS;
      return Math.min(sinceMs + limitMs, lastMs);
    }

    function begun(answer: StreamedAnswer, backend: Backend): Reply {
      noteStart();
      return onItsWay(answer, backend, context, { clock, lastMs, onCut: cut });
    }

    function over(reply: Reply): Reply {
      if (reply.kind === 'whole') noteStart();
      onSettled?.();
      return reply;
    }

    function noteStart(): void {
      if (!context.isCopy) onResponseStart(method, clock.monotonic() - begunMs);
    }
  };

  function cut(backend: Backend, end: StreamEnd & { kind: 'cut' }): void {
    onCut(backend, end);
    if (!isUnread(end)) backend.markFailed(clock);
  }

  function mayRetry(): boolean {
    const made = budget.take();
    onRetry(made);
    return made;
  }
}

/** A stream on its way: the call leaves its backend with its end, and one that is read here is cut at `lastMs`. */
function onItsWay(
  answer: StreamedAnswer,
  backend: Backend,
  { signal, evict, isReadHere, onSettled }: TimedContext,
  { clock, lastMs, onCut }: Readonly<{ clock: Clock; lastMs: number; onCut: ForwardEvents['onCut'] }>,
): Reply {
  const reading = isReadHere ? new AbortController() : undefined;
  const stream = watched(answer.body, signal, (end) => {
    reading?.abort();
    backend.leave();
    onSettled?.();
    if (end.kind === 'cut' && end.reason !== 'cancelled') onCut(backend, end);
  });
  answer.body.offer?.(() => {
    if (evict?.() !== true) stream.cancel('evicted');
  });
  const stop = (reason: 'bad-json' | 'stalled') => {
    stream.cancel();
    onCut(backend, { kind: 'cut', reason, bytes: 0 });
  };
  if (reading !== undefined)
    void clock.sleep(lastMs - clock.monotonic(), reading.signal).then(() => {
      if (!reading.signal.aborted) stop('stalled');
    });
  return { ...answer, body: mapBody(stream, { reject: () => stop('bad-json') }) };
}

/** Whether a kept connection closed without a byte: what that means for its backend, a new one shows. */
export function isStale(outcome: FirstAttempt['outcome'] | undefined): boolean {
  return outcome?.kind === 'no-answer' && outcome.stale === true;
}

/** The outcome of an attempt; an answer with the name of the backend that gave it. */
function namedBy({ config }: Backend, outcome: ResponseStart | Failure): ResponseStart | Failure {
  if (outcome.kind !== 'whole' && outcome.kind !== 'stream') return outcome;
  return { ...outcome, backend: config.name };
}

/** How a call is sent whose answer `readReply` reads. */
export const READ_HERE = { isReadHere: true };

/** Reads a reply to its end. One that is cut or above `bytesMax` is `no-backend`. */
export async function readReply(reply: Reply, bytesMax: number): Promise<Exclude<Reply, { kind: 'stream' }>> {
  if (reply.kind !== 'stream') return reply;
  const bytes = await readAll(reply.body, bytesMax);
  if (typeof bytes === 'string') return { kind: 'no-backend', replied: true };
  const { code, slot = 0, backend } = reply;
  return { kind: 'whole', bytes, code, slot, backend };
}

function enterNext(backends: Backend[], clock: Clock): Backend | undefined {
  const at = backends.findIndex(({ hasRoom }) => hasRoom);
  const [next] = at === -1 ? [] : backends.splice(at, 1);
  next?.enter(clock);
  return next;
}

/** Keeps what the attempts of one call have shown so far, and decides after each how to go on. */
function createFailover({ clock, pool, onFailure }: ForwardParts, method: Method, need: Need) {
  /** The answer when no attempt gives a better one: the first error, or an answer that is only old. */
  let kept: WholeAnswer | undefined;
  /** Backends whose stream was cancelled because it was old: they are tried once more when no other has a newer answer. */
  const old = new Set<Backend>();
  let tooLarge: boolean | undefined;
  let replied = false;
  let maybeSent = false;

  function afterFailure(backend: Backend, failure: Failure): Advice {
    onFailure(backend, failure);
    maybeSent ||= method.class === 'write' && mayHaveActed(failure);
    if (isItsFault(failure)) backend.markFailed(clock);
    else backend.endProbation();
    return adviceOnFailure(failure, method.class);
  }

  /** A good answer, unless it is older than what this caller has been shown while another backend is not. */
  function afterAnswer(backend: Backend, answer: ResponseStart, others: readonly Backend[]) {
    const { slot = 0 } = answer;
    backend.markWell();
    pool.learn(backend, need, slot);
    if (slot === 0 || slot >= need.slotMin || old.has(backend) || !others.some(isNewEnough)) return answer;
    if (answer.kind === 'whole') kept ??= answer;
    else {
      old.add(backend);
      answer.body.cancel(); // nothing of it has left
      backend.leave();
    }
    return 'miss';
  }

  /** Whether a backend is well, and known to have the slot. */
  function isNewEnough(backend: Backend): boolean {
    const { commitment, slotMin } = need;
    const isWell = backend.health.excludedBecause === undefined && !backend.isFailing(clock);
    return isWell && commitment !== undefined && backend.slots.tip[commitment] >= slotMin;
  }

  return {
    /** The call's answer, or what the outcome of an attempt advises about the others; `final`: none may be tried. */
    take(backend: Backend, outcome: ResponseStart | Failure, others: readonly Backend[]) {
      tooLarge = tooLarge !== false && outcome.kind === 'status' && outcome.status === TOO_LARGE;
      replied ||= outcome.kind !== 'unsent' && outcome.kind !== 'no-answer';
      if (outcome.kind !== 'whole' && outcome.kind !== 'stream') return afterFailure(backend, outcome);
      if (outcome.kind === 'stream' || outcome.code === undefined)
        return afterAnswer(backend, outcome, others);
      const { code, message = '' } = outcome;
      const isThrottled = THROTTLED.has(code);
      if (isThrottled || code === NODE_UNHEALTHY) backend.markFailed(clock);
      else backend.markWell();
      const isHopeless = code === SLOT_NOT_REACHED && !others.some((other) => mayReach(other, backend, need));
      const advice = isHopeless ? 'final' : adviceOn({ code, message }, method.class, backend.config.profile);
      // An archive's "skipped" adds nothing to a node's, which is the better known of the two.
      const addsNothing = isHopeless || (code === SKIPPED_FOR_GOOD && kept?.code === SKIPPED);
      if (advice === 'final') return addsNothing && kept !== undefined ? kept : outcome;
      if (!isThrottled) kept ??= outcome;
      return advice;
    },
    /** What there is to say when no attempt was the answer; too large is what every backend found too long. */
    rest(): Reply {
      if (maybeSent) return { kind: 'maybe-sent' };
      return kept ?? { kind: tooLarge === true ? 'too-large' : 'no-backend', replied };
    },
  };
}

/** Whether a backend may have the slot that another one has not reached: it is known to have it, or newer ones. */
function mayReach({ slots: { tip } }: Backend, than: Backend, { slotMin }: Need): boolean {
  if (COMMITMENTS.every((commitment) => tip[commitment] === 0)) return true;
  return COMMITMENTS.some(
    (each) => tip[each] > than.slots.tip[each] || (slotMin > 0 && tip[each] >= slotMin),
  );
}

import type { Clock } from '../../shared/clock.ts';
import { PROFILES } from '../../shared/config/profiles.ts';
import { deadlineMsOf, type Method } from '../methods/table.ts';
import type { Call } from '../request/envelope.ts';
import { type Backend, permitAt, acquirePermit, type BatchPosition, type Permit } from './backend.ts';
import { type FailoverParts, createFailoverState } from './failover.ts';
import type { Failure } from './failure.ts';
import type { HttpReply } from './http-connection.ts';
import { NO_BIGTABLE } from './probe.ts';
import { type ResponseStart, judge, type StreamBody, type StreamEnd } from './response-reader.ts';
import type { Route } from './router.ts';
import { type RetryBudget, readRequirementOf } from './selection.ts';

/** `{"jsonrpc":"2.0","id":ID,"method":"NAME","params":PARAMS}` with the caller's own bytes of id and params. */
export function requestBody({ id, params }: Call, name: string): Uint8Array<ArrayBuffer> {
  const middle = Buffer.from(`,"method":${JSON.stringify(name)}${params === undefined ? '' : ',"params":'}`);
  const body = new Uint8Array(OPEN.length + id.length + middle.length + (params?.length ?? 0) + 1);
  let at = 0;
  for (const part of [OPEN, id, middle, params, CLOSE]) {
    if (part === undefined) continue;
    body.set(part, at);
    at += part.length;
  }
  return body;
}

const OPEN = Buffer.from('{"jsonrpc":"2.0","id":');
const CLOSE = Buffer.from('}');

/**
 * Sends a body to one backend once, from a place there that is given back; gives the answer that began, or why none
 * did. `sent` is what came of it when it was sent before. Never rejects.
 */
type Attempt = (
  stay: Permit,
  method: Method,
  request: Uint8Array,
  context: CallContext,
  sent?: FirstAttempt['outcome'],
) => Promise<ResponseStart | Failure>;

/** An attempt that was made before, by the straight way (`direct.ts`). */
type FirstAttempt = Permit & Readonly<{ startedMs: number; outcome: HttpReply | ResponseStart | Failure }>;

/** Called when a stream breaks off after the first byte for another reason than its caller leaving. */
export type OnCut = (backend: Backend, end: Extract<StreamEnd, { kind: 'cut' }>) => void;

type Deps = Readonly<{ clock: Clock; idleMs: number; onCut: OnCut }>;

export function createAttempt({ clock, idleMs, onCut }: Deps): Attempt {
  return async function attempt({ backend, leave }, method, request, context, sent) {
    const { acceptEncoding, signal, onSettled, localOnly = false } = context;
    const { profile, trustsEnd } = backend.config;
    const dueMs = deadlineMsOf(method.class, idleMs);
    const waitBudget = { clock, dueAtMs: clock.monotonic() + dueMs, signal };
    const extra = localOnly && PROFILES[profile].bigtable ? NO_BIGTABLE : undefined;
    const message = { body: request, acceptEncoding, dueMs, fresh: method.class === 'write', extra };
    const reply = sent ?? (await backend.client.send(message, signal));
    const outcome =
      reply.kind === 'reply' ? await judge(reply, acceptEncoding, trustsEnd, waitBudget) : reply;
    if (outcome.kind !== 'stream') {
      leave();
      return outcome;
    }
    const body = watched(outcome.body, signal, (end) => {
      leave();
      onSettled();
      if (end.kind === 'cut' && end.reason !== 'cancelled') cut(backend, end);
    });
    const reject = () => {
      body.cancel();
      cut(backend, { kind: 'cut', reason: 'bad-json', bytes: 0 });
    };
    return { ...outcome, body: { ...body, reject } };
  };

  function cut(backend: Backend, end: Extract<StreamEnd, { kind: 'cut' }>): void {
    onCut(backend, end);
    backend.markFailed(clock);
  }
}

/** The body, cancelled when `signal` aborts; `onEnd` is called once, however it ends. */
export function watched(body: StreamBody, signal: AbortSignal, onEnd: (end: StreamEnd) => void): StreamBody {
  let piped = false;
  let over = false;
  const finish = (end: StreamEnd) => {
    if (over) return;
    over = true;
    signal.removeEventListener('abort', cancel);
    onEnd(end);
  };
  function cancel() {
    body.cancel();
    // A body that is not piped does not report its own end.
    if (!piped) finish({ kind: 'cut', reason: 'cancelled', bytes: 0 });
  }
  if (signal.aborted) cancel();
  else signal.addEventListener('abort', cancel, { once: true });
  return {
    cancel,
    async pipe(write) {
      piped = true;
      const end = await body.pipe(write);
      finish(end);
      return end;
    },
  };
}

/** A backend's answer under way, or what is left to say when no backend gave one. */
export type Reply =
  | ResponseStart
  | { readonly kind: 'no-backend' }
  /** No backend takes a request of this length. */
  | { readonly kind: 'too-large' }
  /** The caller left before an answer began. What was sent was sent, so the call is paid for, unless it was `unsent`. */
  | { readonly kind: 'caller-left'; readonly unsent?: true };

/**
 * Sends a call to its route's backends, the best first, until one begins an answer. Only before the first byte is
 * another tried, so no caller ever sees two answers; an error that another backend may mend is the answer when none
 * does. Aborting `signal` (the caller left) ends the backend's exchange, also in the middle of the answer. Never rejects.
 */
export type Forward = (
  call: Call,
  route: Extract<Route, { kind: 'forward' }>,
  context: CallContext,
  first?: FirstAttempt,
) => Promise<Reply>;

/** Who asks, and how. */
export type CallContext = Readonly<{
  /** The content encodings the caller can read. */
  acceptEncoding: string;
  /** Aborts when the caller leaves. */
  signal: AbortSignal;
  /** The account that asks. */
  accountId: number;
  /** Nodes leave their long-term storage out, because an archive serves it. */
  localOnly?: boolean;
  /** Called once when no backend works on the call any more, with or without an answer: permits are held until then. */
  onSettled(): void;
  /** Called when every backend is full and the call waits for a place; what it gives is called when it waits no longer. */
  onWait?(): () => void;
  /** Where the call stands in its batch: of those of a batch that wait for a place, the earliest has it first. */
  batchPosition?: BatchPosition;
}>;

/** What happens on the way, for metrics and logs. */
export type ForwardEvents = Readonly<{
  /** A call waited `ms` for its answer to begin. */
  onResponseStart(method: Method, ms: number): void;
  onFailure: FailoverParts['onFailure'];
  /** A call that a backend's trouble would have sent to another one was `made`, or the pool's budget was used up. */
  onRetry(made: boolean): void;
}>;

type Forwarding = Readonly<{
  clock: Clock;
  idleMs: number;
  attempt: Attempt;
  budget: RetryBudget;
  /** A number from 0 up to 1. */
  random(): number;
}> &
  FailoverParts &
  ForwardEvents;

const NO_BACKEND: Reply = { kind: 'no-backend' };
const TOO_LARGE: Reply = { kind: 'too-large' };
const CALLER_LEFT: Reply = { kind: 'caller-left' };
const LEFT_UNSENT: Reply = { kind: 'caller-left', unsent: true };

/** How often, and how long apart, a call is sent again whose answer is not known yet (-32014). */
const LATER_MAX = 2;
const LATER_MS_MIN = 200;
const LATER_MS_MAX = 400;

/** A place at the next one that still has room. */
function nextIn(queue: Backend[]): Permit | undefined {
  for (let backend = queue.shift(); backend !== undefined; backend = queue.shift()) {
    if (backend.hasRoom) return permitAt(backend);
  }
  return undefined;
}

/** Tells that a call is over at the end of the stream that became its answer, and of no other that was let go of. */
function overWithAnswer(onSettled: () => void) {
  let hasEnded = false;
  let wasChosen = false;
  return {
    ended() {
      hasEnded = true;
      if (wasChosen) onSettled();
    },
    isAnswer() {
      wasChosen = true;
      if (hasEnded) onSettled();
    },
  };
}

export function createForward(given: Forwarding): Forward {
  const { clock, idleMs, attempt, pool, budget, random, onResponseStart, onRetry } = given;

  return async function forward(call, { name, method, backends }, context, first) {
    const { signal, accountId, onSettled } = context;
    const body = requestBody(call, name);
    const startedMs = first?.startedMs ?? clock.monotonic();
    const requirement = readRequirementOf(call, method.class);
    const slotMin = pool.slotMin(requirement, accountId);
    const failover = createFailoverState(given, { name, method, requirement, accountId, slotMin });
    const able = backends.filter(({ config }) => body.length <= (config.bodyBytesMax ?? Infinity));
    if (able.length === 0) return over(TOO_LARGE);
    const ordered = pool.inOrder(able, requirement, accountId, slotMin);
    const waitMs = deadlineMsOf(method.class, idleMs);
    const coming =
      first === undefined
        ? acquirePermit(ordered, accountId, waitMs, clock, signal, context.batchPosition)
        : { ...first, others: ordered.filter((backend) => backend !== first.backend && backend.hasRoom) };
    const onPlace = coming instanceof Promise ? context.onWait?.() : undefined;
    const place = await coming;
    onPlace?.();
    if (signal.aborted && first === undefined) place?.leave();
    if (signal.aborted && first === undefined) return over(LEFT_UNSENT);
    if (place === undefined) return over(NO_BACKEND);
    const queue = [...place.others];
    let left = Infinity;
    let waits = 0;
    if (first === undefined) budget.deposit();
    for (let at: Permit | undefined = place; at !== undefined; at = nextIn(queue)) {
      const stream = overWithAnswer(onSettled);
      const sent = at === place ? first?.outcome : undefined;
      const outcome = await attempt(at, method, body, { ...context, onSettled: stream.ended }, sent);
      if (signal.aborted && outcome.kind !== 'stream') {
        at.backend.endTrial();
        return over(CALLER_LEFT);
      }
      const decision = failover.take(at.backend, outcome, queue);
      if (decision.kind === 'answer') return started(decision.answer, stream.isAnswer);
      if (decision.kind === 'stop' || (decision.later && waits++ === LATER_MAX)) break;
      if (decision.later && queue.length === 0) queue.push(at.backend);
      if (decision.once) left = Math.min(left, 1);
      if (queue.length === 0 || left-- === 0 || (decision.spends && !mayRetry())) break;
      if (decision.later) await clock.sleep(LATER_MS_MIN + random() * (LATER_MS_MAX - LATER_MS_MIN), signal);
      if (signal.aborted) return over(CALLER_LEFT);
    }
    const kept = failover.kept();
    if (kept !== undefined) return started(kept, () => undefined);
    return over(failover.allTooLarge() ? TOO_LARGE : NO_BACKEND);

    /** The permit of an answer under way is given back by its end, which the attempt watches. */
    function started(answer: ResponseStart, isAnswer: () => void): Reply {
      onResponseStart(method, clock.monotonic() - startedMs);
      if (answer.kind !== 'stream') return over(answer);
      isAnswer();
      return answer;
    }

    function over(reply: Reply): Reply {
      onSettled();
      return reply;
    }
  };

  function mayRetry(): boolean {
    const made = budget.take();
    onRetry(made);
    return made;
  }
}

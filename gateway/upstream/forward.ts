import { unreachable } from '../../shared/brand.ts';
import type { Clock } from '../../shared/clock.ts';
import { PROFILES } from '../../shared/config/profiles.ts';
import type { Method, MethodClass } from '../../shared/config/methods.ts';
import { type Call, requestBytes, writeRequest } from '../request/envelope.ts';
import { isUnread, mapBody, readAll, type StreamEnd, watched } from '../http/stream-body.ts';
import { type Backend, COMMITMENTS, type EnteringCall, enterOneOf } from './backend.ts';
import {
  ATTEMPT_MS_MIN,
  attemptEndsMs,
  begin,
  type Deadlines,
  type FailoverEvent,
  type FailoverState,
  isAnswer,
  next,
  type Others,
  type Outcome,
  type Progress,
  type CallReply,
  type Sending,
  sendingTo,
  verdictOn,
} from './failover.ts';
import type { Failure } from './failure.ts';
import { judge, type StreamedAnswer } from './response-reader.ts';
import { type ForwardRoute, type Need, type Pool, type RetryBudget, takersOf } from './selection.ts';

/**
 * Sends a call to its route's backends, the best first, until one begins an answer (`failover.ts` says when it goes to
 * another). Aborting `signal` (the caller left) ends the backend's exchange, also in the middle of the answer. Never rejects.
 */
export type Forward = (call: Call, route: ForwardRoute, context: TimedContext) => Promise<CallReply>;

/** A call's caller. */
export type CallContext = EnteringCall &
  Readonly<{
    /** Called once when no backend works on the call any more, with or without an answer: permits are held until then. */
    onSettled?: (() => void) | undefined;
  }>;

/** And since when, on the monotonic clock: the deadline of all attempts counts from there, whatever a rule makes of the call. */
export type TimedContext = CallContext &
  Readonly<{
    startedMs: number;
    /** Absent: the call itself is sent. */
    part?: HistoryPart;
  }>;

/** One of the requests that history makes of a call: the time to its first byte is its own. */
export type HistoryPart = Readonly<{
  /** Nodes leave their long-term storage out, because an archive serves it. */
  localOnly: boolean;
  /** Other backends follow these, whose attempts share the time of one. */
  hasNext: boolean;
}>;

/** Hooks on the way of a call, for metrics and logs. */
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
    /** The longest time to the first byte of an attempt, waiting for a connection included; all attempts have twice that. */
    dueMs: Readonly<Record<MethodClass, number>>;
    pool: Pool;
    budget: RetryBudget;
    /** The id of the next send to a backend. */
    nextId(): Uint8Array;
    /** A number from 0 up to 1. */
    random(): number;
  }>;

export function createForward(parts: ForwardParts): Forward {
  return (call, route, context) => new ForwardedCall(parts, call, route, context).run();
}

const NONE = { kind: 'none' } as const;
const CALLER_LEFT = { kind: 'caller-left' } as const;

/** Drives the failover of one call: enters, sends to, marks and leaves backends as its states say. */
export class ForwardedCall {
  readonly #parts: ForwardParts;
  readonly #call: Call;
  readonly #route: ForwardRoute;
  readonly #context: TimedContext;
  readonly #need: Need;
  readonly #bytes: number;
  readonly #deadlines: Deadlines;
  readonly #begunMs: number;
  /** When the last attempt ended, or the call began. */
  #sinceMs: number;

  constructor(parts: ForwardParts, call: Call, route: ForwardRoute, context: TimedContext) {
    const { startedMs, part } = context;
    const nowMs = parts.clock.monotonic();
    const attemptMs = parts.dueMs[route.method.class];
    const lastMs = Math.min(startedMs + 2 * attemptMs, part?.hasNext ? nowMs + attemptMs : Infinity);
    this.#parts = parts;
    this.#call = call;
    this.#route = route;
    this.#context = context;
    this.#need = parts.pool.needOf(call, route.method, context.accountId);
    this.#bytes = requestBytes(call, route.member);
    this.#deadlines = { startedMs, attemptMs, lastMs };
    this.#begunMs = part === undefined ? startedMs : nowMs;
    this.#sinceMs = nowMs;
  }

  /** Goes on from a state to the reply. Never rejects. */
  async run(from: FailoverState<Backend> = this.#begin()): Promise<CallReply> {
    for (let state = from; ;) {
      switch (state.kind) {
        case 'waiting':
          state = next(state, await this.#enter(state.call));
          break;
        case 'retrying':
          state = next(state, await this.#enterAgain(state));
          break;
        case 'sending':
          state = this.after(state, await this.#attempt(state));
          break;
        case 'done':
          return this.#noted(state.reply);
        default:
          return unreachable(state);
      }
    }
  }

  #noted(reply: CallReply): CallReply {
    const { clock, onResponseStart } = this.#parts;
    if (reply.kind === 'whole' || reply.kind === 'stream')
      onResponseStart(this.#route.method, clock.monotonic() - this.#begunMs);
    if (reply.kind !== 'stream') this.#context.onSettled?.();
    return reply;
  }

  #begin(): FailoverState<Backend> {
    const able = takersOf(this.#route, this.#bytes);
    return begin(this.#untried(able), able.length === 0);
  }

  /** The state of a call that has entered a backend and was sent, or is to be sent over a new connection. */
  sendingTo(at: Backend, isNew = false): Sending<Backend> {
    return sendingTo(at, this.#untried(), isNew);
  }

  #untried(able = takersOf(this.#route, this.#bytes)): Progress<Backend> {
    const untried = this.#parts.pool.inOrder(able, this.#need);
    const { slotMin } = this.#need;
    const { class: kind } = this.#route.method;
    return { class: kind, slotMin, untried, attemptsLeft: Infinity, old: [], fallback: undefined };
  }

  async #enter({ untried }: Progress<Backend>): Promise<FailoverEvent<Backend>> {
    const { clock, budget } = this.#parts;
    const entered = await enterOneOf(untried, this.#context, this.#msLeft(untried), clock);
    if (entered !== undefined && !this.#context.signal.aborted) budget.deposit();
    return this.#entered(entered);
  }

  async #enterAgain(
    state: Extract<FailoverState<Backend>, { kind: 'retrying' }>,
  ): Promise<FailoverEvent<Backend>> {
    const { clock, random } = this.#parts;
    const { costsBudget, delayMs, call } = state;
    if (this.#msLeft(call.untried) <= 0 || (costsBudget && !this.#mayRetry())) return NONE;
    if (delayMs > 0) await clock.sleep(delayMs * (1 + random()), this.#context.signal);
    const entered = call.untried.find(({ hasRoom }) => hasRoom);
    entered?.enter(clock);
    return this.#entered(entered);
  }

  #entered(at: Backend | undefined): FailoverEvent<Backend> {
    const { aborted } = this.#context.signal;
    // There may be no time for an answer, after a wait or other requests of the call.
    if (at !== undefined && !aborted && this.#msLeft([at]) >= ATTEMPT_MS_MIN) return { kind: 'entered', at };
    at?.leave();
    at?.endProbation();
    return aborted ? CALLER_LEFT : NONE;
  }

  #mayRetry(): boolean {
    const made = this.#parts.budget.take();
    this.#parts.onRetry(made);
    return made;
  }

  #msLeft(choices: readonly Backend[]): number {
    const endsMs = attemptEndsMs(
      this.#deadlines,
      this.#sinceMs,
      choices.every(({ isSilent }) => isSilent),
    );
    return endsMs - this.#parts.clock.monotonic();
  }

  /** Sends the call to one backend once, and judges the reply. Never rejects. */
  async #attempt({ at, isNew, call: { untried } }: Sending<Backend>): Promise<Outcome> {
    const { clock, pool, nextId } = this.#parts;
    const { signal, accountId, part } = this.#context;
    const { member, method, backends } = this.#route;
    const { config, client } = at;
    const sentId = nextId();
    const body = Buffer.allocUnsafe(this.#bytes);
    writeRequest(this.#call, sentId, member, body, 0);
    const request = {
      body,
      dueMs: this.#msLeft([at]),
      kind: method.class,
      accountId,
      hasOther: () => untried.some(({ isSilent }) => !isSilent),
      localOnly: part?.localOnly === true && PROFILES[config.profile].bigtable,
      isNew,
    };
    const sentMs = clock.monotonic();
    const reply = await client.send(request, signal);
    pool.noteTime(at, backends, this.#need, clock.monotonic() - sentMs, reply.kind === 'reply');
    if (reply.kind !== 'reply') return reply;
    const sentCall = { slotIn: method.slotIn, sentId, callerId: this.#call.id };
    return judge(reply, sentCall, config.trustsEnd, signal, method.class === 'write');
  }

  /** The state after an attempt; its backend is marked and left, unless it is sent to again or streams the answer. */
  after(state: Sending<Backend>, came: Outcome): FailoverState<Backend> {
    const { at } = state;
    const { name, profile } = at.config;
    const outcome = isAnswer(came) ? { ...came, backend: name } : came;
    const hasLeft = this.#context.signal.aborted && outcome.kind !== 'stream';
    const event = { kind: 'outcome', outcome, profile, others: this.#others(state) } as const;
    const after = next(state, hasLeft ? CALLER_LEFT : event);
    this.#sinceMs = this.#parts.clock.monotonic();
    if (after.kind === 'sending') return after;
    if (hasLeft) at.endProbation();
    else this.#mark(at, outcome);
    if (after.kind === 'done' && after.reply.kind === 'stream')
      return { kind: 'done', reply: this.#onItsWay(after.reply, at) };
    if (outcome.kind === 'stream') outcome.body.cancel(); // nothing of it has left
    at.leave();
    return after;
  }

  #mark(at: Backend, outcome: Outcome): void {
    const { clock, pool, onFailure } = this.#parts;
    if (!isAnswer(outcome)) onFailure(at, outcome);
    switch (verdictOn(outcome)) {
      case 'well':
        at.markWell();
        break;
      case 'failed':
        at.markFailed(clock);
        break;
      case 'unknown':
        at.endProbation();
    }
    if (isAnswer(outcome)) pool.learn(at, this.#need, outcome.slot ?? 0);
  }

  #others({ at, call }: Sending<Backend>): Others {
    const { clock } = this.#parts;
    const { commitment, slotMin } = this.#need;
    const others = call.untried.filter(({ hasRoom }) => hasRoom);
    const tips = at.slots.tip;
    return {
      any: others.length > 0,
      newer: others.some((each) => {
        const isWell = each.health.excludedBecause === undefined && !each.isFailing(clock);
        return isWell && commitment !== undefined && each.slots.tip[commitment] >= slotMin;
      }),
      further: others.some(({ slots: { tip } }) => {
        if (COMMITMENTS.every((each) => tip[each] === 0)) return true;
        return COMMITMENTS.some((each) => tip[each] > tips[each] || (slotMin > 0 && tip[each] >= slotMin));
      }),
    };
  }

  /** A stream on its way: the call leaves its backend with its end. */
  #onItsWay(answer: StreamedAnswer, at: Backend): StreamedAnswer {
    const { signal, inBatch, onSettled } = this.#context;
    const stream = watched(answer.body, signal, (end) => {
      at.leave();
      onSettled?.();
      if (end.kind === 'cut' && end.reason !== 'cancelled') this.#cut(at, end);
    });
    answer.body.offer?.(() => {
      if (inBatch?.evict() !== true) stream.cancel('evicted');
    });
    const reject = (reason: 'bad-json' | 'stalled') => {
      stream.cancel();
      this.#cut(at, { kind: 'cut', reason, bytes: 0 });
    };
    return { ...answer, body: mapBody(stream, { reject }), lastMs: this.#deadlines.lastMs };
  }

  #cut(at: Backend, end: StreamEnd & { kind: 'cut' }): void {
    this.#parts.onCut(at, end);
    if (!isUnread(end)) at.markFailed(this.#parts.clock);
  }
}

/** Reads a reply to its end, in the time of its attempts. One that is cut or above `bytesMax` is `no-backend`. */
export async function readReply(
  reply: CallReply,
  bytesMax: number,
  clock: Clock,
): Promise<Exclude<CallReply, { kind: 'stream' }>> {
  if (reply.kind !== 'stream') return reply;
  const { body, lastMs = Infinity, code, slot = 0, backend } = reply;
  const over = new AbortController();
  if (lastMs < Infinity)
    void clock.sleep(lastMs - clock.monotonic(), over.signal).then(() => {
      if (!over.signal.aborted) body.reject?.('stalled');
    });
  const bytes = await readAll(body, bytesMax);
  over.abort();
  if (typeof bytes === 'string') return { kind: 'no-backend', replied: true };
  return { kind: 'whole', bytes, code, slot, backend };
}

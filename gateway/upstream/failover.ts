import { unreachable } from '../../shared/brand.ts';
import type { ProfileName } from '../../shared/config/profiles.ts';
import type { MethodClass } from '../../shared/config/methods.ts';
import { LOST } from '../http/stream-body.ts';
import {
  type Advice,
  adviceOn,
  adviceOnFailure,
  type Failure,
  FINAL,
  isItsFault,
  mayHaveActed,
  MISS,
  NODE_UNHEALTHY,
  SKIPPED,
  SKIPPED_FOR_GOOD,
  SLOT_NOT_REACHED,
  THROTTLED,
  TOO_LARGE,
} from './failure.ts';
import type { ResponseStart, WholeAnswer } from './response-reader.ts';

/** A backend's answer under way, or what is left to say when no backend gave one. */
export type CallReply =
  | ResponseStart
  /** `too-large` for every backend. `replied`: the rate keeps its token. */
  | Readonly<{ kind: 'no-backend' | 'too-large'; replied?: boolean }>
  /** A transaction whose outcome is unknown. A backend may have worked on it, so the rate keeps its token. */
  | { readonly kind: 'maybe-sent' }
  /** The caller left before an answer began. What was sent was sent, so the call is paid for, unless it was `unsent`. */
  | { readonly kind: 'caller-left'; readonly unsent?: true };

/** The outcome of an attempt. */
export type Outcome = ResponseStart | Failure;

/** A call and what its attempts have shown so far; `B` is what stands for a backend. */
export type Progress<B> = Readonly<{
  class: MethodClass;
  /** An answer of a lower slot is old: its caller has been shown that one. */
  slotMin: number;
  /** In the order of trying them. */
  untried: readonly B[];
  attemptsLeft: number;
  /** Backends that streamed an old answer. It was cancelled; a second one from there is taken. */
  old: readonly B[];
  /** The reply when no attempt gives a better one; `undefined` before the first. */
  fallback: CallReply | undefined;
}>;

/** An attempt is under way; `isNew`, over a connection that was made for it. */
export type Sending<B> = Readonly<{ kind: 'sending'; at: B; isNew: boolean; call: Progress<B> }>;

export type FailoverState<B> =
  /** For the first backend that has room. */
  | Readonly<{ kind: 'waiting'; call: Progress<B> }>
  | Sending<B>
  /** For the next backend that has room at once. */
  | Readonly<{ kind: 'retrying'; costsBudget: boolean; delayMs: number; call: Progress<B> }>
  | Readonly<{ kind: 'done'; reply: CallReply }>;

export type FailoverEvent<B> =
  | Readonly<{ kind: 'entered'; at: B }>
  /** No backend has room in time, or the budget has no retry. */
  | Readonly<{ kind: 'none' }>
  | Readonly<{ kind: 'caller-left' }>
  | Readonly<{ kind: 'outcome'; outcome: Outcome; profile: ProfileName; others: Others }>;

/** The untried backends with room. */
export type Others = Readonly<{
  any: boolean;
  /** One is well and has the slot that the caller has been shown. */
  newer: boolean;
  /** One may have the slot that this backend has not reached. */
  further: boolean;
}>;

/**
 * Failover as a state machine: where a call goes from an attempt. Whoever drives it has sockets and timers, and decides
 * nothing. No byte has left for the caller before `done`, so it never sees two answers.
 *
 * ```mermaid
 * stateDiagram-v2
 *   [*] --> waiting: a call
 *   [*] --> done: a call that is too long for every backend
 *   [*] --> sending: a small read that was sent at once (`direct.ts`)
 *   waiting --> sending: entered
 *   waiting --> done: none, or the caller left
 *   sending --> sending: a kept connection had closed, so once more over a new one
 *   sending --> retrying: another may do better, or the same one later, and attempts are left
 *   sending --> done: an answer, or no other would do better, or the caller left
 *   retrying --> sending: entered
 *   retrying --> done: none, or the caller left
 * ```
 */
export function next<B>(state: FailoverState<B>, event: FailoverEvent<B>): FailoverState<B> {
  if (state.kind === 'done') return state;
  switch (event.kind) {
    case 'entered':
      return state.kind === 'sending' ? state : sendingTo(event.at, state.call);
    case 'none':
      return state.kind === 'sending' ? state : done(state.call.fallback ?? { kind: 'no-backend' });
    case 'caller-left':
      return done(state.kind === 'waiting' ? { kind: 'caller-left', unsent: true } : { kind: 'caller-left' });
    case 'outcome':
      return state.kind === 'sending' ? afterAttempt(state, event) : state;
    default:
      return unreachable(event);
  }
}

/** The first state of a call; `isTooLong`, for every backend. */
export function begin<B>(call: Progress<B>, isTooLong: boolean): FailoverState<B> {
  return isTooLong ? done({ kind: 'too-large' }) : { kind: 'waiting', call };
}

/** The state of a call that is sent to one of the backends that it has not tried. */
export function sendingTo<B>(at: B, call: Progress<B>, isNew = false): Sending<B> {
  const untried = call.untried.filter((each) => each !== at);
  return { kind: 'sending', at, isNew, call: { ...call, untried } };
}

function done<B>(reply: CallReply): FailoverState<B> {
  return { kind: 'done', reply };
}

function afterAttempt<B>(
  { at, isNew, call }: Sending<B>,
  { outcome, profile, others }: Extract<FailoverEvent<B>, { kind: 'outcome' }>,
): FailoverState<B> {
  const { untried, old, fallback: kept } = call;
  // A write's own client does that, where nothing of it can have been read.
  if (isStale(outcome) && !isNew && call.class !== 'write') return sendingTo(at, call, true);
  const fallback = fallbackAfter(outcome, call);
  const tried = { ...call, fallback };
  if (isError(outcome)) {
    const { code, message = '' } = outcome;
    const isHopeless = code === SLOT_NOT_REACHED && !others.further;
    const advice = isHopeless ? FINAL : adviceOn({ code, message }, call.class, profile);
    const isAgain = advice.delayMs > 0 && !others.any;
    if (advice.other) return retry(advice, isAgain ? { ...tried, untried: [...untried, at] } : tried);
    // An archive's "skipped" adds nothing to a node's, which is the better known of the two.
    const addsNothing =
      isHopeless || (code === SKIPPED_FOR_GOOD && kept?.kind === 'whole' && kept.code === SKIPPED);
    return done(addsNothing && kept?.kind === 'whole' ? kept : outcome);
  }
  if (isAnswer(outcome)) {
    const { slot = 0 } = outcome;
    const isOld = slot > 0 && slot < call.slotMin && others.newer && !old.includes(at);
    if (!isOld) return done(outcome);
    if (outcome.kind === 'whole') return retry(MISS, tried);
    return retry(MISS, { ...tried, old: [...old, at], untried: [...untried, at] });
  }
  // What it lost while it hung it is asked for again.
  const isLost = outcome.kind === 'no-answer' && outcome.reason === LOST;
  return retry(
    adviceOnFailure(outcome, call.class),
    isLost ? { ...tried, untried: [at, ...untried] } : tried,
  );
}

function retry<B>({ other, atMost, costsBudget, delayMs }: Advice, call: Progress<B>): FailoverState<B> {
  const attemptsLeft = Math.min(call.attemptsLeft, atMost) - 1;
  if (!other || attemptsLeft < 0 || call.untried.length === 0)
    return done(call.fallback ?? { kind: 'no-backend' });
  return { kind: 'retrying', costsBudget, delayMs, call: { ...call, attemptsLeft } };
}

/** The reply when nothing better than this outcome comes: the first error or old answer, or why there is none. */
function fallbackAfter(outcome: Outcome, { class: kind, fallback }: Progress<unknown>): CallReply {
  if (kind === 'write' && !isAnswer(outcome) && mayHaveActed(outcome)) return { kind: 'maybe-sent' };
  if (fallback?.kind === 'whole' || fallback?.kind === 'maybe-sent') return fallback;
  if (outcome.kind === 'whole' && !isThrottled(outcome)) return outcome;
  const isTooLarge = outcome.kind === 'status' && outcome.status === TOO_LARGE;
  const isSoForAll = fallback === undefined || fallback.kind === 'too-large';
  const hasReplied = outcome.kind !== 'unsent' && outcome.kind !== 'no-answer';
  const replied =
    hasReplied || (fallback !== undefined && 'replied' in fallback && fallback.replied === true);
  return { kind: isTooLarge && isSoForAll ? 'too-large' : 'no-backend', replied };
}

/** Judges a backend by the outcome of an attempt; `unknown`: it says nothing of it. */
export function verdictOn(outcome: Outcome): 'well' | 'failed' | 'unknown' {
  if (!isAnswer(outcome)) return isItsFault(outcome) ? 'failed' : 'unknown';
  return isThrottled(outcome) || (isError(outcome) && outcome.code === NODE_UNHEALTHY) ? 'failed' : 'well';
}

export function isAnswer(outcome: Outcome): outcome is ResponseStart {
  return outcome.kind === 'whole' || outcome.kind === 'stream';
}

/** Whether it is an error for which another backend may do better: a long one that is streamed goes to the caller. */
function isError(outcome: Outcome): outcome is WholeAnswer & { code: number } {
  return outcome.kind === 'whole' && outcome.code !== undefined;
}

function isThrottled(outcome: Outcome): boolean {
  return isError(outcome) && THROTTLED.has(outcome.code);
}

/** Whether a kept connection closed without a byte: what that means for its backend, a new one shows. */
export function isStale(outcome: Readonly<{ kind: string; stale?: boolean }>): boolean {
  return outcome.kind === 'no-answer' && outcome.stale === true;
}

/** The times of a call, on the monotonic clock. */
export type Deadlines = Readonly<{
  startedMs: number;
  /** The longest time to the first byte of an attempt, waiting for a connection included. */
  attemptMs: number;
  /** When all attempts end. */
  lastMs: number;
}>;

/** An attempt with less time left is not begun: its timeout would count against the backend. */
export const ATTEMPT_MS_MIN = 250;

/** How long a call waits when all its backends hang, so that its caller has an answer within a second. */
const HANGING_MS = 500;

/** When an attempt must have given its first byte that follows what happened at `sinceMs`; `allHang`: no backend that it may go to answers. */
export function attemptEndsMs(
  { startedMs, attemptMs, lastMs }: Deadlines,
  sinceMs: number,
  allHang: boolean,
): number {
  return allHang ? startedMs + HANGING_MS : Math.min(sinceMs + attemptMs, lastMs);
}

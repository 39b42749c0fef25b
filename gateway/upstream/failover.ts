import { unreachable } from '../../shared/brand.ts';
import type { Clock } from '../../shared/clock.ts';
import type { Method } from '../methods/table.ts';
import { type Backend, COMMITMENTS } from './backend.ts';
import {
  type Advice,
  adviceOn,
  type Failure,
  failureOf,
  isAgainstIt,
  isItsFault,
  isThrottling,
  isTooLarge,
  mayTryAnother,
} from './failure.ts';
import { answerSlot, type ResponseStart, decodeSmallBody } from './response-reader.ts';
import type { Pool, ReadRequirement } from './selection.ts';

/** What the outcome of an attempt means for its call. */
type Decision =
  | { readonly kind: 'answer'; readonly answer: ResponseStart }
  /** No other backend may be tried. */
  | { readonly kind: 'stop' }
  | Next;

/**
 * Another backend may be tried. `spends`: that is a retry of the pool's budget; `once`: one other and no third;
 * `later`: in a moment, and the same one when there is no other.
 */
type Next = Readonly<{ kind: 'next'; spends: boolean; once: boolean; later: boolean }>;

const STOP: Decision = { kind: 'stop' };
const MISS: Next = { kind: 'next', spends: false, once: false, later: false };
const TROUBLE: Next = { ...MISS, spends: true };

/** The decision on an error of the method; `answer` is what is answered when it is final. */
function decisionOn(advice: Advice, answer: ResponseStart): Decision {
  switch (advice) {
    case 'final':
      return { kind: 'answer', answer };
    case 'miss':
      return MISS;
    case 'miss-once':
      return { ...MISS, once: true };
    case 'trouble':
      return TROUBLE;
    case 'trouble-once':
      return { ...TROUBLE, once: true };
    case 'later':
      return { ...TROUBLE, later: true };
    default:
      return unreachable(advice);
  }
}

/** What the attempts of one call have shown so far. */
type FailoverState = Readonly<{
  /** What the outcome of an attempt at `backend` means; `others` may still be tried. */
  take(backend: Backend, outcome: ResponseStart | Failure, others: readonly Backend[]): Decision;
  /** The answer when no attempt gave a better one: the first error, or an answer that is only old. */
  kept(): ResponseStart | undefined;
  /** Whether every backend that was tried found the request too long. */
  allTooLarge(): boolean;
}>;

export type FailoverParts = Readonly<{
  clock: Clock;
  pool: Pool;
  /** An attempt failed before the first byte. */
  onFailure(backend: Backend, failure: Failure): void;
}>;

/** The call under way. `slotMin` is the slot that its answer must reach; 0: any. */
type Asked = Readonly<{
  name: string;
  method: Method;
  requirement: ReadRequirement;
  accountId: number;
  slotMin: number;
}>;

/** Kept with its error code, 0 when it is none. */
type Kept = Readonly<{ answer: ResponseStart; code: number }>;

const SLOT_NOT_REACHED = -32016;
const SKIPPED = -32007;
const SKIPPED_FOR_GOOD = -32009;

export function createFailoverState({ clock, pool, onFailure }: FailoverParts, asked: Asked): FailoverState {
  const { name, method, requirement, accountId, slotMin } = asked;
  let kept: Kept | undefined;
  let tooLarge = true;

  function afterFailure(backend: Backend, failure: Failure): Decision {
    onFailure(backend, failure);
    if (isItsFault(failure)) backend.markFailed(clock);
    else backend.endTrial();
    if (!mayTryAnother(failure, method.class)) return STOP;
    // What was never sent costs no backend anything.
    return failure.kind === 'unsent' || isTooLarge(failure) ? MISS : TROUBLE;
  }

  /** A good answer, unless it is older than what this caller has been shown while another backend is not. */
  function afterAnswer(backend: Backend, answer: ResponseStart, others: readonly Backend[]): Decision {
    backend.markWell();
    const slot = answer.kind === 'whole' ? answerSlot(name, answer.bytes) : (answer.slot ?? 0);
    pool.learn(backend, requirement, accountId, slot);
    const isOld = slot > 0 && slot < slotMin;
    if (!isOld || !others.some((other) => isWell(other) && has(other, requirement, slotMin)))
      return { kind: 'answer', answer };
    if (answer.kind === 'whole') kept ??= { answer, code: 0 };
    else answer.body.cancel(); // nothing of it has left
    return MISS;
  }

  function isWell(backend: Backend): boolean {
    return backend.health.excludedBecause === undefined && !backend.isFailing(clock);
  }

  function take(backend: Backend, outcome: ResponseStart | Failure, others: readonly Backend[]): Decision {
    const isFailure = outcome.kind !== 'whole' && outcome.kind !== 'stream';
    tooLarge &&= isFailure && isTooLarge(outcome);
    if (isFailure) return afterFailure(backend, outcome);
    const smallBody = outcome.kind === 'whole' ? decodeSmallBody(outcome) : undefined;
    const error = smallBody === undefined ? undefined : failureOf(smallBody);
    if (error === undefined) return afterAnswer(backend, outcome, others);
    if (isAgainstIt(error)) backend.markFailed(clock);
    else backend.markWell();
    const advice = adviceOn(error, method.class, backend.config.profile);
    const isHopeless =
      error.code === SLOT_NOT_REACHED && !others.some((other) => mayBeFresher(other, backend));
    // An archive's "skipped" adds nothing to a node's, which is the better known of the two.
    const addsNothing = isHopeless || (error.code === SKIPPED_FOR_GOOD && kept?.code === SKIPPED);
    const answer = addsNothing && kept !== undefined ? kept.answer : outcome;
    const decision = decisionOn(isHopeless ? 'final' : advice, answer);
    if (decision.kind === 'next' && !isThrottling(error)) kept ??= { answer: outcome, code: error.code };
    return decision;
  }

  return { take, kept: () => kept?.answer, allTooLarge: () => tooLarge };
}

/** Whether a backend may have a slot that the other one has not: nothing else mends a `minContextSlot` that is too high. */
function mayBeFresher({ slots: view }: Backend, than: Backend): boolean {
  const isUnknown = COMMITMENTS.every((commitment) => view.tip[commitment] === 0);
  return isUnknown || COMMITMENTS.some((commitment) => view.tip[commitment] > than.slots.tip[commitment]);
}

/** Whether a backend is known to have the slot. */
function has({ slots: view }: Backend, { commitment }: ReadRequirement, slot: number): boolean {
  return commitment !== undefined && view.tip[commitment] >= slot;
}

import { type Demand, offer } from './demand.ts';
import { type LocalShare, localShare, lookAtShare, takeOfShare } from './local-share.ts';
import { newPace, nextSendMs, type Pace } from './pace.ts';

/** What a lease needs to know of its account's plan. `debtMax`: calls let in before the centre was asked. */
export type RatePlan = Readonly<{ rps: number; burst: number; debtMax: number }>;

/**
 * One account's rate in this process. Mutable: it is the account's state. Instants are of the monotonic clock.
 *
 * A token is held (granted and not spent, before `expiresMs`), owed (spent and not granted), or the centre's. What
 * memory knows of the centre is `emptyUntilMs` (it has no token before that), `refused` (it had not so many for a
 * request), and `contendedUntilMs` (it gave less than was wanted: others want them too). Else it must be asked.
 */
export type RateLease = {
  plan: RatePlan;
  /** Whether the centre's count of what this process spent is known; until then counts are from 0. */
  known: boolean;
  granted: number;
  spent: number;
  expiresMs: number;
  /** Tokens that came back from requests that were refused after all. */
  back: number;
  /** Tokens given to a request that waited, which takes them at once or loses them: the centre counts them as spent. */
  given: number;
  givenUntilMs: number;
  left: number;
  leftAtMs: number;
  emptyUntilMs: number;
  contendedUntilMs: number;
  refused: number;
  refusedUntilMs: number;
  /** This process's part of all offered calls, and the nodes that share the account, as told when all had spoken. */
  share: number;
  nodes: number;
  /** Since when the centre has answered without a miss; `undefined` before its first answer. */
  heardSinceMs: number | undefined;
  readonly demand: Demand;
  readonly pace: Pace;
  /** When a batch may next be asked for out of turn. */
  batchMs: number;
  /** Tokens that requests wait for, and the most that one of them needs. */
  waiting: number;
  waitingMost: number;
  /** Something found less than it needed since the last message, and something could not owe it either. */
  unmet: boolean;
  starved: boolean;
  /** The message under way: when it was sent, and what of the counters it said. */
  sent: SentRate | undefined;
  /** Since when the centre has not answered; `undefined` while it does. */
  outSinceMs: number | undefined;
  local: LocalShare | undefined;
};

export type SentRate = Readonly<{
  atMs: number;
  spent: number;
  local: number;
  wanted: number;
  needed: number;
}>;

export type RateLook =
  | { readonly kind: 'enough'; readonly from: 'lease' | 'debt' | 'local' }
  /** Nothing was taken; after `waitMs` without other calls the same request succeeds. */
  | { readonly kind: 'short'; readonly waitMs: number }
  /** Memory cannot tell: the centre must be asked. */
  | { readonly kind: 'ask' };

export type Patience = Readonly<{
  /** The request may still wait for an answer of the centre. */
  mayWait: boolean;
  /** The store is known not to answer. */
  storeOut: boolean;
  /** So many accounts wait to tell the centre what they owe that no more may owe; absent: not so. */
  crowded?: boolean;
}>;

/** Where all want more than there is, what comes in is divided so often. */
const CONTENDED_MS = 200;

/** More messages are allowed while there is enough for all: demand comes by chance. A request may wait for its turn. */
const UNCONTENDED_MS = 30;

/** A batch is asked for out of turn, so that tokens are kept for it; at most so often. */
export const BATCH_GAP_MS = 50;

/** An account that this process has not met, or has forgotten. `share`: what it may let in alone while the centre is out. */
export function newRateLease(plan: RatePlan, share: number, nowMs: number): RateLease {
  return {
    plan,
    known: false,
    granted: 0,
    spent: 0,
    expiresMs: 0,
    back: 0,
    given: 0,
    givenUntilMs: 0,
    left: plan.burst,
    leftAtMs: nowMs,
    emptyUntilMs: 0,
    contendedUntilMs: 0,
    refused: 0,
    refusedUntilMs: 0,
    share,
    nodes: 1,
    heardSinceMs: undefined,
    demand: { perSecond: 0, atMs: nowMs },
    pace: newPace(),
    batchMs: 0,
    waiting: 0,
    waitingMost: 0,
    unmet: false,
    starved: false,
    sent: undefined,
    outSinceMs: undefined,
    local: undefined,
  };
}

/**
 * Milliseconds between messages of an account: short enough that what comes in meanwhile is a quarter of the burst,
 * so that the bucket never stands full while nodes wait for their turn.
 */
export function intervalOf({ rps, burst }: RatePlan): number {
  return Math.min(500, Math.max(25, (burst / (4 * rps)) * 1_000));
}

/** When the account's next message may be sent: a process that gets what it wants may ask again soon. */
export function sendableMs(lease: RateLease, nowMs: number): number {
  return nextSendMs(lease.pace, gapOf(lease, nowMs), nowMs);
}

/** Milliseconds that a message sent now takes of the account's pace. */
export function gapOf({ plan, contendedUntilMs }: RateLease, nowMs: number): number {
  const intervalMs = intervalOf(plan);
  return nowMs < contendedUntilMs
    ? Math.min(CONTENDED_MS, intervalMs)
    : Math.min(UNCONTENDED_MS, intervalMs / 8);
}

/** Tokens that may be spent now; below zero while some are owed. */
export function heldTokens(lease: RateLease, nowMs: number): number {
  if (nowMs >= lease.expiresMs) {
    lease.granted = Math.min(lease.granted, lease.spent);
    lease.back = 0;
  }
  if (nowMs > lease.givenUntilMs) lease.given = 0;
  return lease.granted - lease.spent + lease.back + lease.given;
}

/** Nobody asked between two messages. */
export function isQuiet({ demand, plan }: RateLease, nowMs: number): boolean {
  return nowMs - demand.atMs > intervalOf(plan);
}

/** Counts the offer of a request; once, however often it is looked at. */
export function offerCalls(lease: RateLease, calls: number, nowMs: number): void {
  // After a rest nothing says that others still want what there is.
  if (isQuiet(lease, nowMs)) lease.contendedUntilMs = 0;
  offer(lease.demand, calls, nowMs);
}

/** Decides on `calls` (limits.md 3.2). A batch needs `min(calls, burst)` and takes all (DESIGN 3.3). Takes nothing. */
export function lookAtRate(
  lease: RateLease,
  calls: number,
  nowMs: number,
  { mayWait, storeOut, crowded = false }: Patience,
): RateLook {
  const { burst, debtMax } = lease.plan;
  const need = Math.min(calls, burst);
  const held = heldTokens(lease, nowMs);
  if (held >= need) return { kind: 'enough', from: 'lease' };
  lease.unmet = true;
  if (storeOut || lease.outSinceMs !== undefined) {
    lease.starved = true;
    return lookAlone(lease, calls, nowMs);
  }
  const known = knownWait(lease, need, nowMs);
  const mayOwe = known === 0 && calls - held <= debtMax && !(crowded && held === 0);
  if (mayOwe) return { kind: 'enough', from: 'debt' };
  lease.starved = true;
  if (known > 0) return short(lease, known);
  if (!mayWait) return lookAlone(lease, calls, nowMs);
  const sendMs = need > 1 ? lease.batchMs : sendableMs(lease, nowMs);
  if (lease.sent === undefined && sendMs > nowMs + UNCONTENDED_MS) {
    return short(lease, Math.max(sendMs - nowMs, need > 1 ? waitFor(lease, need) : 0));
  }
  // More than a whole burst can never be granted to those that wait.
  if (lease.waiting + need > burst && lease.waiting > 0) return short(lease, waitFor(lease, need));
  return { kind: 'ask' };
}

/** A wait is true only with what other processes may have let in and not yet told. */
function short({ plan, nodes }: RateLease, waitMs: number): RateLook {
  return { kind: 'short', waitMs: waitMs + Math.ceil(((nodes - 1) * plan.debtMax * 1_000) / plan.rps) };
}

/** How long memory knows that the centre has nothing for this request; 0: it does not know. */
function knownWait(lease: RateLease, need: number, nowMs: number): number {
  const refusedMs = need >= lease.refused ? lease.refusedUntilMs - nowMs : 0;
  if (need > 1) return Math.max(0, refusedMs);
  const emptyMs = Math.max(refusedMs, lease.emptyUntilMs - nowMs);
  if (emptyMs > 0 || nowMs >= lease.contendedUntilMs) return Math.max(0, emptyMs);
  return lease.sent === undefined ? Math.max(0, sendableMs(lease, nowMs) - nowMs) : intervalOf(lease.plan);
}

function waitFor({ plan }: RateLease, tokens: number): number {
  return Math.ceil((tokens * 1_000) / plan.rps);
}

function lookAlone(lease: RateLease, calls: number, nowMs: number): RateLook {
  const look = lookAtShare(aloneOf(lease, nowMs), calls, nowMs);
  return look.kind === 'taken' ? { kind: 'enough', from: 'local' } : { kind: 'short', waitMs: look.waitMs };
}

function aloneOf(lease: RateLease, nowMs: number): LocalShare {
  if (lease.local?.ended !== false)
    lease.local = localShare(lease.plan, lease.share, !lease.known, nowMs, lease.local);
  return lease.local;
}

/** Takes what a look of this instant has found. */
export function takeRate(
  lease: RateLease,
  calls: number,
  from: 'lease' | 'debt' | 'local',
  nowMs: number,
): void {
  if (from === 'local') return takeOfShare(aloneOf(lease, nowMs), calls, nowMs);
  const given = Math.min(lease.given, calls);
  const again = Math.min(lease.back, calls - given);
  lease.given -= given;
  lease.back -= again;
  lease.spent += calls - given - again;
}

/** Gives back what a request took that is refused after all. What was spent is never taken back: it was said. */
export function giveBackRate(lease: RateLease, calls: number, nowMs: number): void {
  if (nowMs < lease.expiresMs) lease.back = Math.min(lease.plan.burst, lease.back + calls);
}

/** Tokens that the account has now, as far as this process knows, for the RateLimit fields. */
export function tokensKnown(lease: RateLease, nowMs: number): number {
  const { rps, burst } = lease.plan;
  const refill = Math.max(0, nowMs - lease.leftAtMs) * (rps / 1_000);
  return Math.min(burst, heldTokens(lease, nowMs) + lease.left + refill);
}

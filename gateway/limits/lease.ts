import { RATE_LIFE_MS } from './authority-rate.ts';
import type { RateGrant, RateReport } from './messages.ts';
import {
  aloneForMs,
  aloneSpent,
  aloneWaitMs,
  endOutage,
  noteHeard,
  isWhole,
  noteMiss,
  newOutage,
  type Outage,
  takeAlone,
} from './outage.ts';

/** How much was offered lately, a second. Mutable: it is part of an account's state. */
export type Demand = { perSecond: number; atMs: number };

/**
 * How often one account's messages may be sent: one an interval, and a few at once after a rest. Mutable. The interval
 * may be another at every call.
 */
export type Pace = { lastMs: number; spare: number };

/** Older offers fade with this time constant. */
const FADE_MS = 1_000;

/** Messages that may follow at once on the first after a rest. */
const SPARE_MAX = 2;

/** Counts an offer, whether it is refused or not: a starved process must still grow its share. */
export function offer(demand: Demand, amount: number, nowMs: number): void {
  demand.perSecond = demandAt(demand, nowMs) + amount * (1_000 / FADE_MS);
  demand.atMs = nowMs;
}

/** What was offered a second, up to `nowMs`. */
export function demandAt({ perSecond, atMs }: Demand, nowMs: number): number {
  return nowMs > atMs ? perSecond * Math.exp((atMs - nowMs) / FADE_MS) : perSecond;
}

export function newPace(): Pace {
  return { lastMs: Number.NEGATIVE_INFINITY, spare: SPARE_MAX };
}

/** When the next message may be sent; `nowMs` when it may be now. */
export function nextSendMs({ lastMs, spare }: Pace, intervalMs: number, nowMs: number): number {
  return spare > 0 ? nowMs : Math.max(nowMs, lastMs + intervalMs);
}

/** Notes that a message is sent at `nowMs`, in its turn or not. */
export function noteSend(pace: Pace, intervalMs: number, nowMs: number): void {
  const turns = Math.floor((nowMs - pace.lastMs) / intervalMs);
  pace.spare = Math.max(0, Math.min(SPARE_MAX, pace.spare + turns - 1));
  pace.lastMs = nowMs;
}

/** What a lease needs to know of its account's plan. `debtMax`: calls let in before the authority was asked. */
export type RatePlan = Readonly<{ rps: number; burst: number; debtMax: number }>;

/**
 * One account's rate in this process. Mutable: it is the account's state. Instants are of the monotonic clock.
 *
 * A token is held (granted and not spent, before `expiresMs`), owed (spent and not granted), or the authority's. What
 * memory knows of the authority is `emptyUntilMs` (it has no token before that), `refused` (it had not so many for a
 * request), and `contendedUntilMs` (it granted less than was wanted: others want them too). Else it must be asked.
 */
export type RateLease = {
  plan: RatePlan;
  /** Whether the authority's count of what this process spent is known; until then counts are from 0. */
  known: boolean;
  granted: number;
  spent: number;
  expiresMs: number;
  /** Tokens returned by requests that were refused after all. */
  returned: number;
  /** Tokens for a request that waited, which takes them at once or loses them: they count as spent. */
  immediate: number;
  immediateUntilMs: number;
  remaining: number;
  heardMs: number;
  emptyUntilMs: number;
  contendedUntilMs: number;
  refused: number;
  refusedUntilMs: number;
  readonly demand: Demand;
  readonly pace: Pace;
  /** When a batch may next be asked for out of turn. */
  batchMs: number;
  /** Tokens that requests wait for, and the most that one of them needs. */
  waiting: number;
  waitingMost: number;
  /** A request found less than it needed since the last message, and it could not be let in on debt either. */
  unmet: boolean;
  starved: boolean;
  /** The message under way: when it was sent, and what it reported. */
  sent: Readonly<{ atMs: number; spent: number; local: number; wanted: number; needed: number }> | undefined;
  readonly outage: Outage;
  /** The wait of the last look that found too little, in milliseconds. */
  waitMs: number;
};

/**
 * What is found for a request. `ask`: memory cannot tell. `short`: nothing was taken; after `waitMs` of the lease
 * without other calls the same request succeeds.
 */
type RateLook = 'lease' | 'debt' | 'local' | 'ask' | 'short';

/** Where all want more than there is, what comes in is divided so often. */
const CONTENDED_MS = 200;

/** More messages are allowed while there is enough for all: demand comes by chance. A request may wait for its turn. */
const UNCONTENDED_MS = 30;

/** A batch is asked for out of turn, so that tokens are reserved for it; at most so often. */
const BATCH_GAP_MS = 50;

/** A lease is renewed, or its rest returned, so long before it ends. */
const RENEW_MS = 400;

/**
 * What an account let in without the authority for so much longer than its bucket takes to fill is a debt that is not
 * paid off; what was let in for less is, as the bucket kept all that came in meanwhile.
 */
const RECOVERING_MS = 1_000;

/** A request that was granted tokens takes them in the turns of the event loop that follow, or has left. */
const IMMEDIATE_MS = 5;

/** An account without a request in this time is at rest. */
export const IDLE_MS = 2_000;

/** An account with fewer calls between two messages leases nothing ahead: what one process holds, others lack. */
const AHEAD_MIN = 2;

/** A lease of an account that is new here. `share`: the part of its rate to let in while the authority is out. */
export function newRateLease(plan: RatePlan, share: number, nowMs: number): RateLease {
  const counters = { granted: 0, spent: 0, returned: 0, immediate: 0, remaining: plan.burst, refused: 0 };
  const instants = { expiresMs: 0, immediateUntilMs: 0, heardMs: nowMs, emptyUntilMs: 0 };
  const more = { contendedUntilMs: 0, refusedUntilMs: 0, batchMs: 0, waitMs: 0 };
  const requests = { waiting: 0, waitingMost: 0, unmet: false, starved: false };
  const nothing = { known: false, sent: undefined };
  const demand = { perSecond: 0, atMs: nowMs };
  return {
    plan,
    outage: newOutage(share),
    demand,
    pace: newPace(),
    ...counters,
    ...instants,
    ...more,
    ...requests,
    ...nothing,
  };
}

/** Puts the lease on another plan: what memory knew of the authority was about the old one. */
export function changeRatePlan(lease: RateLease, plan: RatePlan): void {
  lease.plan = plan;
  lease.emptyUntilMs = lease.contendedUntilMs = lease.refusedUntilMs = 0;
  lease.outage.bucket = undefined;
}

/**
 * Milliseconds between messages of an account: short enough that what comes in meanwhile is a quarter of the burst,
 * so that the bucket never stands full while nodes wait for their turn.
 */
export function intervalOf({ rps, burst }: RatePlan): number {
  return Math.min(500, Math.max(25, (burst / (4 * rps)) * 1_000));
}

/** When the account's next message may be sent: a process that gets what it wants may ask again soon. */
function sendableMs(lease: RateLease, nowMs: number): number {
  return nextSendMs(lease.pace, gapOf(lease, nowMs), nowMs);
}

/** Milliseconds that a message sent now takes of the account's pace. */
function gapOf({ plan, contendedUntilMs }: RateLease, nowMs: number): number {
  const intervalMs = intervalOf(plan);
  return nowMs < contendedUntilMs
    ? Math.min(CONTENDED_MS, intervalMs)
    : Math.min(UNCONTENDED_MS, intervalMs / 8);
}

/** Tokens that may be spent now; below zero while some are owed. */
export function heldTokens(lease: RateLease, nowMs: number): number {
  if (nowMs >= lease.expiresMs) {
    if (lease.granted > lease.spent) lease.granted = lease.spent;
    lease.returned = 0;
  }
  if (nowMs > lease.immediateUntilMs) lease.immediate = 0;
  return lease.granted - lease.spent + lease.returned + lease.immediate;
}

/** No request came between two messages. */
function isQuiet({ demand, plan }: RateLease, nowMs: number): boolean {
  return nowMs - demand.atMs > intervalOf(plan);
}

/** Counts the offer of a request; once, however often it is looked at. */
export function offerCalls(lease: RateLease, calls: number, nowMs: number): void {
  // After a rest it is unknown whether others still want what there is.
  if (lease.contendedUntilMs !== 0 && isQuiet(lease, nowMs)) lease.contendedUntilMs = 0;
  offer(lease.demand, calls, nowMs);
}

/**
 * Decides whether `calls` may be let in (limits.md 3.2). Takes nothing. `mayWait`: the request may still wait for a reply;
 * `storeOut`: the store is known not to reply; `isCrowded`: so many accounts wait to report debts that no more may owe.
 */
export function lookAtRate(
  lease: RateLease,
  calls: number,
  nowMs: number,
  mayWait: boolean,
  storeOut: boolean,
  isCrowded: boolean,
): RateLook {
  const { burst, debtMax } = lease.plan;
  const need = Math.min(calls, burst);
  const held = heldTokens(lease, nowMs);
  if (held >= need) return 'lease';
  lease.unmet = true;
  if (storeOut || lease.outage.sinceMs !== undefined) {
    lease.starved = true;
    return lookAlone(lease, calls, nowMs);
  }
  const knownMs = knownWait(lease, need, nowMs);
  if (knownMs === 0 && calls - held <= debtMax && !(isCrowded && held === 0)) return 'debt';
  lease.starved = true;
  if (knownMs > 0) return short(lease, knownMs);
  if (!mayWait) return lookAlone(lease, calls, nowMs);
  const sendMs = need > 1 ? lease.batchMs : sendableMs(lease, nowMs);
  if (lease.sent === undefined && sendMs > nowMs + UNCONTENDED_MS)
    return short(lease, Math.max(sendMs - nowMs, need > 1 ? waitFor(lease, need) : 0));
  // More than a whole burst can never be granted to those that wait.
  if (lease.waiting + need > burst && lease.waiting > 0) return short(lease, waitFor(lease, need));
  return 'ask';
}

/** A wait is true only with what other processes may have let in and not yet reported. */
function short(lease: RateLease, waitMs: number): RateLook {
  const { plan, outage } = lease;
  lease.waitMs = waitMs + Math.ceil(((outage.nodes - 1) * plan.debtMax * 1_000) / plan.rps);
  return 'short';
}

/** How long memory knows that the authority has nothing for this request; 0: it does not know. */
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
  lease.waitMs = aloneWaitMs(lease.outage, lease.plan, calls, nowMs, !lease.known);
  return lease.waitMs === 0 ? 'local' : 'short';
}

/** Takes what a look of this instant has found. */
export function takeRate(lease: RateLease, calls: number, from: RateLook): void {
  if (from === 'local') return takeAlone(lease.outage, calls);
  const immediate = Math.min(lease.immediate, calls);
  const returned = Math.min(lease.returned, calls - immediate);
  lease.immediate -= immediate;
  lease.returned -= returned;
  lease.spent += calls - immediate - returned;
}

/** Returns what a request took that is refused after all. What was spent stays spent: it was reported. */
export function returnRate(lease: RateLease, calls: number, nowMs: number): void {
  if (nowMs < lease.expiresMs) lease.returned = Math.min(lease.plan.burst, lease.returned + calls);
}

/** Tokens that the account has now, as far as this process knows, for the RateLimit fields. */
export function tokensKnown(lease: RateLease, nowMs: number): number {
  const { rps, burst } = lease.plan;
  const refilled = Math.max(0, nowMs - lease.heardMs) * (rps / 1_000);
  return Math.min(burst, heldTokens(lease, nowMs) + lease.remaining + refilled);
}

/** Tokens to hold: what will be spent until the reply to the next message but one. */
function targetOf(lease: RateLease, nowMs: number, aheadMs: number): number {
  const { rps, burst } = lease.plan;
  const intervalMs = intervalOf(lease.plan);
  const demand = demandAt(lease.demand, nowMs);
  // Tokens that no request needs are kept from other nodes.
  if (demand * intervalMs < AHEAD_MIN * 1_000 || isQuiet(lease, nowMs)) return 0;
  const cap = Math.max(1, Math.floor((burst - (rps * intervalMs) / 1_000) / lease.outage.nodes));
  return Math.min(cap, Math.ceil((demand * (intervalMs + aheadMs)) / 1_000));
}

/** When the account has to send: `now`, as something waits or is owed; `soon`, to be looked at again; or not at all. */
export function rateDue(lease: RateLease, nowMs: number, aheadMs: number): 'now' | 'soon' | 'never' {
  const held = heldTokens(lease, nowMs);
  if (lease.sent !== undefined) return 'soon';
  // Report a debt immediately; until the authority knows, it over-grants other nodes.
  if (held < 0 && lease.outage.sinceMs === undefined) return 'now';
  if (lease.waitingMost > 1 && nowMs >= lease.batchMs) return 'now';
  const target = targetOf(lease, nowMs, aheadMs);
  const low = (demandAt(lease.demand, nowMs) * aheadMs) / 1_000;
  const isDue =
    lease.waiting > 0 ||
    held < 0 ||
    (lease.unmet && nowMs >= Math.max(lease.emptyUntilMs, lease.outage.sinceMs ?? 0) && target > held) ||
    (held <= low && target > held && nowMs >= lease.emptyUntilMs) ||
    (held > 0 && (lease.expiresMs - nowMs <= RENEW_MS || isQuiet(lease, nowMs))) ||
    (lease.outage.sinceMs !== undefined && !isIdle(lease, nowMs));
  if (isDue) return sendableMs(lease, nowMs) <= nowMs ? 'now' : 'soon';
  return held > 0 || target > held ? 'soon' : 'never';
}

/**
 * Nothing is lost by forgetting it when no request came in `idleMs`; its next message asks what it has spent. What it
 * let in alone counts until its bucket is full again: a new one would begin full.
 */
export function mayForgetRate(lease: RateLease, nowMs: number, idleMs: number): boolean {
  if (lease.sent !== undefined || lease.waiting !== 0 || heldTokens(lease, nowMs) !== 0) return false;
  return isWhole(lease.outage, nowMs) && isIdle(lease, nowMs, idleMs);
}

function isIdle({ demand }: RateLease, nowMs: number, idleMs = IDLE_MS): boolean {
  return nowMs - demand.atMs >= idleMs;
}

/**
 * Writes the account's report. Tokens above what it wants are out of reach from here on: the authority may grant them
 * to others before the reply is read.
 */
export function reportRate(lease: RateLease, nowMs: number, aheadMs: number): RateReport {
  const { rps, burst } = lease.plan;
  const held = heldTokens(lease, nowMs);
  const aloneMs = aloneForMs(lease.outage, nowMs);
  // A node that was alone for longer than leases live first asks which others are back.
  const target = aloneMs > RATE_LIFE_MS ? 0 : targetOf(lease, nowMs, aheadMs);
  const wanted = Math.max(0, target + lease.waiting - lease.waitingMost);
  const needed = lease.waitingMost;
  if (held > wanted) lease.granted = Math.min(lease.granted, lease.spent + wanted);
  const alone = aloneSpent(lease.outage);
  const unheardMs = Math.min(aloneMs, nowMs - lease.heardMs);
  const recovering = alone > 0 && unheardMs > (1_000 * burst) / rps + RECOVERING_MS;
  const local = lease.known || recovering ? alone : 0;
  const spent = lease.known ? lease.spent : 0;
  lease.sent = { atMs: nowMs, spent, local, wanted, needed };
  lease.unmet = false;
  lease.starved = false;
  if (needed > 1) lease.batchMs = nowMs + BATCH_GAP_MS;
  noteSend(lease.pace, gapOf(lease, nowMs), nowMs);
  const weight = Math.max(1, Math.ceil(demandAt(lease.demand, nowMs)));
  return { rps, burst, spent: lease.known ? spent + local : 0, wanted, needed, weight, recovering };
}

/** Takes in the reply to the message under way; without a grant it is unknown whether the message was heard. */
export function settleRate(lease: RateLease, grant: RateGrant | undefined, nowMs: number): void {
  const { sent, plan, outage } = lease;
  if (sent === undefined) return;
  lease.sent = undefined;
  if (grant === undefined) return noteMiss(outage, sent.atMs);
  lease.spent = grant.spent + lease.spent - sent.spent;
  lease.granted = grant.granted;
  lease.known = true;
  lease.expiresMs = sent.atMs + grant.lifeMs;
  const areBack = noteHeard(outage, grant, demandAt(lease.demand, nowMs), lease.heardMs, nowMs);
  const aloneMs = aloneForMs(lease.outage, nowMs);
  lease.remaining = grant.remaining;
  lease.heardMs = nowMs;
  lease.immediate = grant.immediate;
  lease.immediateUntilMs = nowMs + IMMEDIATE_MS;
  const got = grant.granted - grant.spent;
  const isRefused = sent.needed > got + grant.immediate;
  lease.refused = isRefused ? sent.needed : 0;
  lease.refusedUntilMs = isRefused ? nowMs + grant.waitMs : 0;
  const oneMs = Math.ceil(((1 - grant.remaining) * 1_000) / plan.rps);
  lease.emptyUntilMs = grant.remaining < 1 ? nowMs + Math.min(grant.waitMs, oneMs) : 0;
  lease.contendedUntilMs = got < sent.wanted ? nowMs + 2 * intervalOf(plan) : 0;
  if (aloneMs > RATE_LIFE_MS && !areBack) {
    outage.sinceMs = nowMs - aloneMs;
    if (outage.bucket !== undefined) outage.bucket.spent -= sent.local;
    return;
  }
  // What was let in alone while this reply was on its way is spent like all else.
  lease.spent += aloneSpent(outage) - sent.local;
  endOutage(outage);
}

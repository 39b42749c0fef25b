import type { Spending } from './journal.ts';
import { type Demand, demandAt, newPace, nextSendMs, noteSend, offer, type Pace } from './lease.ts';
import type { CreditGrant, CreditReport } from './messages.ts';

type Counters = Readonly<Spending>;

/**
 * One account's credits in this process. Mutable: it is the account's state. Instants are of the monotonic clock.
 * `allowance` is what may be charged without asking; it is 0 until the authority was heard, and then its grant less
 * what was charged since. The counters themselves are the journal's.
 */
export type CreditLease = {
  /** Credits ever given to the account. */
  total: number;
  readonly spending: Spending;
  allowance: number;
  /** The last grant, and when it came; `undefined` before the first. */
  grant: CreditGrant | undefined;
  grantedMs: number;
  /** Until when a shortage in the last grant proves one now. */
  provesUntilMs: number;
  readonly demand: Demand;
  readonly pace: Pace;
  /** The dearest request lately, and credits that requests wait for. */
  dearest: number;
  waiting: number;
  /** The message under way: the counters that it reported, and when. */
  sent: (Counters & Readonly<{ atMs: number }>) | undefined;
  /** The counters that the authority has last confirmed. */
  confirmed: Counters | undefined;
  /** When the last message had no reply; `undefined` when it had one. */
  failedMs: number | undefined;
};

/**
 * What is found for a price. `out`: no live node has so many credits. `later`: others hold them and were recalled to
 * return them, or too many requests wait; it is worth `LATER_MS`. `ask`: memory cannot tell. `unavailable`: it cannot be known now.
 */
type CreditLook = 'enough' | 'out' | 'later' | 'ask' | 'unavailable';

/** Others return what they do not need within so much time. */
export const LATER_MS = 1_000;

/** What a grant shows about a shortage holds for so long without asking again. */
const PROOF_MS = 250;

/** Held credits are refreshed this often, which carries recalls and shows that the process lives. */
const REFRESH_MS = 1_000;

const INTERVAL_MS = 100;

/** A message that is under way for longer shows that the store is slow. */
const SLOW_MS = 50;

/** A lease holds what so much time is expected to charge. */
const AHEAD_SECONDS = 5;

/** An account without a request in this time returns its credits. */
const IDLE_MS = 3_000;

/** No process holds more than this part of all the credits that an account was given, its dearest request apart. */
const PART_MAX = 1 / 100;

export function newCreditLease(spending: Spending, total: number, nowMs: number): CreditLease {
  const counters = { allowance: 0, grantedMs: 0, provesUntilMs: 0, dearest: 0, waiting: 0 };
  const unknown = { grant: undefined, sent: undefined, confirmed: undefined };
  const demand = { perSecond: 0, atMs: nowMs };
  return { total, spending, demand, pace: newPace(), failedMs: undefined, ...counters, ...unknown };
}

/** Counts the offer of a request; once, however often it is looked at. */
export function offerCredits(lease: CreditLease, credits: number, total: number, nowMs: number): void {
  offer(lease.demand, credits, nowMs);
  lease.dearest = Math.max(lease.dearest, credits);
  if (total === lease.total) return;
  lease.total = total;
  lease.provesUntilMs = 0; // the grant was about another allowance
}

/**
 * Decides whether a price can be charged. Only a grant that was asked for this shortage is a no; a shortage of memory
 * alone never is (limits.md 3.6). Takes nothing.
 */
export function lookAtCredits(
  lease: CreditLease,
  credits: number,
  nowMs: number,
  mayWait: boolean,
  storeOut: boolean,
): CreditLook {
  if (lease.allowance >= credits) return 'enough';
  const { grant, failedMs } = lease;
  if (storeOut || (failedMs !== undefined && nowMs - failedMs < REFRESH_MS)) return 'unavailable';
  if (grant !== undefined && nowMs < lease.provesUntilMs) {
    if (grant.learning) return 'unavailable';
    if (grant.available + grant.heldByOthers + lease.allowance < credits) return 'out';
    if (grant.available <= 0) return 'later';
  }
  if (mayWait) return 'ask';
  // A store that replies to others in time is not away: this request's turn has not come.
  const isSlow = lease.sent !== undefined && nowMs - lease.sent.atMs >= SLOW_MS;
  const replies = failedMs === undefined && !isSlow && grant !== undefined && !grant.learning;
  return replies ? 'later' : 'unavailable';
}

/** What the authority has confirmed may be lost: it is reported again, at once. */
export function unconfirm(lease: CreditLease): void {
  lease.confirmed = undefined;
  lease.grantedMs = Number.NEGATIVE_INFINITY;
  lease.provesUntilMs = 0;
}

/** Charges what a look of this instant has found. The caller appends it to the journal. */
export function takeCredits(lease: CreditLease, credits: number): void {
  lease.allowance -= credits;
  lease.spending.charged += credits;
}

/** Refunds; what was charged stays charged, since it was reported. The caller appends it to the journal. */
export function refundCredits(lease: CreditLease, credits: number): void {
  lease.allowance += credits;
  lease.spending.refunded += credits;
}

/** Credits that the account has left, as far as this process knows. */
export function creditsKnown({ allowance, grant, total, spending }: CreditLease): number {
  if (grant === undefined) return Math.max(0, total - (spending.charged - spending.refunded));
  return Math.max(0, allowance + Math.max(0, grant.available) + grant.heldByOthers + grant.heldByDead);
}

/** When the account has to send: `now`, `soon` (to be looked at again), or not at all. */
export function creditsDue(lease: CreditLease, nowMs: number): 'now' | 'soon' | 'never' {
  const { sent, allowance, failedMs, grant, grantedMs } = lease;
  if (sent !== undefined) return 'soon';
  const wanted = wantedOf(lease, nowMs);
  const isDue =
    lease.waiting > 0 ||
    ((allowance > 0 || hasNews(lease)) && nowMs - grantedMs >= REFRESH_MS) ||
    failedMs !== undefined ||
    (grant?.recalled === true && allowance > wanted) ||
    (allowance * 2 < wanted && nowMs - grantedMs >= PROOF_MS);
  const rests = failedMs !== undefined && nowMs - failedMs < REFRESH_MS / 2;
  if (isDue && !rests) return nextSendMs(lease.pace, INTERVAL_MS, nowMs) <= nowMs ? 'now' : 'soon';
  return allowance > 0 || wanted > 0 || hasNews(lease) || failedMs !== undefined ? 'soon' : 'never';
}

/** The authority has not confirmed what was charged: if it lost grants it would give the same credits to others. */
export function hasNews({ confirmed, spending }: CreditLease): boolean {
  return confirmed?.charged !== spending.charged || confirmed.refunded !== spending.refunded;
}

/** Nothing is lost by forgetting it: the counters stay the journal's, and the authority has them. */
export function mayForgetCredits(lease: CreditLease, nowMs: number): boolean {
  const holds = lease.allowance > 0 || lease.sent !== undefined || lease.waiting > 0;
  // A message without a reply may have been heard: what it was granted must be returned.
  return !holds && !hasNews(lease) && lease.failedMs === undefined && isIdle(lease, nowMs);
}

function isIdle({ demand }: CreditLease, nowMs: number): boolean {
  return nowMs - demand.atMs >= IDLE_MS;
}

/** Credits to hold. None while another process needs them, and none for an account at rest. */
function wantedOf(lease: CreditLease, nowMs: number): number {
  if (isIdle(lease, nowMs) || lease.grant?.recalled === true) return 0;
  const most = Math.max(lease.dearest, Math.floor(lease.total * PART_MAX));
  return Math.min(most, Math.max(lease.dearest, Math.ceil(demandAt(lease.demand, nowMs) * AHEAD_SECONDS)));
}

/**
 * Writes the account's report; it may be sent when its counters are durable, and not before, or a crash would leave the
 * authority ahead of the journal. Credits above what it wants, at most `wantedMax`, are out of reach from here on.
 */
export function reportCredits(
  lease: CreditLease,
  nowMs: number,
  wantedMax = Number.MAX_SAFE_INTEGER,
): CreditReport {
  const wanted = Math.min(wantedMax, wantedOf(lease, nowMs) + lease.waiting);
  const { charged, refunded } = lease.spending;
  if (lease.allowance > wanted) {
    lease.allowance = wanted;
    lease.provesUntilMs = 0; // what is returned is not gone
  }
  lease.sent = { charged, refunded, atMs: nowMs };
  noteSend(lease.pace, INTERVAL_MS, nowMs);
  const held = Math.max(0, lease.allowance);
  return { total: lease.total, charged, refunded, held, wanted, needed: lease.waiting };
}

/** Takes in the reply to the message under way; without a grant it is unknown whether the message was heard. */
export function settleCredits(lease: CreditLease, grant: CreditGrant | undefined, nowMs: number): void {
  const { sent, spending } = lease;
  if (sent === undefined) return;
  lease.sent = undefined;
  lease.failedMs = grant === undefined ? nowMs : undefined;
  if (grant === undefined) return;
  const since = spending.charged - sent.charged - (spending.refunded - sent.refunded);
  lease.allowance = grant.allowance - since;
  lease.confirmed = sent;
  lease.grant = grant;
  lease.grantedMs = nowMs;
  lease.provesUntilMs = nowMs + PROOF_MS;
}

import type { Spending } from '../limits/journal.ts';
import { type Demand, demandAt, offer } from './demand.ts';
import type { CreditAsk, CreditGrant } from './messages.ts';
import { newPace, nextSendMs, noteSend, type Pace } from './pace.ts';

/**
 * One account's credits in this process. Mutable: it is the account's state. Instants are of the monotonic clock.
 * `allowance` is what may be charged without asking; it is 0 until the centre was heard, and what the centre said less
 * what was charged since. The counters themselves are the journal's.
 */
export type CreditLease = {
  /** Credits ever given to the account. */
  total: number;
  readonly spending: Spending;
  allowance: number;
  /** The last answer, and when it came; `undefined` before the first. */
  told: CreditGrant | undefined;
  toldAtMs: number;
  /** Until when a shortage in the last answer proves one now. */
  provesUntilMs: number;
  readonly demand: Demand;
  readonly pace: Pace;
  /** The dearest request lately, and credits that requests wait for. */
  dearest: number;
  waiting: number;
  /** The message under way: the counters that it said, and when. */
  sent: (Counters & Readonly<{ atMs: number }>) | undefined;
  /** The counters that were last made durable to be said, and those that the centre has last confirmed. */
  durable: Counters | undefined;
  heard: Counters | undefined;
  /** When the last message failed; `undefined` when the last was answered. */
  failedAtMs: number | undefined;
};

type Counters = Readonly<{ charged: number; refunded: number }>;

export type CreditLook =
  | { readonly kind: 'enough' }
  /** Nobody that lives has so many credits. */
  | { readonly kind: 'out' }
  /** Others hold them and were asked for them, or too many ask at once; `waitMs` is when to come again. */
  | { readonly kind: 'later'; readonly waitMs: number }
  | { readonly kind: 'ask' }
  /** Nobody can say for now. */
  | { readonly kind: 'unavailable' };

/** What the centre said about a shortage holds for so long without asking again. */
const TOLD_MS = 250;

/** Others give back what they do not need within so much time. */
export const LATER_MS = 1_000;

/** Held credits are refreshed this often, which carries recalls and tells the centre that the process lives. */
export const REFRESH_MS = 1_000;

const INTERVAL_MS = 100;

/** A message that is under way for longer says that the store is slow. */
const SLOW_MS = 50;

/** A lease holds what so much time is expected to charge. */
const AHEAD_SECONDS = 5;

/** An account that nobody asked for in this time gives its credits back. */
const IDLE_MS = 3_000;

/** No process holds more than this part of all the credits that an account was given, its dearest request apart. */
const PART_MAX = 1 / 100;

export function newCreditLease(spending: Spending, total: number, nowMs: number): CreditLease {
  return {
    total,
    spending,
    allowance: 0,
    told: undefined,
    toldAtMs: 0,
    provesUntilMs: 0,
    demand: { perSecond: 0, atMs: nowMs },
    pace: newPace(),
    dearest: 0,
    waiting: 0,
    sent: undefined,
    durable: undefined,
    heard: undefined,
    failedAtMs: undefined,
  };
}

/** Counts the offer of a request; once, however often it is looked at. */
export function offerCredits(lease: CreditLease, credits: number, total: number, nowMs: number): void {
  offer(lease.demand, credits, nowMs);
  lease.dearest = Math.max(lease.dearest, credits);
  if (total === lease.total) return;
  lease.total = total;
  lease.provesUntilMs = 0; // what the centre said was about another allowance
}

/**
 * Decides on a price. Only what the centre said after it was asked for this shortage is a no; a shortage of memory
 * alone never is (limits.md 3.6). Takes nothing.
 */
export function lookAtCredits(
  lease: CreditLease,
  credits: number,
  nowMs: number,
  { mayWait, storeOut }: Readonly<{ mayWait: boolean; storeOut: boolean }>,
): CreditLook {
  if (lease.allowance >= credits) return { kind: 'enough' };
  const { told, failedAtMs } = lease;
  if (storeOut || (failedAtMs !== undefined && nowMs - failedAtMs < REFRESH_MS))
    return { kind: 'unavailable' };
  if (told !== undefined && nowMs < lease.provesUntilMs) {
    if (told.learning) return { kind: 'unavailable' };
    const nobodyHas = told.available + told.heldByOthers + lease.allowance < credits;
    if (nobodyHas) return { kind: 'out' };
    if (told.available <= 0) return { kind: 'later', waitMs: LATER_MS };
  }
  if (mayWait) return { kind: 'ask' };
  // A store that answers others in time is not away: this request's turn has not come.
  const isSlow = lease.sent !== undefined && nowMs - lease.sent.atMs >= SLOW_MS;
  const answers = failedAtMs === undefined && !isSlow && told !== undefined && !told.learning;
  return answers ? { kind: 'later', waitMs: LATER_MS } : { kind: 'unavailable' };
}

/** What the centre has confirmed may be lost: it is told again, at once. */
export function forgetHeard(lease: CreditLease): void {
  lease.heard = undefined;
  lease.toldAtMs = Number.NEGATIVE_INFINITY;
  lease.provesUntilMs = 0;
}

/** Charges what a look of this instant has found. The journal must be told. */
export function takeCredits(lease: CreditLease, credits: number): void {
  lease.allowance -= credits;
  lease.spending.charged += credits;
}

/** Refunds; what was charged stays charged, since it was said. The journal must be told. */
export function giveBackCredits(lease: CreditLease, credits: number): void {
  lease.allowance += credits;
  lease.spending.refunded += credits;
}

/** Credits that the account has left, as far as this process knows. */
export function creditsKnown({ allowance, told, total, spending }: CreditLease): number {
  if (told === undefined) return Math.max(0, total - (spending.charged - spending.refunded));
  return Math.max(0, allowance + Math.max(0, told.available) + told.heldByOthers + told.heldByDead);
}

/** What the account wants of the centre: `now`, `soon`, or nothing. */
export function wishOfCredits(lease: CreditLease, nowMs: number): 'now' | 'soon' | 'nothing' {
  if (lease.sent !== undefined) return 'soon';
  const wanted = wantedOf(lease, nowMs);
  const asks =
    lease.waiting > 0 ||
    ((lease.allowance > 0 || hasNews(lease)) && nowMs - lease.toldAtMs >= REFRESH_MS) ||
    lease.failedAtMs !== undefined ||
    (lease.told?.recalled === true && lease.allowance > wanted) ||
    (lease.allowance * 2 < wanted && nowMs - lease.toldAtMs >= TOLD_MS);
  if (asks && !hasFailed(lease, nowMs))
    return nextSendMs(lease.pace, INTERVAL_MS, nowMs) <= nowMs ? 'now' : 'soon';
  return lease.allowance > 0 || wanted > 0 || hasNews(lease) || lease.failedAtMs !== undefined
    ? 'soon'
    : 'nothing';
}

/** The centre does not know yet what was charged: one that lost grants would give the same credits to others. */
export function hasNews({ heard, spending }: CreditLease): boolean {
  return heard?.charged !== spending.charged || heard.refunded !== spending.refunded;
}

function hasFailed({ failedAtMs }: CreditLease, nowMs: number): boolean {
  return failedAtMs !== undefined && nowMs - failedAtMs < REFRESH_MS / 2;
}

/** Nothing is lost by forgetting it: the counters stay the journal's, and the centre knows them. */
export function mayForgetCredits(lease: CreditLease, nowMs: number): boolean {
  const holds = lease.allowance > 0 || lease.sent !== undefined || lease.waiting > 0;
  // A message that failed may have been heard: what it was granted must be given back.
  return !holds && !hasNews(lease) && lease.failedAtMs === undefined && isIdle(lease, nowMs);
}

function isIdle({ demand }: CreditLease, nowMs: number): boolean {
  return nowMs - demand.atMs >= IDLE_MS;
}

/** Credits to hold. None while another process needs them, and none for an account at rest. */
function wantedOf(lease: CreditLease, nowMs: number): number {
  if (isIdle(lease, nowMs) || lease.told?.recalled === true) return 0;
  const most = Math.max(lease.dearest, Math.floor(lease.total * PART_MAX));
  return Math.min(most, Math.max(lease.dearest, Math.ceil(demandAt(lease.demand, nowMs) * AHEAD_SECONDS)));
}

/**
 * Writes the account's message; it may be sent when the counters in it are durable, and not before, or a crash would
 * leave the centre ahead of the journal. Credits above what it wants, at most `wantedMax`, are out of reach from here on.
 */
export function askCredits(
  lease: CreditLease,
  accountId: number,
  revision: number,
  nowMs: number,
  wantedMax = Number.MAX_SAFE_INTEGER,
): CreditAsk {
  const wanted = Math.min(wantedMax, wantedOf(lease, nowMs) + lease.waiting);
  const { charged, refunded } = lease.spending;
  if (lease.allowance > wanted) {
    lease.allowance = wanted;
    lease.provesUntilMs = 0; // what is given back is not gone
  }
  lease.sent = { charged, refunded, atMs: nowMs };
  noteSend(lease.pace, INTERVAL_MS, nowMs);
  const held = Math.max(0, lease.allowance);
  return { accountId, revision, total: lease.total, charged, refunded, held, wanted, needed: lease.waiting };
}

/** Takes in the answer to the message under way. */
export function takeCreditGrant(lease: CreditLease, grant: CreditGrant, nowMs: number): void {
  const { sent, spending } = lease;
  if (sent === undefined) return;
  lease.sent = undefined;
  const since = spending.charged - sent.charged - (spending.refunded - sent.refunded);
  lease.allowance = grant.allowance - since;
  lease.heard = sent;
  lease.told = grant;
  lease.toldAtMs = nowMs;
  lease.provesUntilMs = nowMs + TOLD_MS;
  lease.failedAtMs = undefined;
}

/** Nobody knows whether the message under way was heard. */
export function missCreditGrant(lease: CreditLease, nowMs: number): void {
  if (lease.sent === undefined) return;
  lease.sent = undefined;
  lease.failedAtMs = nowMs;
}

import { retryAfterSeconds } from '../../shared/clock.ts';
import { MICRO, perMsOf, type Refilled, refillFor, waitMsFor } from '../limits/bucket.ts';
import {
  type Holding,
  holdingIn,
  isNewer,
  type RateGrant,
  type RateReport,
  type Sender,
} from './messages.ts';

/** One node's tokens of an account. Whole numbers below 2^53. */
type RateHolding = Holding & {
  /** Granted and not returned, and spent, under `fence`. Their difference is outstanding. */
  granted: number;
  spent: number;
  /** On the account's clock: what is unspent then is lost. */
  expiresMs: number;
  /** Tokens that the node last wanted to hold, and the calls a second that were offered to it. */
  wanted: number;
  weight: number;
};

/** The authority's state of one account's rate: a bucket of what no node holds. Whole numbers below 2^53. */
export type RateState = Refilled & {
  /** The store's wall clock at the last message, and the account's own clock, which never steps back. */
  atMs: number;
  clockMs: number;
  revision: number;
  /** Tokens reserved for a refused batch until `reservedMs` on the account's clock. */
  reserved: number;
  reservedMs: number;
  nodes: RateHolding[];
};

/** How long a grant lives. */
export const RATE_LIFE_MS = 1_000;
/** A node that was silent for so long after its lease ended is forgotten. */
export const RATE_FORGET_MS = 600_000;
/** A bucket that starts again after an outage holds what this long refills. */
const START_MS = 100;
/** For a refused batch that would wait for longer no tokens are reserved. */
const RESERVE_MS = 2_000;
/** A batch that waited its `Retry-After` may come so much later and still find its tokens. */
const RESERVE_GRACE_MS = 250;
/** Of a contended bucket a node gets so much of its share of what is there, and the rest of its share of what came in. */
const SHARE_OF_BUCKET = 0.25;

/** After so long without a message an account's state equals a new one, and may be dropped. */
export function rateStateLifeMs({ micro, burst, perMs }: RateState): number {
  return Math.ceil((2 * burst * MICRO + Math.max(0, -micro)) / perMs) + 2 * RATE_LIFE_MS + 60_000;
}

/** A full bucket, or with `low` a nearly empty one: an outage or a loss may hide what was spent. */
export function newRate({ rps, burst }: RateReport, low: boolean) {
  const plan = { perMs: perMsOf(rps), burst };
  return { ...plan, micro: low ? startingMicro(plan) : burst * MICRO, reserved: 0, reservedMs: 0 };
}

/**
 * Takes one message about an account's rate into `state`: the bucket and what is outstanding never exceed the burst
 * together. A message that is not newer than the node's last changes nothing, and its reply repeats the state of then.
 */
export function topUpRate(
  state: RateState,
  sender: Sender,
  report: RateReport,
  revision: number,
  nowMs: number,
): RateGrant {
  const empty = { granted: 0, spent: 0, expiresMs: 0, wanted: 0, weight: 0 };
  const mine = holdingIn(state.nodes, sender, empty);
  if (!isNewer(sender, mine)) {
    // A process that has a successor under its name holds nothing: what is outstanding is the successor's.
    const nothing = { ...mine, granted: report.spent, spent: report.spent };
    return grantOf(state, sender.fence < mine.fence ? nothing : mine, report, 0);
  }
  settle(state, mine, nowMs);
  // At equal revisions the last sender's plan counts: processes reload one after the other, and then agree.
  if (revision >= state.revision)
    Object.assign(state, { revision, perMs: perMsOf(report.rps), burst: report.burst });
  const income = record(state, mine, sender, report);
  return grantOf(state, mine, report, top(state, mine, report, income));
}

function startingMicro({ perMs, burst }: Pick<RateState, 'perMs' | 'burst'>): number {
  return Math.min(burst * MICRO, perMs * START_MS);
}

/**
 * Time passes: the bucket refills, to the burst less what was outstanding, which may have been spent a moment ago: what
 * leases held counts until the last one of them ended. A wall clock that steps back stops the account's clock for one
 * message, not for an hour.
 */
function settle(state: RateState, mine: RateHolding, nowMs: number): void {
  const sinceMs = state.clockMs;
  const clockMs = sinceMs + Math.max(0, nowMs - state.atMs);
  let endedMs = sinceMs;
  for (const holding of state.nodes)
    if (heldBy(holding, sinceMs) > 0 && holding.expiresMs <= clockMs)
      endedMs = Math.max(endedMs, holding.expiresMs);
  refillFor(state, endedMs - sinceMs, capOf(state, sinceMs));
  refillFor(state, clockMs - endedMs, capOf(state, clockMs));
  state.nodes = state.nodes.filter((each) => each === mine || each.expiresMs + RATE_FORGET_MS > clockMs);
  state.atMs = nowMs;
  state.clockMs = clockMs;
  if (state.reservedMs <= clockMs) state.reserved = state.reservedMs = 0;
}

/** Micro-tokens of the bucket at most, while the leases are outstanding that are alive at `clockMs`. */
function capOf({ burst, nodes }: RateState, clockMs: number): number {
  return nodes.reduce((tokens, holding) => tokens - heldBy(holding, clockMs), burst) * MICRO;
}

function heldBy({ granted, spent, expiresMs }: RateHolding, clockMs: number): number {
  return expiresMs > clockMs ? granted - spent : 0;
}

/** Income since a node last sent, in micro-tokens, and tokens of it that the node took ungranted. */
type Income = Readonly<{ micro: number; debt: number }>;

/** Spending beyond grants is a debt. Gives what came in since the last report; `undefined`: there was no lease. */
function record(state: RateState, mine: RateHolding, { fence, seq }: Sender, report: RateReport) {
  const { spent: reported, wanted, weight, recovering } = report;
  const { clockMs, perMs } = state;
  const isUnknown = mine.seq < 0;
  const isSame = mine.fence === fence && !isUnknown;
  const spent = isSame ? Math.max(reported, mine.spent) : reported;
  const granted = isSame ? mine.granted : reported;
  const debt = Math.max(0, spent - granted);
  const isAlive = isSame && mine.expiresMs > clockMs;
  const income = isAlive ? { micro: perMs * (clockMs - mine.expiresMs + RATE_LIFE_MS), debt } : undefined;
  const paid = state.micro - debt * MICRO;
  const low = Math.min(state.micro, startingMicro(state));
  // A node that did without the authority leaves the bucket nearly empty at worst: that debt is not paid off for
  // seconds. How much an unknown one owes cannot be known.
  const least = isUnknown ? low : Math.max(paid, low);
  state.micro = recovering ? least : paid;
  const lease = { granted: isAlive ? granted + debt : spent, spent, expiresMs: clockMs + RATE_LIFE_MS };
  Object.assign(mine, { fence, seq, ...lease, wanted, weight });
  return income;
}

/** Moves what the node holds towards what it wants. Gives what a request needs beyond that, counted as spent. */
function top(state: RateState, mine: RateHolding, report: RateReport, income: Income | undefined): number {
  const needed = Math.min(report.needed, state.burst);
  const held = mine.granted - mine.spent;
  const kept = needed < state.reserved ? state.reserved : 0;
  const free = Math.max(0, Math.floor(state.micro / MICRO) - kept);
  const isServed = needed > 0 && held + free >= needed;
  const immediate = isServed ? Math.max(0, needed - held) : 0;
  const goal = Math.min(state.burst, report.wanted + (isServed ? needed - immediate : 0));
  const target = goal <= held ? goal : held + fairShare(state, mine, goal - held, free - immediate, income);
  state.micro -= (target - held + immediate) * MICRO;
  mine.spent += immediate;
  mine.granted = mine.spent + target;
  reserve(state, needed, isServed);
  return immediate;
}

/** All that is missing when there is enough for all nodes, else a share by weight, and never nothing of something. */
function fairShare(
  { nodes, clockMs }: RateState,
  mine: RateHolding,
  missing: number,
  free: number,
  income: Income | undefined,
): number {
  let [missed, weights] = [missing, mine.weight];
  for (const holding of nodes) {
    const misses = holding.wanted - (holding.granted - holding.spent);
    if (holding === mine || holding.expiresMs <= clockMs || misses <= 0) continue;
    missed += misses;
    weights += holding.weight;
  }
  if (missed <= free) return missing;
  const part = mine.weight / Math.max(1, weights);
  const isShared = income !== undefined && weights !== mine.weight;
  // By what is there alone, a node that always sends right after others would get less than they.
  const share = isShared
    ? SHARE_OF_BUCKET * free * part + (1 - SHARE_OF_BUCKET) * ((income.micro * part) / MICRO - income.debt)
    : free * part;
  return Math.min(missing, free, Math.max(1, Math.floor(share)));
}

/** Reserves tokens for a refused batch until it may come again; else single calls would starve it for ever. */
function reserve(state: RateState, needed: number, isServed: boolean): void {
  if (isServed && needed >= state.reserved) state.reserved = state.reservedMs = 0;
  if (isServed || needed <= Math.max(1, state.reserved)) return;
  const waitMs = waitFor(state, needed);
  if (waitMs > RESERVE_MS) return;
  state.reserved = needed;
  state.reservedMs = state.clockMs + retryAfterSeconds(waitMs) * 1_000 + RESERVE_GRACE_MS;
}

/** Milliseconds after which the bucket has so many tokens if none are taken and every live lease is lost. */
function waitFor(state: RateState, tokens: number): number {
  const { micro, perMs, clockMs } = state;
  const waitMs = waitMsFor(state, tokens);
  const cap = capOf(state, clockMs);
  if (waitMs === 0 || tokens * MICRO <= cap) return waitMs;
  let lastMs = clockMs;
  for (const holding of state.nodes)
    if (heldBy(holding, clockMs) > 0) lastMs = Math.max(lastMs, holding.expiresMs);
  const then = Math.min(Math.max(cap, micro), micro + (lastMs - clockMs) * perMs);
  return lastMs - clockMs + waitMsFor({ ...state, micro: then }, tokens);
}

/** Milliseconds after which `tokens` may be granted: what is reserved is passed over, or waited out. */
function waitBehind(state: RateState, tokens: number): number {
  const waitMs = waitFor(state, tokens);
  const { reserved, reservedMs, clockMs, burst } = state;
  if (reserved <= tokens) return waitMs;
  const endsMs = Math.max(waitMs, reservedMs - clockMs);
  return reserved + tokens > burst ? endsMs : Math.min(endsMs, waitFor(state, reserved + tokens));
}

function grantOf(
  state: RateState,
  { granted, spent, expiresMs }: RateHolding,
  { needed }: RateReport,
  immediate: number,
): RateGrant {
  const need = Math.min(needed, state.burst);
  const isServed = need <= granted - spent + immediate;
  const live = state.nodes.filter((holding) => holding.expiresMs > state.clockMs);
  return {
    granted,
    spent,
    immediate,
    lifeMs: Math.max(0, expiresMs - state.clockMs),
    waitMs: waitBehind(state, isServed ? 1 : need),
    remaining: Math.floor(state.micro / MICRO),
    nodes: live.length,
    weights: live.reduce((sum, { weight }) => sum + weight, 0),
  };
}

import { RATE_LIFE_MS } from './authority-rate.ts';
import { type Bucket, refill, shortMs } from './charge.ts';
import type { RateGrant, RateReport } from './messages.ts';

/** Older offers fade with a time constant of a second. */
const FADE_MS = 1_000;

/** How much was offered lately, a second. */
export class Demand {
  #perSecond = 0;
  constructor(public lastMs: number) {}

  /** Counts an offer, also one that is refused: a starved process must still grow its share. */
  offer(amount: number, nowMs: number): void {
    this.#perSecond = this.at(nowMs) + amount * (1_000 / FADE_MS);
    this.lastMs = nowMs;
  }

  at(nowMs: number): number {
    return this.#perSecond * Math.exp(Math.min(0, this.lastMs - nowMs) / FADE_MS);
  }
}

/** After a rest so many messages may follow at once on the first. */
const SPARE_MAX = 2;

/** How often one account's messages may be sent. */
export class Pace {
  #lastMs = Number.NEGATIVE_INFINITY;
  #spare = SPARE_MAX;

  /** When the next message may be sent; `nowMs` when it may be now. */
  nextMs(intervalMs: number, nowMs: number): number {
    return this.#spare > 0 ? nowMs : Math.max(nowMs, this.#lastMs + intervalMs);
  }

  /** Notes that a message is sent at `nowMs`, in its turn or not. */
  note(intervalMs: number, nowMs: number): void {
    const turns = Math.floor((nowMs - this.#lastMs) / intervalMs);
    this.#spare = Math.max(0, Math.min(SPARE_MAX, this.#spare + turns - 1));
    this.#lastMs = nowMs;
  }
}

/** `debtMax`: calls that may be let in before the authority grants them. */
export type RatePlan = Readonly<{ rps: number; burst: number; debtMax: number }>;

/**
 * Where a request's tokens come from: those that are held, a debt to the authority, or this process's own bucket.
 * `ask`: memory cannot tell. `short`: there are too few; after `waitMs` of the lease without other calls there are enough.
 */
type RateLook = 'lease' | 'debt' | 'alone' | 'ask' | 'short';

/** When a part of an account has to send: `now`; `soon`, to be looked at again; or not at all. */
export type Due = 'now' | 'soon' | 'never';

/** The gaps between messages: where all want more than there is and share what comes in, and where there is enough. */
const CONTENDED_MS = 200;
const UNCONTENDED_MS = 30;
/** A message for a batch is sent out of turn, so that tokens are reserved for it; at most so often. */
const BATCH_GAP_MS = 50;
/** A lease is renewed, or its rest returned, so long before it ends. */
const RENEW_MS = 400;
/** A request that was granted tokens takes them in the turns of the event loop that follow, or has left. */
const IMMEDIATE_MS = 5;
/** An account without a request in this time is at rest. */
const IDLE_MS = 2_000;

/** An account with fewer calls between two messages leases nothing ahead: what one process holds, others lack. */
const AHEAD_MIN = 2;
/** The bucket of an account in use starts with what so much time refills: the lease was spent a moment ago. */
const ALONE_START_SECONDS = 0.1;
/** So long after the authority's first reply each node has reported what it still uses, or never will. */
const HEARD_MS = 2_000;
/** What was let in alone for so much longer than the bucket takes to fill is not paid off: the bucket overflowed meanwhile. */
const RECOVERING_MS = 1_000;

/**
 * One account's rate in this process. Instants are of the monotonic clock.
 *
 * A token is held (granted and not spent, before `#expiresMs`), owed (spent and not granted), or the authority's. Memory
 * knows of the authority until when it is empty, what it refused, and until when more is wanted than there is.
 *
 *     heard --no reply--> alone --reply--> alone, recovering --every node heard--> heard
 *
 * Alone, this process lets in its share of the rate from a bucket of its own; the shares of all nodes sum to about one.
 * It goes on so until all nodes that had a share are back: the first would else be granted what the others let in alone.
 */
export class RateLease {
  readonly demand: Demand;
  /** Tokens that requests wait for, and the most that one of them needs. */
  waiting = 0;
  waitingMost = 0;
  /** A request since the last message found less than it needed, also with a debt. */
  isStarved = false;
  /** The wait of the last `short` look. */
  waitMs = 0;
  /** Let in alone and not yet reported. */
  spentAlone = 0;
  granted = 0;
  spent = 0;
  emptyUntilMs = 0;
  #plan: RatePlan;
  readonly #pace = new Pace();
  /** Whether the authority's count of what this process spent is known; until then counts are from 0. */
  #isKnown = false;
  #expiresMs = 0;
  /** Returned by requests that were refused after all. */
  #returned = 0;
  /** For a request that waited, which takes them at once or loses them: they count as spent. */
  #immediate = 0;
  #immediateUntilMs = 0;
  #remaining: number;
  #heardMs: number;
  #contendedUntilMs = 0;
  #refused = 0;
  #refusedUntilMs = 0;
  /** When the next message for a batch may be sent out of turn. */
  #batchMs = 0;
  /** The message under way: when it was sent, and what it reported. */
  #sent: Readonly<{ atMs: number; spent: number; alone: number; wanted: number; needed: number }> | undefined;
  /** Since when the authority has not replied, or not all nodes are back; `undefined` while it is heard. */
  #aloneSinceMs: number | undefined;
  #aloneBucket: Bucket | undefined;
  /** This process's part of the rate, by what was offered to each node and the rest in equal parts, and the nodes, when all had reported. */
  #share: number;
  #nodes = 1;
  /** Since when the authority has replied without a miss; `undefined` before its first reply. */
  #repliesSinceMs: number | undefined;

  constructor(plan: RatePlan, share: number, nowMs: number) {
    this.#plan = plan;
    this.#share = share;
    this.#remaining = plan.burst;
    this.#heardMs = nowMs;
    this.demand = new Demand(nowMs);
  }

  /** What memory knows of the authority is about the old plan. */
  changePlan(plan: RatePlan): void {
    this.#plan = plan;
    this.emptyUntilMs = this.#contendedUntilMs = this.#refusedUntilMs = 0;
    if (this.#aloneBucket !== undefined) Object.assign(this.#aloneBucket, this.#ownRate());
  }

  /** Milliseconds between messages: what comes in meanwhile is a quarter of the burst, so that the bucket is never full. */
  get #intervalMs(): number {
    const { rps, burst } = this.#plan;
    return Math.min(500, Math.max(25, (burst / (4 * rps)) * 1_000));
  }

  /** A process that gets what it wants may send again soon. */
  #gapMs(nowMs: number): number {
    return nowMs < this.#contendedUntilMs
      ? Math.min(CONTENDED_MS, this.#intervalMs)
      : Math.min(UNCONTENDED_MS, this.#intervalMs / 8);
  }

  #sendableMs(nowMs: number): number {
    return this.#pace.nextMs(this.#gapMs(nowMs), nowMs);
  }

  /** No request came for as long as messages are apart. */
  #isQuiet(nowMs: number): boolean {
    return nowMs - this.demand.lastMs > this.#intervalMs;
  }

  /** Tokens that may be spent now; below zero while some are owed. */
  held(nowMs: number): number {
    if (nowMs >= this.#expiresMs) {
      if (this.granted > this.spent) this.granted = this.spent;
      this.#returned = 0;
    }
    if (nowMs > this.#immediateUntilMs) this.#immediate = 0;
    return this.granted - this.spent + this.#returned + this.#immediate;
  }

  /** Something is owed to an authority that is heard. */
  isOwing(nowMs: number): boolean {
    return this.#aloneSinceMs === undefined && this.held(nowMs) < 0;
  }

  /** Decides whether `calls` may be let in; takes nothing. `isCrowded`: so many accounts have debts to report that no more may owe. */
  look(calls: number, nowMs: number, mayWait: boolean, storeOut: boolean, isCrowded: boolean): RateLook {
    const { burst, debtMax } = this.#plan;
    const need = Math.min(calls, burst);
    const held = this.held(nowMs);
    if (held >= need) return 'lease';
    const isAlone = storeOut || this.#aloneSinceMs !== undefined;
    const knownMs = isAlone ? 0 : this.#knownWait(need, nowMs);
    if (!isAlone && knownMs === 0 && calls - held <= debtMax && !(isCrowded && held === 0)) return 'debt';
    this.isStarved = true;
    if (knownMs > 0) return this.#short(knownMs);
    if (isAlone || !mayWait) return this.#lookAlone(calls, nowMs);
    const sendMs = need > 1 ? this.#batchMs : this.#sendableMs(nowMs);
    if (this.#sent !== undefined || sendMs <= nowMs + UNCONTENDED_MS) return 'ask';
    return this.#short(Math.max(sendMs - nowMs, need > 1 ? Math.ceil((need * 1_000) / this.#plan.rps) : 0));
  }

  /** A wait has to count what other processes may have let in and not yet reported. */
  #short(waitMs: number): RateLook {
    this.waitMs = waitMs + Math.ceil(((this.#nodes - 1) * this.#plan.debtMax * 1_000) / this.#plan.rps);
    return 'short';
  }

  /** How long the authority is known to have nothing for this request; 0: that is not known. */
  #knownWait(need: number, nowMs: number): number {
    const refusedMs = need >= this.#refused ? this.#refusedUntilMs - nowMs : 0;
    if (need > 1) return Math.max(0, refusedMs);
    const emptyMs = Math.max(refusedMs, this.emptyUntilMs - nowMs);
    if (emptyMs > 0 || nowMs >= this.#contendedUntilMs) return Math.max(0, emptyMs);
    return this.#sent === undefined ? this.#sendableMs(nowMs) - nowMs : this.#intervalMs;
  }

  #lookAlone(calls: number, nowMs: number): RateLook {
    const bucket = this.#goAlone(nowMs, nowMs);
    refill(bucket, nowMs);
    this.waitMs = shortMs(bucket, calls);
    return this.waitMs === 0 ? 'alone' : 'short';
  }

  #ownRate() {
    return { rps: this.#plan.rps * this.#share, burst: Math.max(1, this.#plan.burst * this.#share) };
  }

  /** Begins to do without the authority. The bucket is kept: a store that comes and goes refills nothing. */
  #goAlone(sinceMs: number, nowMs: number): Bucket {
    if (this.#aloneBucket !== undefined && this.#aloneSinceMs !== undefined) return this.#aloneBucket;
    this.#aloneSinceMs = sinceMs;
    const rate = this.#ownRate();
    const bucket = Object.assign((this.#aloneBucket ??= { tokens: Infinity, atMs: nowMs, ...rate }), rate);
    refill(bucket, nowMs);
    if (this.#isKnown) bucket.tokens = Math.min(bucket.tokens, rate.rps * ALONE_START_SECONDS);
    return bucket;
  }

  take(calls: number, from: RateLook): void {
    if (from === 'alone' && this.#aloneBucket !== undefined) {
      this.#aloneBucket.tokens -= calls;
      this.spentAlone += calls;
      return;
    }
    const immediate = Math.min(this.#immediate, calls);
    const returned = Math.min(this.#returned, calls - immediate);
    this.#immediate -= immediate;
    this.#returned -= returned;
    this.spent += calls - immediate - returned;
  }

  /** What was spent stays spent: it was reported. */
  giveBack(calls: number, nowMs: number): void {
    if (nowMs < this.#expiresMs) this.#returned = Math.min(this.#plan.burst, this.#returned + calls);
  }

  /** The account's tokens as far as this process knows, for the RateLimit fields. */
  tokensKnown(nowMs: number): number {
    const { rps, burst } = this.#plan;
    const refilled = Math.max(0, nowMs - this.#heardMs) * (rps / 1_000);
    return Math.min(burst, this.held(nowMs) + this.#remaining + refilled);
  }

  /** Tokens to hold: what will be spent until the reply to the next message but one. */
  #target(nowMs: number, aheadMs: number): number {
    const { rps, burst } = this.#plan;
    const demand = this.demand.at(nowMs);
    // Tokens that no request needs are kept from other nodes.
    if (demand * this.#intervalMs < AHEAD_MIN * 1_000 || this.#isQuiet(nowMs)) return 0;
    const cap = Math.max(1, Math.floor((burst - (rps * this.#intervalMs) / 1_000) / this.#nodes));
    return Math.min(cap, Math.ceil((demand * (this.#intervalMs + aheadMs)) / 1_000));
  }

  due(nowMs: number, aheadMs: number): Due {
    const held = this.held(nowMs);
    if (this.#sent !== undefined) return 'soon';
    // Report a debt immediately; until the authority knows, it over-grants other nodes.
    if (this.isOwing(nowMs) || (this.waitingMost > 1 && nowMs >= this.#batchMs)) return 'now';
    const target = this.#target(nowMs, aheadMs);
    const low = (this.demand.at(nowMs) * aheadMs) / 1_000;
    const isDue =
      this.waiting > 0 ||
      held < 0 ||
      (held <= low && target > held && nowMs >= this.emptyUntilMs) ||
      (held > 0 && (this.#expiresMs - nowMs <= RENEW_MS || this.#isQuiet(nowMs))) ||
      (this.#aloneSinceMs !== undefined && nowMs - this.demand.lastMs < IDLE_MS);
    if (isDue) return this.#sendableMs(nowMs) <= nowMs ? 'now' : 'soon';
    return held > 0 || target > held ? 'soon' : 'never';
  }

  /** What is held above what is wanted is out of reach from here on: others may be granted it. */
  report(nowMs: number, aheadMs: number): RateReport {
    const { rps, burst } = this.#plan;
    const aloneMs = nowMs - (this.#aloneSinceMs ?? nowMs);
    // A node that was alone for longer than leases live first asks which others are back.
    const target = aloneMs > RATE_LIFE_MS ? 0 : this.#target(nowMs, aheadMs);
    const needed = this.waitingMost;
    const wanted = Math.max(0, target + this.waiting - needed);
    if (this.held(nowMs) > wanted) this.granted = Math.min(this.granted, this.spent + wanted);
    const unheardMs = Math.min(aloneMs, nowMs - this.#heardMs);
    const recovering = this.spentAlone > 0 && unheardMs > (1_000 * burst) / rps + RECOVERING_MS;
    const alone = this.#isKnown || recovering ? this.spentAlone : 0;
    const spent = this.#isKnown ? this.spent : 0;
    this.#sent = { atMs: nowMs, spent, alone, wanted, needed };
    this.isStarved = false;
    if (needed > 1) this.#batchMs = nowMs + BATCH_GAP_MS;
    this.#pace.note(this.#gapMs(nowMs), nowMs);
    const weight = Math.max(1, Math.ceil(this.demand.at(nowMs)));
    return { rps, burst, spent: this.#isKnown ? spent + alone : 0, wanted, needed, weight, recovering };
  }

  /** Without a grant it is unknown whether the message was heard. */
  settle(grant: RateGrant | undefined, nowMs: number): void {
    const sent = this.#sent;
    if (sent === undefined) return;
    this.#sent = undefined;
    if (grant === undefined) {
      this.#repliesSinceMs = undefined;
      return void this.#goAlone(sent.atMs, nowMs);
    }
    const { granted, spent, immediate, lifeMs, waitMs, remaining, weights } = grant;
    const areBack = this.#noteNodes(grant, nowMs);
    this.spent += spent - sent.spent;
    this.granted = granted;
    this.#isKnown = true;
    this.#expiresMs = sent.atMs + lifeMs;
    this.#remaining = remaining;
    this.#heardMs = nowMs;
    this.#immediate = immediate;
    this.#immediateUntilMs = nowMs + IMMEDIATE_MS;
    const isRefused = sent.needed > granted - spent + immediate;
    this.#refused = isRefused ? sent.needed : 0;
    this.#refusedUntilMs = isRefused ? nowMs + waitMs : 0;
    const oneMs = Math.ceil(((1 - remaining) * 1_000) / this.#plan.rps);
    this.emptyUntilMs = remaining < 1 ? nowMs + Math.min(waitMs, oneMs) : 0;
    // A bucket that is low although less is offered than comes in, as after an outage, is so for a moment.
    const isContended = granted - spent < sent.wanted && weights >= this.#plan.rps;
    this.#contendedUntilMs = isContended ? nowMs + 2 * this.#intervalMs : 0;
    this.spentAlone -= sent.alone;
    if (nowMs - (this.#aloneSinceMs ?? nowMs) > RATE_LIFE_MS && !areBack) return;
    // What was let in alone while this reply was on its way is spent like all else.
    this.spent += this.spentAlone;
    this.spentAlone = 0;
    this.#aloneSinceMs = undefined;
  }

  /** Gives whether all nodes that shared the account before have reported since the last outage. */
  #noteNodes({ nodes, weights }: RateGrant, nowMs: number): boolean {
    if (this.#repliesSinceMs === undefined || nowMs - this.#heardMs > HEARD_MS) this.#repliesSinceMs = nowMs;
    const areHeard = nowMs - this.#repliesSinceMs >= HEARD_MS;
    if (!areHeard && nodes < this.#nodes) return false;
    this.#nodes = Math.max(1, nodes);
    const { rps } = this.#plan;
    const spare = Math.max(0, rps - weights) / this.#nodes;
    if (areHeard)
      this.#share = Math.min(1, (Math.max(1, this.demand.at(nowMs)) + spare) / Math.max(1, weights, rps));
    return true;
  }

  /** At rest nothing is lost: the next message asks what was spent. What was let in alone counts until its bucket is full again. */
  mayForget(nowMs: number): boolean {
    if (this.#sent !== undefined || this.waiting !== 0 || this.held(nowMs) !== 0) return false;
    const bucket = this.#aloneBucket;
    if (bucket !== undefined) refill(bucket, nowMs);
    const isFull = bucket === undefined || bucket.tokens >= bucket.burst;
    return isFull && nowMs - this.demand.lastMs >= IDLE_MS;
  }
}

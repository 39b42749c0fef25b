import { RATE_LIFE_MS } from './authority-rate.ts';
import { MICRO, perMsOf, refill, shortMs } from '../limits/bucket.ts';
import { Demand, type Due, Pace } from './lease-pace.ts';
import type { RateGrant, RateReport } from './messages.ts';
import { isLongHeard, nextContact, type RateContact } from './rate-contact.ts';

/** `debtMax`: calls that may be let in before the authority grants them. */
export type RatePlan = Readonly<{ rps: number; burst: number; debtMax: number }>;

/**
 * Which tokens a request may take: granted ones (`lease`), some that are granted later (`debt`), the own bucket's (`alone`);
 * or none: before the authority replies (`ask`), or for the lease's `waitMs` (`short`).
 */
type RateLook = 'lease' | 'debt' | 'alone' | 'ask' | 'short';

/** Pause between messages, at most: while the nodes together want more than the rate, and while they do not. */
const CONTENDED_MS = 200;
const UNCONTENDED_MS = 30;
/** Least time between messages for a waiting batch, which do not wait for `Pace`: the authority is to reserve its tokens. */
const BATCH_GAP_MS = 50;
/** How long before its end a lease is renewed, or what is left of it returned. */
const RENEW_MS = 400;
/** How long tokens granted to a waiting request are kept for it: it takes them at once, unless its client has left. */
const IMMEDIATE_MS = 5;
/** An account without a request for this long is idle. */
const IDLE_MS = 2_000;

/** An account with fewer calls an interval leases nothing ahead: tokens held for nothing are missing in other processes. */
const AHEAD_MIN = 2;
/** In an outage longer by this than the bucket takes to fill, what was spent alone is no debt: the bucket had overflowed. */
const RECOVERING_MS = 1_000;

/**
 * One account's rate in this process, a node: it leases tokens from the authority, which keeps the account's bucket in
 * the store that all nodes share. Instants are of the monotonic clock.
 *
 * Tokens are held (granted and not spent, until `#expiresMs`) or owed (spent and not granted). Requests are decided by
 * these and by the last reply: until when the authority's bucket is empty, what it refused, whether nodes compete.
 *
 * Who decides is `#contact`, whose states are drawn in `rate-contact.ts`: the authority by these, or a bucket of this
 * process. Tokens are numbers of this class and not of a state, since each call changes them. In any state `look` decides and
 * `take` follows it at once; `report` and `settle` alternate, and a message is `#sent` between them.
 */
export class RateLease {
  readonly demand: Demand;
  /** Tokens that requests wait for, and the most that one of them needs. */
  waiting = 0;
  waitingMost = 0;
  /** Since the last message a request found too few tokens, a debt included. */
  isStarved = false;
  /** The wait of the last `short` look. */
  waitMs = 0;
  granted = 0;
  spent = 0;
  emptyUntilMs = 0;
  #plan: RatePlan;
  readonly #pace = new Pace();
  /** Whether a reply has told what this process had spent before; until then `spent` counts from 0. */
  #isKnown = false;
  #expiresMs = 0;
  /** Given back by requests that were refused after all; may be spent again. */
  #returned = 0;
  /** Granted to a waiting request, which takes them at once or loses them; `spent` has them already. */
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
  #contact: RateContact = { kind: 'heard', repliesSinceMs: undefined, bucket: undefined };
  /** This process's part of the rate when alone, and the number of nodes; both of the last time when all had reported. */
  #share: number;
  #nodes = 1;

  constructor(plan: RatePlan, share: number, nowMs: number) {
    this.#plan = plan;
    this.#share = share;
    this.#remaining = plan.burst;
    this.#heardMs = nowMs;
    this.demand = new Demand(nowMs);
  }

  /** Forgets what replies said about the old plan. */
  changePlan(plan: RatePlan): void {
    this.#plan = plan;
    this.emptyUntilMs = this.#contendedUntilMs = this.#refusedUntilMs = 0;
    if (this.#contact.bucket !== undefined) Object.assign(this.#contact.bucket, this.#ownRate());
  }

  /** Milliseconds between messages: a quarter of the burst is refilled in them, so that the authority's bucket never overflows. */
  get #intervalMs(): number {
    const { rps, burst } = this.#plan;
    return Math.min(500, Math.max(25, (burst / (4 * rps)) * 1_000));
  }

  /** Least time between two messages: short, unless nodes compete for tokens. */
  #gapMs(nowMs: number): number {
    return nowMs < this.#contendedUntilMs
      ? Math.min(CONTENDED_MS, this.#intervalMs)
      : Math.min(UNCONTENDED_MS, this.#intervalMs / 8);
  }

  #sendableMs(nowMs: number): number {
    return this.#pace.nextMs(this.#gapMs(nowMs), nowMs);
  }

  /** No request came for a whole interval. */
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

  /** Tokens are owed to an authority that replies. */
  isOwing(nowMs: number): boolean {
    return this.#contact.kind === 'heard' && this.held(nowMs) < 0;
  }

  /** Decides whether `calls` may be let in; takes nothing. `isCrowded`: too many accounts have a debt to report for another one. */
  look(calls: number, nowMs: number, mayWait: boolean, storeOut: boolean, isCrowded: boolean): RateLook {
    const { burst, debtMax } = this.#plan;
    const need = Math.min(calls, burst);
    const held = this.held(nowMs);
    if (held >= need) return 'lease';
    const isAlone = storeOut || this.#contact.kind !== 'heard';
    const knownMs = isAlone ? 0 : this.#knownWait(need, nowMs);
    if (!isAlone && knownMs === 0 && calls - held <= debtMax && !(isCrowded && held === 0)) return 'debt';
    this.isStarved = true;
    if (knownMs > 0) return this.#short(knownMs);
    if (isAlone || !mayWait) return this.#lookAlone(calls, nowMs);
    const sendMs = need > 1 ? this.#batchMs : this.#sendableMs(nowMs);
    if (this.#sent !== undefined || sendMs <= nowMs + UNCONTENDED_MS) return 'ask';
    return this.#short(Math.max(sendMs - nowMs, need > 1 ? Math.ceil((need * 1_000) / this.#plan.rps) : 0));
  }

  /** Refuses for `waitMs` and for the time that pays off the debts that other nodes may have. */
  #short(waitMs: number): RateLook {
    this.waitMs = waitMs + Math.ceil(((this.#nodes - 1) * this.#plan.debtMax * 1_000) / this.#plan.rps);
    return 'short';
  }

  /** How long the authority is known to have too few tokens for this request; 0: unknown. */
  #knownWait(need: number, nowMs: number): number {
    const refusedMs = need >= this.#refused ? this.#refusedUntilMs - nowMs : 0;
    if (need > 1) return Math.max(0, refusedMs);
    const emptyMs = Math.max(refusedMs, this.emptyUntilMs - nowMs);
    if (emptyMs > 0 || nowMs >= this.#contendedUntilMs) return Math.max(0, emptyMs);
    return this.#sent === undefined ? this.#sendableMs(nowMs) - nowMs : this.#intervalMs;
  }

  #lookAlone(calls: number, nowMs: number): RateLook {
    this.#contact = nextContact(this.#contact, { kind: 'overdue', ...this.#start(nowMs) });
    const { bucket } = this.#contact;
    if (bucket === undefined) return 'ask'; // it has one from here on
    refill(bucket, nowMs);
    this.waitMs = shortMs(bucket, calls);
    return this.waitMs === 0 ? 'alone' : 'short';
  }

  #start(nowMs: number) {
    return { nowMs, rate: this.#ownRate(), isKnown: this.#isKnown };
  }

  #ownRate() {
    const { rps, burst } = this.#plan;
    return { perMs: perMsOf(rps * this.#share), burst: Math.max(1, burst * this.#share) };
  }

  /** Taken from the own bucket and not yet reported. */
  get spentAlone(): number {
    return this.#contact.kind === 'heard' ? 0 : this.#contact.spent;
  }

  /** Takes what the last look found. */
  take(calls: number, from: RateLook): void {
    const contact = this.#contact;
    if (from === 'alone' && contact.kind !== 'heard') {
      contact.bucket.micro -= calls * MICRO;
      contact.spent += calls;
      return;
    }
    const immediate = Math.min(this.#immediate, calls);
    const returned = Math.min(this.#returned, calls - immediate);
    this.#immediate -= immediate;
    this.#returned -= returned;
    this.spent += calls - immediate - returned;
  }

  /** Takes back the tokens of a refused request; `spent` stays, since it may have been reported. */
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
    // Tokens held for nothing are missing in other nodes.
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
      (this.#contact.kind !== 'heard' && nowMs - this.demand.lastMs < IDLE_MS);
    if (isDue) return this.#sendableMs(nowMs) <= nowMs ? 'now' : 'soon';
    return held > 0 || target > held ? 'soon' : 'never';
  }

  /** The message to send. It returns what is held above what it wants, which may not be spent from here on. */
  report(nowMs: number, aheadMs: number): RateReport {
    const { rps, burst } = this.#plan;
    const contact = this.#contact;
    const aloneMs = contact.kind === 'heard' ? 0 : nowMs - contact.sinceMs;
    // After more than the life of a lease alone, nothing is wanted until the reply tells which nodes are back.
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

  /** Takes in the reply. Without one it is unknown whether the message arrived, and the process goes on alone. */
  settle(grant: RateGrant | undefined, nowMs: number): void {
    const sent = this.#sent;
    if (sent === undefined) return;
    this.#sent = undefined;
    if (grant === undefined) {
      const event = { kind: 'missed', sentMs: sent.atMs, ...this.#start(nowMs) } as const;
      return void (this.#contact = nextContact(this.#contact, event));
    }
    const { granted, spent, immediate, lifeMs, waitMs, remaining, weights } = grant;
    this.#reach(grant, sent.alone, nowMs);
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
    // Nodes do not compete over a bucket that is low while they want less than the rate, as after an outage.
    const isContended = granted - spent < sent.wanted && weights >= this.#plan.rps;
    this.#contendedUntilMs = isContended ? nowMs + 2 * this.#intervalMs : 0;
  }

  /** The authority has replied: updates who decides, what was spent alone, and, once all nodes are back, nodes and share. */
  #reach({ nodes, weights }: RateGrant, reported: number, nowMs: number): void {
    const unreported = this.spentAlone - reported;
    const areAll = nodes >= this.#nodes;
    const contact = nextContact(this.#contact, { kind: 'replied', nowMs, heardMs: this.#heardMs, areAll });
    this.#contact = contact;
    // What was spent alone while this reply was on its way is reported with the next message.
    if (contact.kind === 'heard') this.spent += unreported;
    else contact.spent = unreported;
    const isLong = isLongHeard(contact, nowMs);
    if (!areAll && !isLong) return;
    this.#nodes = Math.max(1, nodes);
    const { rps } = this.#plan;
    const spare = Math.max(0, rps - weights) / this.#nodes;
    if (isLong)
      this.#share = Math.min(1, (Math.max(1, this.demand.at(nowMs)) + spare) / Math.max(1, weights, rps));
  }

  /** Nothing is lost by forgetting an idle account: a reply tells what was spent. Its own bucket must be full first. */
  mayForget(nowMs: number): boolean {
    if (this.#sent !== undefined || this.waiting !== 0 || this.held(nowMs) !== 0) return false;
    const { bucket } = this.#contact;
    if (bucket !== undefined) refill(bucket, nowMs);
    const isFull = bucket === undefined || bucket.micro >= bucket.burst * MICRO;
    return isFull && nowMs - this.demand.lastMs >= IDLE_MS;
  }
}

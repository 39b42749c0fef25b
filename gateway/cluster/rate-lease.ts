import { RATE_LIFE_MS } from './authority-rate.ts';
import { MICRO, perMsOf, refill, shortMs } from '../limits/bucket.ts';
import { Demand, type Due, Pace } from './lease-pace.ts';
import type { RateGrant, RateReport } from './messages.ts';
import { isByOwnBucket, isLongHeard, nextContact, type RateContact } from './rate-contact.ts';

/** `debtMax`: calls that may be let in before the authority grants them. */
export type RatePlan = Readonly<{ rps: number; burst: number; debtMax: number }>;

/**
 * Which tokens a request may take: granted ones (`lease`), some that are granted later (`debt`), the own bucket's (`alone`);
 * or none: before the authority replies (`ask`), or for `waitMs` (`short`).
 */
type RateCheck =
  { readonly kind: 'lease' | 'debt' | 'alone' | 'ask' } | { readonly kind: 'short'; readonly waitMs: number };

const [LEASE, DEBT, ALONE, ASK] = [
  { kind: 'lease' },
  { kind: 'debt' },
  { kind: 'alone' },
  { kind: 'ask' },
] as const;

/** The last reply, until it is out of date; before the first one, a full bucket. */
type Known = Readonly<{
  /** When it came; when the lease was made, if none has. */
  atMs: number;
  isReply: boolean;
  /** Tokens that no node holds. */
  remaining: number;
  /** The end of the grant: tokens that are not spent are lost then. */
  expiresMs: number;
  /** The authority's bucket has no token. */
  emptyUntilMs: number;
  /** Nodes compete for tokens. */
  contendedUntilMs: number;
  /** A request for so many tokens is refused. */
  refused: number;
  refusedUntilMs: number;
  /** The number of nodes and this one's part of the rate when alone, both of the last time when all had reported. */
  nodes: number;
  share: number;
}>;

/** A message under way: when it was sent, and what it reported. */
type SentReport = Readonly<{ atMs: number; spent: number; alone: number; wanted: number; needed: number }>;

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

const NOTHING_SHORT = { emptyUntilMs: 0, contendedUntilMs: 0, refusedUntilMs: 0 };

/**
 * One account's rate in this process, a node: it leases tokens from the authority, which keeps the account's bucket in
 * the store that all nodes share. Instants are of the monotonic clock.
 *
 * Who decides on requests is `#contact`, a union whose states and arrows are drawn at `nextContact`; `#known` is what the
 * last reply told. In any of the states:
 * - Tokens are held (granted and not spent, until `expiresMs`) or owed (spent and not granted); they are numbers of this
 *   class and not of a state, since each call changes them.
 * - No message is under way until `report`, and one is until `hear`, which takes its reply or that there is none.
 * - `check` decides on a request and `spend` follows it at once: held tokens first; then, in `new` and `heard`, a debt or a
 *   wait for the authority, which when it cannot wait moves to `alone` or `recovering`, and in these, the own bucket.
 */
export class RateLease {
  readonly demand: Demand;
  /** Tokens that requests wait for, and the most that one of them needs. */
  waiting = 0;
  waitingMost = 0;
  /** Since the last message a request found too few tokens, a debt included. */
  isStarved = false;
  granted = 0;
  spent = 0;
  /** Given back by requests that were refused after all; may be spent again. */
  #returned = 0;
  /** Granted to a waiting request, which takes them at once or loses them; `spent` has them already. */
  #immediate = 0;
  #plan: RatePlan;
  #known: Known;
  #contact: RateContact = { kind: 'new', bucket: undefined };
  #sent: SentReport | undefined;
  readonly #pace = new Pace();
  /** When the next message for a batch may be sent out of turn. */
  #batchMs = 0;

  constructor(plan: RatePlan, share: number, nowMs: number) {
    this.#plan = plan;
    const full = { remaining: plan.burst, expiresMs: 0, refused: 0, ...NOTHING_SHORT };
    this.#known = { atMs: nowMs, isReply: false, ...full, nodes: 1, share };
    this.demand = new Demand(nowMs);
  }

  /** Forgets what replies said about the old plan. */
  changePlan(plan: RatePlan): void {
    this.#plan = plan;
    this.#known = { ...this.#known, ...NOTHING_SHORT };
    if (this.#contact.bucket !== undefined) Object.assign(this.#contact.bucket, this.#ownRate());
  }

  /** Milliseconds between messages: a quarter of the burst is refilled in them, so that the authority's bucket never overflows. */
  get #intervalMs(): number {
    const { rps, burst } = this.#plan;
    return Math.min(500, Math.max(25, (burst / (4 * rps)) * 1_000));
  }

  /** Least time between two messages: short, unless nodes compete for tokens. */
  #gapMs(nowMs: number): number {
    return nowMs < this.#known.contendedUntilMs
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
    if (nowMs >= this.#known.expiresMs) {
      this.granted = Math.min(this.granted, this.spent);
      this.#returned = 0;
    }
    if (nowMs > this.#known.atMs + IMMEDIATE_MS) this.#immediate = 0;
    return this.granted - this.spent + this.#returned + this.#immediate;
  }

  /** Tokens are owed to an authority that replies. */
  isOwing(nowMs: number): boolean {
    return !isByOwnBucket(this.#contact) && this.held(nowMs) < 0;
  }

  /** Decides whether `calls` may be let in; takes nothing. `isCrowded`: too many accounts have a debt to report for another one. */
  check(calls: number, nowMs: number, mayWait: boolean, storeOut: boolean, isCrowded: boolean): RateCheck {
    const { burst, debtMax } = this.#plan;
    const need = Math.min(calls, burst);
    const held = this.held(nowMs);
    if (held >= need) return LEASE;
    const isAlone = storeOut || isByOwnBucket(this.#contact);
    const knownMs = isAlone ? 0 : this.#knownWait(need, nowMs);
    if (!isAlone && knownMs === 0 && calls - held <= debtMax && !(isCrowded && held === 0)) return DEBT;
    this.isStarved = true;
    if (knownMs > 0) return this.#short(knownMs);
    if (isAlone || !mayWait) return this.#checkOwn(calls, nowMs);
    const sendMs = need > 1 ? this.#batchMs : this.#sendableMs(nowMs);
    if (this.#sent !== undefined || sendMs <= nowMs + UNCONTENDED_MS) return ASK;
    return this.#short(Math.max(sendMs - nowMs, need > 1 ? this.#refillMs(need) : 0));
  }

  /** Refuses for `waitMs` and for the time that pays off the debts that other nodes may have. */
  #short(waitMs: number): RateCheck {
    return { kind: 'short', waitMs: waitMs + this.#refillMs((this.#known.nodes - 1) * this.#plan.debtMax) };
  }

  /** Milliseconds in which so many tokens come in. */
  #refillMs(tokens: number): number {
    return Math.ceil((tokens * 1_000) / this.#plan.rps);
  }

  /** How long the authority is known to have too few tokens for this request; 0: unknown. */
  #knownWait(need: number, nowMs: number): number {
    const { refused, refusedUntilMs, emptyUntilMs, contendedUntilMs } = this.#known;
    const refusedMs = need >= refused ? refusedUntilMs - nowMs : 0;
    if (need > 1) return Math.max(0, refusedMs);
    const emptyMs = Math.max(refusedMs, emptyUntilMs - nowMs);
    if (emptyMs > 0 || nowMs >= contendedUntilMs) return Math.max(0, emptyMs);
    return this.#sent === undefined ? this.#sendableMs(nowMs) - nowMs : this.#intervalMs;
  }

  #checkOwn(calls: number, nowMs: number): RateCheck {
    this.#contact = nextContact(this.#contact, this.#lost('overdue', nowMs, nowMs));
    const { bucket } = this.#contact;
    if (bucket === undefined) return ASK; // it has one from here on
    refill(bucket, nowMs);
    const waitMs = shortMs(bucket, calls);
    return waitMs === 0 ? ALONE : { kind: 'short', waitMs };
  }

  #lost(kind: 'missed' | 'overdue', sinceMs: number, nowMs: number) {
    return { kind, sinceMs, nowMs, rate: this.#ownRate(), isKnown: this.#known.isReply };
  }

  #ownRate() {
    const { share } = this.#known;
    return { perMs: perMsOf(this.#plan.rps * share), burst: Math.max(1, this.#plan.burst * share) };
  }

  /** Taken from the own bucket and not yet reported. */
  get spentAlone(): number {
    return isByOwnBucket(this.#contact) ? this.#contact.spent : 0;
  }

  /** Takes what the last check found. */
  spend(calls: number, from: RateCheck): void {
    const contact = this.#contact;
    if (from.kind === 'alone' && isByOwnBucket(contact)) {
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
    if (nowMs < this.#known.expiresMs) this.#returned = Math.min(this.#plan.burst, this.#returned + calls);
  }

  /** The account's tokens as far as this process knows, for the RateLimit fields. */
  tokensKnown(nowMs: number): number {
    const { rps, burst } = this.#plan;
    const { atMs, remaining } = this.#known;
    const refilled = Math.max(0, nowMs - atMs) * (rps / 1_000);
    return Math.min(burst, this.held(nowMs) + remaining + refilled);
  }

  /** Tokens to hold: what will be spent until the reply to the next message but one. */
  #target(nowMs: number, aheadMs: number): number {
    const { rps, burst } = this.#plan;
    const demand = this.demand.at(nowMs);
    // Tokens held for nothing are missing in other nodes.
    if (demand * this.#intervalMs < AHEAD_MIN * 1_000 || this.#isQuiet(nowMs)) return 0;
    const cap = Math.max(1, Math.floor((burst - (rps * this.#intervalMs) / 1_000) / this.#known.nodes));
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
      (held <= low && target > held && nowMs >= this.#known.emptyUntilMs) ||
      (held > 0 && (this.#known.expiresMs - nowMs <= RENEW_MS || this.#isQuiet(nowMs))) ||
      (isByOwnBucket(this.#contact) && nowMs - this.demand.lastMs < IDLE_MS);
    if (isDue) return this.#sendableMs(nowMs) <= nowMs ? 'now' : 'soon';
    return held > 0 || target > held ? 'soon' : 'never';
  }

  /** The message to send. It returns what is held above what it wants, which may not be spent from here on. */
  report(nowMs: number, aheadMs: number): RateReport {
    const { rps, burst } = this.#plan;
    const { isReply, atMs: heardMs } = this.#known;
    const { spentAlone } = this;
    const aloneMs = isByOwnBucket(this.#contact) ? nowMs - this.#contact.sinceMs : 0;
    // After more than the life of a lease alone, nothing is wanted until the reply tells which nodes are back.
    const target = aloneMs > RATE_LIFE_MS ? 0 : this.#target(nowMs, aheadMs);
    const needed = this.waitingMost;
    const wanted = Math.max(0, target + this.waiting - needed);
    if (this.held(nowMs) > wanted) this.granted = Math.min(this.granted, this.spent + wanted);
    const unheardMs = Math.min(aloneMs, nowMs - heardMs);
    const recovering = spentAlone > 0 && unheardMs > (1_000 * burst) / rps + RECOVERING_MS;
    const alone = isReply || recovering ? spentAlone : 0;
    // What this process had spent before it forgot the account, the first reply tells.
    const spent = isReply ? this.spent : 0;
    this.#sent = { atMs: nowMs, spent, alone, wanted, needed };
    this.isStarved = false;
    if (needed > 1) this.#batchMs = nowMs + BATCH_GAP_MS;
    this.#pace.note(this.#gapMs(nowMs), nowMs);
    const weight = Math.max(1, Math.ceil(this.demand.at(nowMs)));
    return { rps, burst, spent: isReply ? spent + alone : 0, wanted, needed, weight, recovering };
  }

  /** Takes in the reply. Without one it is unknown whether the message arrived, and the process goes on alone. */
  hear(grant: RateGrant | undefined, nowMs: number): void {
    const sent = this.#sent;
    if (sent === undefined) return;
    this.#sent = undefined;
    const before = this.#contact;
    if (grant === undefined)
      return void (this.#contact = nextContact(before, this.#lost('missed', sent.atMs, nowMs)));
    const areAll = grant.nodes >= this.#known.nodes;
    const replied = {
      kind: 'replied',
      nowMs,
      lastMs: this.#known.atMs,
      areAll,
      reported: sent.alone,
    } as const;
    this.#contact = nextContact(before, replied);
    this.spent += grant.spent - sent.spent;
    // What was spent alone while this reply was on its way is reported with the next message.
    if (isByOwnBucket(before) && !isByOwnBucket(this.#contact)) this.spent += before.spent - sent.alone;
    this.granted = grant.granted;
    this.#immediate = grant.immediate;
    this.#known = this.#knownBy(grant, sent, areAll, nowMs);
  }

  #knownBy(grant: RateGrant, sent: SentReport, areAll: boolean, nowMs: number): Known {
    const { granted, spent, immediate, lifeMs, waitMs, remaining, weights } = grant;
    const { rps } = this.#plan;
    const isRefused = sent.needed > granted - spent + immediate;
    // Nodes do not compete over a bucket that is low while they want less than the rate, as after an outage.
    const isContended = granted - spent < sent.wanted && weights >= rps;
    const isLong = isLongHeard(this.#contact, nowMs);
    const nodes = areAll || isLong ? Math.max(1, grant.nodes) : this.#known.nodes;
    const demand = Math.max(1, this.demand.at(nowMs)) + Math.max(0, rps - weights) / nodes;
    return {
      atMs: nowMs,
      isReply: true,
      remaining,
      expiresMs: sent.atMs + lifeMs,
      emptyUntilMs: remaining < 1 ? nowMs + Math.min(waitMs, this.#refillMs(1 - remaining)) : 0,
      contendedUntilMs: isContended ? nowMs + 2 * this.#intervalMs : 0,
      refused: isRefused ? sent.needed : 0,
      refusedUntilMs: isRefused ? nowMs + waitMs : 0,
      nodes,
      share: isLong ? Math.min(1, demand / Math.max(1, weights, rps)) : this.#known.share,
    };
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

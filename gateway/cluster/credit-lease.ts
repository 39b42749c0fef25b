import type { Spending } from '../limits/journal.ts';
import { Demand, type Due, Pace } from './lease-pace.ts';
import type { CreditGrant, CreditReport } from './messages.ts';

/**
 * The answer to a price. `out`: no live node has so many credits. `later`: others return theirs within `LATER_MS`, or
 * too many requests wait. `ask`: memory cannot tell. `unavailable`: it cannot be known now.
 */
export type CreditCheck = 'enough' | 'out' | 'later' | 'ask' | 'unavailable';

export const LATER_MS = 1_000;
/** How long a grant shows what a shortage means. */
const PROOF_MS = 250;
const STALE = Number.NEGATIVE_INFINITY;
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

/** The last word of the authority on the account. `atMs` is `STALE` once it says nothing any more of a shortage. */
type CreditContact =
  | Readonly<{ kind: 'new'; grant: undefined }>
  | Readonly<{ kind: 'heard'; grant: CreditGrant; atMs: number }>
  /** A report could not be made, or had no reply; `grant` is of before. */
  | Readonly<{ kind: 'missed'; grant: CreditGrant | undefined; atMs: number }>;

/**
 * One account's credits in this process. Instants are of the monotonic clock. The counters are the journal's.
 *
 * ```mermaid
 * stateDiagram-v2
 *   [*] --> new
 *   new --> heard: granted
 *   new --> missed: no report, or no reply
 *   heard --> missed: no report, or no reply
 *   missed --> heard: granted
 * ```
 *
 * `heard` alone tells what a shortage means, and for `PROOF_MS`; `missed` says for a second that credits cannot be known. Within any
 * of them a message is under way from `report` to `hear`, and the allowance is spent without asking.
 */
export class CreditLease {
  /** Credits that requests wait for. */
  waiting = 0;
  /** Credits that may be charged without asking: 0 until the authority was heard, then its grant less what was charged since. */
  allowance = 0;
  readonly #spending: Spending;
  /** Credits ever given to the account. */
  #total: number;
  readonly #demand: Demand;
  readonly #pace = new Pace();
  /** The dearest request lately. */
  #dearest = 0;
  #contact: CreditContact = { kind: 'new', grant: undefined };
  /** The message under way: the counters that it reported, and when. */
  #sent: Readonly<Spending & { atMs: number }> | undefined;
  /** The counters that the authority has last confirmed. */
  #confirmed: Readonly<Spending> | undefined;

  constructor(spending: Spending, total: number, nowMs: number) {
    this.#spending = spending;
    this.#total = total;
    this.#demand = new Demand(nowMs);
  }

  setTotal(total: number): void {
    if (total !== this.#total) this.#outdate(); // it was about another allowance
    this.#total = total;
  }

  /** Counts the offer of a request; once, however often it is looked at. */
  offer(credits: number, nowMs: number): void {
    this.#demand.offer(credits, nowMs);
    this.#dearest = Math.max(this.#dearest, credits);
  }

  /** Decides whether a price can be charged; takes nothing. Only a grant about this very shortage shows that none are left. */
  check(credits: number, nowMs: number, mayWait: boolean, storeOut: boolean): CreditCheck {
    if (this.allowance >= credits) return 'enough';
    const [contact, sent] = [this.#contact, this.#sent];
    if (storeOut || (contact.kind === 'missed' && nowMs - contact.atMs < REFRESH_MS)) return 'unavailable';
    const isLearning = contact.grant?.learning === true;
    if (contact.kind === 'heard' && nowMs - contact.atMs < PROOF_MS) {
      if (isLearning) return 'unavailable';
      if (this.withinReach < credits) return 'out';
      if (contact.grant.available <= 0) return 'later';
    }
    if (mayWait) return 'ask';
    // A store that replies to others in time is not away: this request's turn has not come.
    const isSlow = sent !== undefined && nowMs - sent.atMs >= SLOW_MS;
    return contact.kind === 'heard' && !isSlow && !isLearning ? 'later' : 'unavailable';
  }

  /** Credits that the last grant left to this node and to those that live. */
  get withinReach(): number {
    const { available = 0, heldByOthers = 0 } = this.#contact.grant ?? {};
    return available + heldByOthers + this.allowance;
  }

  /** The caller appends it to the journal. */
  spend(credits: number): void {
    this.allowance -= credits;
    this.#spending.charged += credits;
  }

  /** Gives credits back, but not their charge, which was reported. The caller appends it to the journal. */
  refund(credits: number): void {
    this.allowance += credits;
    this.#spending.refunded += credits;
  }

  /** Credits that are not known to be spent; `others` is what other nodes are known to have spent. */
  unspent(others: ReadonlyMap<string, Spending>): number {
    let spent = this.#spending.charged - this.#spending.refunded;
    for (const { charged, refunded } of others.values()) spent += charged - refunded;
    return this.#total - spent;
  }

  /** Credits that each node had taken by the last grant, with those it held. */
  get taken(): CreditGrant['taken'] | undefined {
    return this.#contact.grant?.taken;
  }

  /** Reports again, at once, what the authority has confirmed: it may be lost. */
  unconfirm(): void {
    this.#confirmed = undefined;
    this.#outdate();
  }

  #outdate(): void {
    if (this.#contact.kind === 'heard') this.#contact = { ...this.#contact, atMs: STALE };
  }

  due(nowMs: number): Due {
    const contact = this.#contact;
    if (this.#sent !== undefined) return 'soon';
    const wanted = this.#wanted(nowMs);
    const sinceMs = nowMs - (contact.kind === 'heard' ? contact.atMs : STALE);
    const isDue =
      this.waiting > 0 ||
      contact.kind === 'missed' ||
      (this.#isToReturn() && sinceMs >= REFRESH_MS) ||
      (contact.grant?.recalled === true && this.allowance > wanted) ||
      (this.allowance * 2 < wanted && sinceMs >= PROOF_MS);
    const rests = contact.kind === 'missed' && nowMs - contact.atMs < REFRESH_MS / 2;
    if (isDue && !rests) return this.#pace.nextMs(INTERVAL_MS, nowMs) <= nowMs ? 'now' : 'soon';
    return isDue || wanted > 0 || this.#isToReturn() ? 'soon' : 'never';
  }

  /** Something is held, or charged and not confirmed: an authority that lost it would give it to others. */
  #isToReturn(): boolean {
    const { charged, refunded } = this.#spending;
    return (
      this.allowance > 0 || this.#confirmed?.charged !== charged || this.#confirmed.refunded !== refunded
    );
  }

  /** Nothing is under way, and the authority has to hear something before the process ends. */
  mayRelease(): boolean {
    return this.#sent === undefined && this.#isToReturn();
  }

  /** Nothing is lost by forgetting it: the counters stay the journal's, and the authority has them. */
  mayForget(nowMs: number): boolean {
    // A message without a reply may have been heard: what it was granted must be returned.
    const isOpen = this.#sent !== undefined || this.waiting > 0 || this.#contact.kind === 'missed';
    return !isOpen && !this.#isToReturn() && this.#isIdle(nowMs);
  }

  #isIdle(nowMs: number): boolean {
    return nowMs - this.#demand.lastMs >= IDLE_MS;
  }

  /** Credits to hold. None while another process needs them, and none for an account at rest. */
  #wanted(nowMs: number): number {
    if (this.#isIdle(nowMs) || this.#contact.grant?.recalled === true) return 0;
    const most = Math.max(this.#dearest, Math.floor(this.#total * PART_MAX));
    return Math.min(most, Math.max(this.#dearest, Math.ceil(this.#demand.at(nowMs) * AHEAD_SECONDS)));
  }

  /** Reports, and puts out of reach what is held above what is wanted, at most `wantedMax`. The counters must be durable. */
  report(nowMs: number, wantedMax = Number.MAX_SAFE_INTEGER): CreditReport {
    const wanted = Math.min(wantedMax, this.#wanted(nowMs) + this.waiting);
    if (this.allowance > wanted) this.#outdate(); // what is returned is not gone
    this.allowance = Math.min(this.allowance, wanted);
    this.#sent = { ...this.#spending, atMs: nowMs };
    this.#pace.note(INTERVAL_MS, nowMs);
    const held = Math.max(0, this.allowance);
    return { total: this.#total, ...this.#spending, held, wanted, needed: this.waiting };
  }

  /** A report could not be made, or had no reply. */
  miss(nowMs: number): void {
    this.#contact = { kind: 'missed', grant: this.#contact.grant, atMs: nowMs };
  }

  /** Without a grant it is unknown whether the message was heard. */
  hear(grant: CreditGrant | undefined, nowMs: number): void {
    const sent = this.#sent;
    this.#sent = undefined;
    if (grant === undefined || sent === undefined) return this.miss(nowMs);
    const { charged, refunded } = this.#spending;
    this.allowance = grant.allowance - (charged - sent.charged - (refunded - sent.refunded));
    this.#confirmed = sent;
    this.#contact = { kind: 'heard', grant, atMs: nowMs };
  }
}

import type { Message, Reply, ScanGrant, ScanReport } from './messages.ts';
import { createScanPermits, Scans } from '../limits/scans.ts';

export type ScanLeases = ReturnType<typeof createScanLeases>;

/** The link by which a process that is not alone shares the scans of its accounts. */
type ScanLink = Readonly<{
  monotonic(): number;
  /** The revision of the accounts database at which callers and plans were last read. */
  revision(): number;
  /** The store is known not to reply. */
  isOut(): boolean;
  /** Has `collect` called soon. */
  flushSoon(): void;
}>;

/** Permits that no scan needs are returned after so long. */
const IDLE_MS = 250;
/** The pause between reports of held scans: a lease lives for five of them. */
const RENEW_MS = 1_000;
/** How long a process may hold more than its share while others wait. */
const TURN_MS = 250;
/** A process whose scans wait asks again after this. */
const ASK_MS = 50;
/** A message without a reply is sent again after this. */
const RETRY_MS = 500;

/** One account's scans in this process and their lease; instants are monotonic. Mutable: it is the account's state. */
class ScanLease extends Scans {
  /** Permits that are this process's until `expiresMs`, or while the authority does not reply. */
  held = 0;
  expiresMs = 0;
  /** The message under way. */
  sent: Readonly<{ atMs: number; kept: number }> | undefined;
  /** Since when it holds more than it needs. */
  #surplusSinceMs = 0;
  /** Until when it may hold more than its share although another process waits for permits. */
  #turnEndsMs = 0;
  #grant: ScanGrant | undefined;
  /** When the last message was replied to; `-Infinity` before the first. */
  #heardMs = Number.NEGATIVE_INFINITY;
  /** When the last message had no reply; `undefined` when it had one. */
  #failedMs: number | undefined;

  constructor(
    id: number,
    max: number,
    readonly link: ScanLink,
  ) {
    super(id, max);
  }

  /** Notes up to when all that is held was needed, and has reported what changed. */
  override change(act: () => void): void {
    if (this.held <= this.#needed) this.#surplusSinceMs = this.link.monotonic();
    act();
    if (this.isDue(this.link.monotonic())) this.link.flushSoon();
  }

  /** During an outage it goes on with what it held, and with one at least. */
  override allowed(): number {
    const nowMs = this.link.monotonic();
    if (this.link.isOut() || this.#failedMs !== undefined || this.#grant?.learning === true)
      return Math.min(this.max, Math.max(1, this.held));
    return nowMs >= this.expiresMs ? 0 : Math.min(this.max, this.held, this.#fair(nowMs));
  }

  /** Its share once others wait and it has had more for long enough; no bound before. */
  #fair(nowMs: number): number {
    return this.#grant?.contended === true && nowMs >= this.#turnEndsMs ? this.#grant.fair : Infinity;
  }

  get #needed(): number {
    return Math.max(this.running, Math.min(this.max, this.running + this.queue.length));
  }

  /** Permits that a message of this instant does not return. */
  #kept(nowMs: number): number {
    // A permit that ended may be another's by now; only what runs is reported as held.
    if (nowMs >= this.expiresMs) return this.running;
    const isContended = this.#grant?.contended === true;
    const returns = isContended || this.held > this.max || nowMs - this.#surplusSinceMs >= IDLE_MS;
    const kept = returns ? Math.min(this.held, this.#needed, this.#fair(nowMs)) : this.held;
    return Math.max(this.running, kept);
  }

  isDue(nowMs: number): boolean {
    if (this.sent !== undefined) return false;
    if (this.#failedMs !== undefined) return nowMs - this.#failedMs >= RETRY_MS;
    if (nowMs < this.expiresMs && this.#kept(nowMs) < this.held) return true;
    const unheardMs = nowMs - this.#heardMs;
    if (this.queue.length > 0 && this.running >= this.allowed()) return unheardMs >= ASK_MS;
    return (this.held > 0 || this.running > 0) && unheardMs >= RENEW_MS;
  }

  /** Is at rest also while the authority counts scans that end by themselves. */
  override isAtRest(): boolean {
    const isOpen = this.sent !== undefined || (this.held > 0 && this.link.monotonic() < this.expiresMs);
    return super.isAtRest() && !isOpen;
  }

  /** Permits that it returns, with `all` those of no scan, are out of reach from here on. */
  report(nowMs: number, all: boolean): ScanReport {
    const kept = all ? this.running : this.#kept(nowMs);
    if (nowMs < this.expiresMs) this.held = Math.min(this.held, kept);
    this.sent = { atMs: nowMs, kept };
    return { scans: this.max, kept, wanted: all ? kept : Math.max(kept, this.#needed) };
  }

  /** Without a grant it is unknown whether the message was heard. */
  hear(grant: ScanGrant | undefined, nowMs: number): void {
    const { sent } = this;
    if (sent === undefined) return;
    this.sent = undefined;
    this.#failedMs = grant === undefined ? nowMs : undefined;
    if (grant === undefined) return;
    const { held, lifeMs, contended } = grant;
    if (held > sent.kept || (contended && this.#grant?.contended !== true))
      this.#turnEndsMs = nowMs + TURN_MS;
    if (held > sent.kept) this.#surplusSinceMs = nowMs;
    this.held = held;
    this.expiresMs = sent.atMs + lifeMs;
    this.#grant = grant;
    this.#heardMs = nowMs;
  }
}

/** The permits of one of several processes: those that it holds of each account, topped up behind the requests. */
export function createScanLeases(link: ScanLink) {
  const accounts = new Map<number, ScanLease>();
  const permits = createScanPermits(accounts, (id, max) => new ScanLease(id, max, link));

  /** Up to `max` messages of the accounts that `isDue` picks; with `all` they return what no scan runs on. */
  function messages(nowMs: number, max: number, isDue: (scans: ScanLease) => boolean, all: boolean) {
    const due: Message[] = [];
    for (const [accountId, scans] of accounts) {
      if (due.length === max) break;
      if (isDue(scans)) due.push({ accountId, revision: link.revision(), scans: scans.report(nowMs, all) });
      else if (scans.isAtRest()) accounts.delete(accountId);
      else permits.serve(scans);
    }
    return due;
  }

  return {
    ...permits,
    collect: (nowMs: number, max: number) => messages(nowMs, max, (scans) => scans.isDue(nowMs), false),
    /** Up to `max` messages that return everything, for a process that ends. */
    release: (nowMs: number, max: number) =>
      messages(nowMs, max, ({ sent, held, running }) => sent === undefined && held > running, true),
    /** Takes in the reply to a collected message. */
    hear({ accountId, scans: report }: Message, reply: Reply | undefined, nowMs: number): void {
      const scans = accounts.get(accountId);
      if (report === undefined || scans === undefined) return;
      scans.hear(reply?.scans, nowMs);
      permits.serve(scans);
    },
  };
}

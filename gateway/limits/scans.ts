import type { Message, Reply, ScanGrant, ScanReport } from './messages.ts';

/**
 * How many scans an account has under way in this process. A permit is held from before the call is sent until no
 * backend works on it any more, to the last byte of its answer.
 */
export type ScanPermits = Readonly<{
  /** Whether a request with scans may be let in: to run, or to wait among a few others. */
  hasRoom(accountId: number, max: number): boolean;
  /**
   * What gives the permit back, at once when there is one; else it comes in the order of asking, or when `signal`
   * aborts, with nothing to give back.
   */
  take(accountId: number, max: number, signal: AbortSignal): (() => void) | Promise<() => void>;
}>;

/** Of the scans that an account may have under way, those that this process may. */
type ScanShare = Readonly<{
  /** How many of `max` may run here now; looked up whenever one begins or ends. */
  limitOf(accountId: number, max: number): number;
  /** Takes note how many run and how many wait, whenever that changes. */
  note(accountId: number, max: number, running: number, waiting: number): void;
  /** Takes the one listener for accounts whose limit may have changed. */
  onChange(listener: (accountId: number) => void): void;
}>;

/** The share of a process that is alone: all. */
const ALL: ScanShare = { limitOf: (_, max) => max, note: () => undefined, onChange: () => undefined };

/**
 * Scans that may wait for each that may run. Wallets ask for two token programs at once: on a plan with one scan the
 * second waits for the first instead of being refused.
 */
const WAITING_PER_PERMIT = 2;

type Account = { readonly id: number; held: number; max: number; readonly waiting: (() => void)[] };

/** The permits of this process. A batch itself prevents that one of its scans waits in vain for another. */
export function createScanPermits(share: ScanShare = ALL): ScanPermits {
  const accounts = new Map<number, Account>();
  share.onChange((accountId) => {
    const account = accounts.get(accountId);
    if (account !== undefined) serve(account);
  });

  function take(accountId: number, max: number, signal: AbortSignal): (() => void) | Promise<() => void> {
    const account = accounts.get(accountId) ?? { id: accountId, held: 0, max, waiting: [] };
    account.max = max;
    const isFree = account.waiting.length === 0 && hasPermit(account);
    if (!isFree && signal.aborted) return () => undefined;
    accounts.set(accountId, account);
    if (isFree) return hold(account);
    const { promise, resolve } = Promise.withResolvers<() => void>();
    const grant = () => {
      signal.removeEventListener('abort', leave);
      resolve(hold(account));
    };
    const leave = () => {
      account.waiting.splice(account.waiting.indexOf(grant), 1);
      note(account);
      resolve(() => undefined);
    };
    account.waiting.push(grant);
    signal.addEventListener('abort', leave, { once: true });
    note(account);
    return promise;
  }

  function hasPermit({ id, held, max }: Account): boolean {
    return held < Math.min(max, share.limitOf(id, max));
  }

  function hold(account: Account): () => void {
    let isHeld = true;
    account.held++;
    note(account);
    return () => {
      if (!isHeld) return;
      isHeld = false;
      account.held--;
      serve(account);
      note(account);
    };
  }

  /** Lets waiting scans run, in the order of asking, as far as there are permits. */
  function serve(account: Account): void {
    while (account.waiting.length > 0 && hasPermit(account)) account.waiting.shift()?.();
  }

  function note(account: Account): void {
    const { id, max, held, waiting } = account;
    if (held === 0 && waiting.length === 0) accounts.delete(id);
    share.note(id, max, held, waiting.length);
  }

  return {
    hasRoom(accountId, max) {
      const account = accounts.get(accountId);
      const used = account === undefined ? 0 : account.held + account.waiting.length;
      return used < max * (1 + WAITING_PER_PERMIT);
    },
    take,
  };
}

/**
 * One account's scans in this process. Mutable: it is the account's state. Instants are of the monotonic clock.
 * `running` and `waiting` are the permits': scans under way, and those that wait for one to end.
 */
type ScanLease = {
  /** Scans that the plan allows at once, over all processes. */
  max: number;
  running: number;
  waiting: number;
  /** Permits that are this process's until `expiresMs`, or while the authority does not reply. */
  held: number;
  expiresMs: number;
  /** Since when it holds more than it needs, and since when scans wait that hold no permit. */
  surplusSinceMs: number;
  waitingSinceMs: number;
  /** Another process waits for permits; what each has a right to, and until when this one may hold more. */
  contended: boolean;
  fair: number;
  turnEndsMs: number;
  /** When the last message was replied to; `-Infinity` before the first. */
  heardMs: number;
  /** The message under way. */
  sent: Readonly<{ atMs: number; kept: number }> | undefined;
  /** When the last message had no reply; `undefined` when it had one. */
  failedMs: number | undefined;
  /** The authority may have lost what other nodes hold: it grants nothing for now. */
  learning: boolean;
};

/** Permits that no scan needs are returned after so long. */
const IDLE_MS = 250;

/** What is held is reported again this often: a lease lives for five of them. */
const RENEW_MS = 1_000;

/** How long a process may hold more than its share while others wait. */
const TURN_MS = 250;

/** A process whose scans wait asks again after a quarter of the time that they have waited, within these bounds. */
const ASK_MIN_MS = 25;
const ASK_MAX_MS = 250;

/** A message without a reply is sent again after this. */
const RETRY_MS = 500;

function newScanLease(max: number): ScanLease {
  const counters = { running: 0, waiting: 0, held: 0, expiresMs: 0, surplusSinceMs: 0, waitingSinceMs: 0 };
  const unknown = { contended: false, turnEndsMs: 0, heardMs: Number.NEGATIVE_INFINITY, learning: false };
  return { max, fair: max, sent: undefined, failedMs: undefined, ...counters, ...unknown };
}

/** Scans that may run in this process now. During an outage it goes on with what it held, and with one at least. */
function allowed(lease: ScanLease, nowMs: number, storeOut: boolean): number {
  const { max, held, fair, expiresMs, failedMs, learning } = lease;
  if (storeOut || failedMs !== undefined || learning) return Math.min(max, Math.max(1, held));
  if (nowMs >= expiresMs) return 0;
  return Math.min(max, yields(lease, nowMs) ? Math.min(fair, held) : held);
}

/** Others wait, and it has had more than its share for long enough. */
function yields({ contended, held, fair, turnEndsMs }: ScanLease, nowMs: number): boolean {
  return contended && held > fair && nowMs >= turnEndsMs;
}

function neededBy({ running, waiting, max }: ScanLease): number {
  return Math.max(running, Math.min(max, running + waiting));
}

/** Permits that a message of this instant does not return. */
function keptBy(lease: ScanLease, nowMs: number): number {
  const { running, held, expiresMs, fair, contended, surplusSinceMs, max } = lease;
  // A permit that ended may be another's by now; only what runs is reported as held.
  if (nowMs >= expiresMs) return running;
  const needed = Math.min(held, neededBy(lease));
  if (yields(lease, nowMs)) return Math.max(running, Math.min(fair, needed));
  if (contended || held > max || nowMs - surplusSinceMs >= IDLE_MS) return Math.max(running, needed);
  return Math.max(running, held);
}

function isDue(lease: ScanLease, nowMs: number, storeOut: boolean): boolean {
  const { sent, failedMs, heardMs, held, running, waiting, waitingSinceMs } = lease;
  if (sent !== undefined) return false;
  if (failedMs !== undefined) return nowMs - failedMs >= RETRY_MS;
  if (nowMs < lease.expiresMs && keptBy(lease, nowMs) < held) return true;
  if (waiting > 0 && running >= allowed(lease, nowMs, storeOut)) {
    const gapMs = Math.min(ASK_MAX_MS, Math.max(ASK_MIN_MS, (nowMs - waitingSinceMs) / 4));
    return heardMs < waitingSinceMs || nowMs - heardMs >= gapMs;
  }
  return (held > 0 || running > 0) && nowMs - heardMs >= RENEW_MS;
}

/** Writes the account's report. Permits that it returns are out of reach from here on. */
function reportScans(lease: ScanLease, nowMs: number): ScanReport {
  const kept = keptBy(lease, nowMs);
  if (nowMs < lease.expiresMs && kept < lease.held) {
    lease.held = kept;
    lease.waitingSinceMs = nowMs; // another has its turn now; this one asks for its next soon
  }
  lease.sent = { atMs: nowMs, kept };
  return { scans: lease.max, kept, wanted: Math.max(kept, neededBy(lease)) };
}

/** Takes in the reply to the message under way; without a grant it is unknown whether the message was heard. */
function settleScans(lease: ScanLease, grant: ScanGrant | undefined, nowMs: number): void {
  const { sent } = lease;
  if (sent === undefined) return;
  lease.sent = undefined;
  lease.failedMs = grant === undefined ? nowMs : undefined;
  if (grant === undefined) return;
  const { held, lifeMs, contended, fair, learning } = grant;
  if (held > sent.kept || (contended && !lease.contended)) lease.turnEndsMs = nowMs + TURN_MS;
  if (held > sent.kept) lease.surplusSinceMs = nowMs;
  Object.assign(lease, { held, expiresMs: sent.atMs + lifeMs, contended, fair, learning, heardMs: nowMs });
}

/** The scans that this process may run of all accounts: a lease for an account with scans, and none at rest. */
export type ScanLeases = ReturnType<typeof createScanLeases>;

type ScanLeasesOptions = Readonly<{
  monotonic(): number;
  /** The revision of the accounts database at which callers and plans were last read. */
  revision(): number;
  /** The store is known not to reply. */
  isOut(): boolean;
  /** Has `collect` called soon. */
  flushSoon(): void;
}>;

export function createScanLeases({ monotonic, revision, isOut, flushSoon }: ScanLeasesOptions) {
  const leases = new Map<number, ScanLease>();
  let onChange: Parameters<ScanShare['onChange']>[0] = () => undefined;

  const share: ScanShare = {
    limitOf(accountId) {
      const lease = leases.get(accountId);
      return lease === undefined ? (isOut() ? 1 : 0) : allowed(lease, monotonic(), isOut());
    },
    note(accountId, max, running, waiting) {
      const lease = leases.get(accountId) ?? newScanLease(max);
      leases.set(accountId, lease);
      const nowMs = monotonic();
      lease.max = max;
      if (lease.held <= neededBy(lease)) lease.surplusSinceMs = nowMs;
      if (lease.waiting === 0) lease.waitingSinceMs = nowMs;
      lease.running = running;
      lease.waiting = waiting;
      if (isDue(lease, nowMs, isOut())) flushSoon();
    },
    onChange: (listener) => void (onChange = listener),
  };

  return {
    ...share,
    /** Up to `max` messages that are due. */
    collect(nowMs: number, max: number): Message[] {
      const messages: Message[] = [];
      for (const [accountId, lease] of leases) {
        if (messages.length === max) break;
        const { running, waiting, sent, held, expiresMs } = lease;
        if (isDue(lease, nowMs, isOut()))
          messages.push({ accountId, revision: revision(), scans: reportScans(lease, nowMs) });
        else if (running + waiting === 0 && sent === undefined && (held === 0 || nowMs >= expiresMs))
          leases.delete(accountId); // what the authority may still count ends by itself
        else if (waiting > 0) onChange(accountId);
      }
      return messages;
    },
    /** Takes in the reply to a collected message. */
    settle({ accountId, scans }: Message, reply: Reply | undefined, nowMs: number): void {
      const lease = leases.get(accountId);
      if (scans === undefined || lease === undefined) return;
      settleScans(lease, reply?.scans, nowMs);
      onChange(accountId);
    },
    /** Up to `max` messages that return everything, for a process that ends. */
    release(nowMs: number, max: number): Message[] {
      const messages: Message[] = [];
      for (const [accountId, lease] of leases) {
        if (messages.length === max) break;
        if (lease.sent !== undefined || lease.held === 0) continue;
        const { running: kept, max: scans } = lease;
        lease.held = 0;
        lease.sent = { atMs: nowMs, kept };
        messages.push({ accountId, revision: revision(), scans: { scans, kept, wanted: kept } });
      }
      return messages;
    },
    size: () => leases.size,
  };
}

import type { ScanAsk, ScanGrant } from './messages.ts';

/**
 * One account's scans in this process. Mutable: it is the account's state. Instants are of the monotonic clock.
 * `running` and `waiting` are the permits': scans under way, and those that wait for one to end.
 */
export type ScanLease = {
  /** Scans that the plan allows at once, over all processes. */
  max: number;
  running: number;
  waiting: number;
  /** Places that are this process's until `expiresMs`, or while the centre does not answer. */
  held: number;
  expiresMs: number;
  /** Since when it holds more than it needs, and since when scans wait that hold no place. */
  surplusSinceMs: number;
  waitingSinceMs: number;
  /** Another process waits for places; what each has a right to, and until when this one may hold more. */
  others: boolean;
  fair: number;
  turnEndsMs: number;
  /** When the last message was answered; `-Infinity` before the first. */
  toldAtMs: number;
  /** The message under way. */
  sent: Readonly<{ atMs: number; kept: number }> | undefined;
  /** When the last message failed, and since when all have; `undefined` while the centre answers. */
  failedAtMs: number | undefined;
  /** The centre may have lost who holds what: it grants nothing for now. */
  learning: boolean;
};

/** Places that nobody needs are given back after so long. */
const IDLE_MS = 250;

/** What is held is said again this often: a lease lives for five of them. */
const RENEW_MS = 1_000;

/** How long a process may hold more than its part while others wait. */
const TURN_MS = 250;

/** A process whose scans wait asks again after a quarter of the time that they have waited, within these bounds. */
const ASK_MIN_MS = 25;
const ASK_MAX_MS = 250;

/** A message that failed is said again after this. */
const RETRY_MS = 500;

export function newScanLease(max: number): ScanLease {
  return {
    max,
    running: 0,
    waiting: 0,
    held: 0,
    expiresMs: 0,
    surplusSinceMs: 0,
    waitingSinceMs: 0,
    others: false,
    fair: max,
    turnEndsMs: 0,
    toldAtMs: Number.NEGATIVE_INFINITY,
    sent: undefined,
    failedAtMs: undefined,
    learning: false,
  };
}

/** Notes how many scans run and wait. */
export function noteScans(lease: ScanLease, running: number, waiting: number, nowMs: number): void {
  const hadSurplus = lease.held > neededBy(lease);
  const hadWaiting = lease.waiting > 0;
  lease.running = running;
  lease.waiting = waiting;
  if (!hadSurplus) lease.surplusSinceMs = nowMs;
  if (!hadWaiting) lease.waitingSinceMs = nowMs;
}

/** Scans that may run in this process now. While nobody can say, it goes on with what it held, and with one at least. */
export function scansAllowed(lease: ScanLease, nowMs: number, storeOut: boolean): number {
  if (storeOut || lease.failedAtMs !== undefined || lease.learning)
    return Math.min(lease.max, Math.max(1, lease.held));
  if (nowMs >= lease.expiresMs) return 0;
  return Math.min(lease.max, yields(lease, nowMs) ? Math.min(lease.fair, lease.held) : lease.held);
}

/** Others wait, and it has had more than its part for long enough. */
function yields({ others, held, fair, turnEndsMs }: ScanLease, nowMs: number): boolean {
  return others && held > fair && nowMs >= turnEndsMs;
}

function neededBy({ running, waiting, max }: ScanLease): number {
  return Math.max(running, Math.min(max, running + waiting));
}

/** Places that a message of this instant does not give back. */
function keptBy(lease: ScanLease, nowMs: number): number {
  const { running, held, expiresMs, fair, others, surplusSinceMs, max } = lease;
  // What ended may be another's by now; only what runs is said to be held.
  if (nowMs >= expiresMs) return running;
  const needed = Math.min(held, neededBy(lease));
  if (yields(lease, nowMs)) return Math.max(running, Math.min(fair, needed));
  if (others || held > max || nowMs - surplusSinceMs >= IDLE_MS) return Math.max(running, needed);
  return Math.max(running, held);
}

/** Whether something is to be said to the centre now. */
export function hasToAsk(lease: ScanLease, nowMs: number, storeOut: boolean): boolean {
  const { sent, failedAtMs, toldAtMs, held, running, waiting, waitingSinceMs } = lease;
  if (sent !== undefined) return false;
  if (failedAtMs !== undefined) return nowMs - failedAtMs >= RETRY_MS;
  if (nowMs < lease.expiresMs && keptBy(lease, nowMs) < held) return true;
  if (waiting > 0 && running >= scansAllowed(lease, nowMs, storeOut)) {
    const gapMs = Math.min(ASK_MAX_MS, Math.max(ASK_MIN_MS, (nowMs - waitingSinceMs) / 4));
    return toldAtMs < waitingSinceMs || nowMs - toldAtMs >= gapMs;
  }
  return (held > 0 || running > 0) && nowMs - toldAtMs >= RENEW_MS;
}

/** Writes the account's message. Places that it gives back are out of reach from here on. */
export function askScans(lease: ScanLease, accountId: number, revision: number, nowMs: number): ScanAsk {
  const kept = keptBy(lease, nowMs);
  if (nowMs < lease.expiresMs && kept < lease.held) {
    lease.held = kept;
    lease.waitingSinceMs = nowMs; // another has its turn now; this one asks for its next soon
  }
  lease.sent = { atMs: nowMs, kept };
  return { accountId, revision, scans: lease.max, kept, wanted: Math.max(kept, neededBy(lease)) };
}

/** Takes in the answer to the message under way. */
export function takeScanGrant(lease: ScanLease, grant: ScanGrant, nowMs: number): void {
  const { sent } = lease;
  if (sent === undefined) return;
  lease.sent = undefined;
  const isMore = grant.held > sent.kept;
  if (isMore || (grant.others && !lease.others)) lease.turnEndsMs = nowMs + TURN_MS;
  lease.held = grant.held;
  lease.expiresMs = sent.atMs + grant.lifeMs;
  lease.others = grant.others;
  lease.fair = grant.fair;
  lease.learning = grant.learning;
  lease.toldAtMs = nowMs;
  lease.failedAtMs = undefined;
  if (isMore) lease.surplusSinceMs = nowMs;
}

/** Nobody knows whether the message under way was heard. */
export function missScanGrant(lease: ScanLease, nowMs: number): void {
  if (lease.sent === undefined) return;
  lease.sent = undefined;
  lease.failedAtMs = nowMs;
}

/** Nothing is lost by forgetting it: what the centre may still think it holds ends by itself. */
export function mayForgetScans(lease: ScanLease, nowMs: number): boolean {
  const { running, waiting, sent, held, expiresMs } = lease;
  return running === 0 && waiting === 0 && sent === undefined && (held === 0 || nowMs >= expiresMs);
}

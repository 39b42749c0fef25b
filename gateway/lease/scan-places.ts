import type { Places } from '../limits/scan-permits.ts';
import type { Answered, ScanAsk, ScanGrant } from './messages.ts';
import {
  askScans,
  hasToAsk,
  mayForgetScans,
  missScanGrant,
  newScanLease,
  noteScans,
  type ScanLease,
  scansAllowed,
  takeScanGrant,
} from './scan-lease.ts';

/** The places for scans that this process holds of all accounts: a lease an account with scans, and none at rest. */
export type ScanPlaces = Places &
  Readonly<{
    /** Up to `max` messages that are due. */
    collect(nowMs: number, max: number): readonly ScanAsk[];
    /** Takes in the answers to collected messages, in their order; a missing one is a failed one. */
    settle(asks: readonly ScanAsk[], answers: readonly Answered<ScanGrant>[], nowMs: number): void;
    /** Up to `max` messages that give everything back, for a process that ends. */
    release(nowMs: number, max: number): readonly ScanAsk[];
    readonly size: number;
  }>;

type Deps = Readonly<{
  monotonic(): number;
  /** The revision of the accounts database that callers and plans were last read at. */
  revision(): number;
  /** The store is known not to answer. */
  isOut(): boolean;
  /** Has `collect` called soon. */
  kick(): void;
}>;

export function createScanPlaces({ monotonic, revision, isOut, kick }: Deps): ScanPlaces {
  const leases = new Map<number, ScanLease>();
  let onChange: Parameters<Places['onChange']>[0] = () => undefined;

  function limitOf(accountId: number): number {
    const lease = leases.get(accountId);
    return lease === undefined ? (isOut() ? 1 : 0) : scansAllowed(lease, monotonic(), isOut());
  }

  function note(accountId: number, max: number, running: number, waiting: number): void {
    const lease = leases.get(accountId) ?? newScanLease(max);
    leases.set(accountId, lease);
    lease.max = max;
    const nowMs = monotonic();
    noteScans(lease, running, waiting, nowMs);
    if (hasToAsk(lease, nowMs, isOut())) kick();
  }

  function collect(nowMs: number, max: number): readonly ScanAsk[] {
    const asks: ScanAsk[] = [];
    for (const [accountId, lease] of leases) {
      if (asks.length === max) break;
      if (hasToAsk(lease, nowMs, isOut())) asks.push(askScans(lease, accountId, revision(), nowMs));
      else if (mayForgetScans(lease, nowMs)) leases.delete(accountId);
      else if (lease.waiting > 0) onChange(accountId);
    }
    return asks;
  }

  function settle(asks: readonly ScanAsk[], answers: readonly Answered<ScanGrant>[], nowMs: number): void {
    for (const [at, { accountId }] of asks.entries()) {
      const lease = leases.get(accountId);
      const answer = answers[at];
      if (lease === undefined) continue;
      if (answer?.kind === 'granted') takeScanGrant(lease, answer.grant, nowMs);
      else missScanGrant(lease, nowMs);
      onChange(accountId);
    }
  }

  function release(nowMs: number, max: number): readonly ScanAsk[] {
    const asks: ScanAsk[] = [];
    for (const [accountId, lease] of leases) {
      if (asks.length === max) break;
      if (lease.sent !== undefined || lease.held === 0) continue;
      lease.held = 0;
      lease.sent = { atMs: nowMs, kept: lease.running };
      asks.push({
        accountId,
        revision: revision(),
        scans: lease.max,
        kept: lease.running,
        wanted: lease.running,
      });
    }
    return asks;
  }

  return {
    limitOf,
    note,
    onChange: (listener) => void (onChange = listener),
    collect,
    settle,
    release,
    get size() {
      return leases.size;
    },
  };
}

import type { Clock } from '../../shared/clock.ts';
import type { Store } from '../../shared/store/open.ts';
import { createAccounts, createSharedCharging } from './accounts.ts';
import { createBucketStore } from './bucket.ts';
import { type Charging, createCharging } from './charge.ts';
import { type Journal, spentBy, spentElsewhere } from './journal.ts';
import { createLeaseSync, type LeaseSync, type StoreLink } from './lease-sync.ts';
import type { Sharing } from './node-id.ts';
import { createScanPermits, type ScanPermits } from './scans.ts';

/** Rates, credits and scans of accounts, and what keeps them going. */
export type Limits = Readonly<{
  charging: Charging;
  /** The link to the store of shared limits; `undefined`: there is none. */
  link: StoreLink | undefined;
  permits: ScanPermits;
  /** Keeps them fresh until `signal` aborts. */
  tend(signal: AbortSignal): Promise<void>;
  /** A turn of the gateway's own clock, `turn` counting from 1. */
  turn(turn: number): void;
  /** Writes what is not yet written. */
  flush(): void;
  /** Gives back what this process holds for itself alone. Nothing may be charged any more. */
  close(): Promise<void>;
}>;

/** Buckets are written once in so many turns, and so many at once: a write of 2000 takes a few milliseconds. */
const SAVE_TURNS = 4;
const SAVE_MAX = 2_000;

/** Buckets looked at in a turn, to be forgotten when they are full again; that takes about a millisecond. */
const SWEEP_MAX = 20_000;

/** The limits of a process that no other shares accounts with: arithmetic on its own memory. */
export function limitsAlone(node: string, journal: Journal, ledger: Store, clock: Clock): Limits {
  const elsewhere = spentElsewhere(ledger, node);
  const charging = createCharging(journal, clock, createBucketStore(ledger, clock), elsewhere);
  return {
    charging,
    link: undefined,
    permits: createScanPermits(),
    tend: async () => undefined,
    turn(turn) {
      if (turn % SAVE_TURNS === 0) charging.save(SAVE_MAX);
      charging.sweep(SWEEP_MAX);
    },
    flush: () => void charging.save(Infinity),
    close: async () => undefined,
  };
}

type SharedOptions = Readonly<{
  sharing: Sharing;
  journal: Journal;
  ledger: Store;
  clock: Clock;
  /** The revision of the accounts at which callers were last read. */
  revision(): number;
  /** The store has stopped replying, or replies again. */
  onStoreOut(is: boolean): void;
}>;

/** The limits of one of several processes: leases in memory, topped up from a store behind the requests. */
export function limitsShared(options: SharedOptions): Limits {
  const { sharing, journal, ledger, clock, revision, onStoreOut } = options;
  const { node, fence, share, deadNodes } = sharing;
  const accounts = createAccounts({ spendingOf: journal.spendingOf, revision, share });
  const closing = new AbortController();
  let wasOut = false;
  const store = sharing.openLeases(resync);
  const permits = createScanPermits({
    monotonic: clock.monotonic,
    revision,
    isOut: () => sync.isOut(),
    flushSoon: () => sync.flushSoon(),
  });
  const parts = { accounts, scans: permits, store, journal };
  const sync: LeaseSync = createLeaseSync({ ...parts, clock, node, fence, soon: setImmediate });

  /** Reports what a crash, or a loss of the store, may have kept it from counting. */
  function resync(): void {
    void sync.resync(spentBy(ledger, node), closing.signal);
    for (const dead of deadNodes) void sync.reportDeadNode(dead, spentBy(ledger, dead), closing.signal);
  }

  return {
    permits,
    charging: createSharedCharging(accounts, sync, journal, clock),
    link: sync,
    async tend(signal) {
      resync();
      await sync.run(signal);
    },
    turn() {
      if (sync.isOut() !== wasOut) onStoreOut((wasOut = sync.isOut()));
    },
    flush: () => undefined,
    async close() {
      await sync.release();
      closing.abort();
      await store.close();
    },
  };
}

import type { Clock } from '../../shared/clock.ts';
import type { Store } from '../../shared/store/open.ts';
import { createLeases } from '../lease/leases.ts';
import type { LeaseStore } from '../lease/messages.ts';
import { createPump } from '../lease/pump.ts';
import { createScanPlaces } from '../lease/scan-places.ts';
import { createSharedCharging } from '../lease/shared-charging.ts';
import type { StoreLink } from '../metrics.ts';
import type { NodeIdentity } from '../lease/store/node-identity.ts';
import { createBucketStore } from './bucket-store.ts';
import { type Charging, createCharging } from './charge.ts';
import { speakFor, spentBy, spentElsewhere } from './former-nodes.ts';
import type { Journal } from './journal.ts';
import { createScanPermits, type ScanPermits } from './scan-permits.ts';

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

/** What a process shares accounts with. */
export type Sharing = Readonly<{
  node: NodeIdentity;
  /** Opens the centre; `onLoss` is told when it may have lost what it knew. */
  openCentre(onLoss: () => void): LeaseStore;
  /** The part of an account's rate that this process may let in alone when it was never told one. */
  share: number;
  /** Nodes of this host that do not run: nobody but this process speaks for what they spent. */
  formers: readonly string[];
}>;

type SharedDeps = Readonly<{
  sharing: Sharing;
  journal: Journal;
  ledger: Store;
  clock: Clock;
  /** The revision of the accounts that callers were last read at. */
  revision(): number;
  /** The store has stopped answering, or answers again. */
  onStoreOut(is: boolean): void;
}>;

/** The limits of one of several processes: leases in memory, topped up from a centre behind the requests. */
export function limitsShared(deps: SharedDeps): Limits {
  const { sharing, journal, ledger, clock, revision, onStoreOut } = deps;
  const { node, share, formers } = sharing;
  const { spendingOf } = journal;
  const leases = createLeases({ spendingOf, revision, share });
  const over = new AbortController();
  let out = false;
  const store = sharing.openCentre(tellAll);
  const { id, fence } = node;
  const scans = createScanPlaces({
    monotonic: clock.monotonic,
    revision,
    isOut: () => pump.isOut(),
    kick: () => pump.kick(),
  });
  const pump = createPump({ leases, scans, store, journal, clock, node: id, fence, soon: setImmediate });

  /** What a crash, or the loss of the centre, may have kept it from knowing. */
  function tellAll(): void {
    void pump.tellAgain(spentBy(ledger, id), over.signal);
    void speakFor(formers, { ledger, store, clock, signal: over.signal });
  }

  return {
    permits: createScanPermits(scans),
    charging: createSharedCharging({ leases, pump, journal, clock }),
    link: pump,
    async tend(signal) {
      tellAll();
      await pump.run(signal);
    },
    turn() {
      if (pump.isOut() !== out) onStoreOut((out = pump.isOut()));
    },
    flush: () => undefined,
    async close() {
      await pump.release();
      over.abort();
      await store.close();
    },
  };
}

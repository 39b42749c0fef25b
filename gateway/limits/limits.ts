import type { Clock } from '../../shared/clock.ts';
import type { Store } from '../../shared/store/open.ts';
import { type CallPermits, createCallPermits } from './calls.ts';
import { type Charging, createCharging } from './charge.ts';
import type { Journal } from './journal.ts';
import { createScanPermits, type ScanPermits, Scans } from './scans.ts';

/** Rates, credits, calls and scans of accounts, and what keeps them going. */
export type Limits = Readonly<{
  charging: Charging;
  /** Each process counts its own. */
  permits: CallPermits;
  scans: ScanPermits;
  tend(signal: AbortSignal): Promise<void>;
  /** A turn of the gateway's own clock, `turn` counting from 1. */
  turn?(turn: number): void;
  /** Writes what is not yet written, and gives back what this process holds. Nothing may be charged any more. */
  close(): Promise<void>;
}>;

/** Buckets are written once in so many turns, and so many at once: a write of 2000 takes a few milliseconds. */
const SAVE_TURNS = 4;
const SAVE_MAX = 2_000;
/** Buckets looked at in a turn, to be forgotten when they are full again; that takes about a millisecond. */
const SWEEP_MAX = 20_000;

/** The limits of a process that no other shares accounts with: arithmetic on its own memory. */
export function limitsAlone(journal: Journal, ledger: Store, clock: Clock): Limits {
  const charging = createCharging(journal, ledger, clock);
  return {
    charging,
    permits: createCallPermits(),
    scans: createScanPermits(new Map(), (id, max) => new Scans(id, max)),
    tend: async () => undefined,
    turn(turn) {
      if (turn % SAVE_TURNS === 0) charging.save(SAVE_MAX);
      charging.sweep(SWEEP_MAX);
    },
    close: async () => void charging.save(Infinity),
  };
}

import type { Clock } from '../../shared/clock.ts';
import type { Commitment } from '../backend/view.ts';

/** The highest slot that each account has been shown, by commitment, so that it is never shown an older chain. */
export type Seen = Readonly<{
  /** 0: none, or none lately. */
  highest(accountId: number, commitment: Commitment): number;
  note(accountId: number, commitment: Commitment, slot: number): void;
}>;

/** A slot is forgotten one to two of these after it was shown: by then every node of the pool has passed it. */
const KEPT_MS = 60_000;

type Slots = Record<Commitment, number>;
type Generation = Map<number, Slots>;

/**
 * Bounded by the accounts active within two minutes: two generations, the older one dropped whole. A slot belongs to the
 * generation that it was shown in, so that one that was a lie is gone soon, however active its account is.
 */
export function createSeen(clock: Clock): Seen {
  let young: Generation = new Map();
  let old: Generation = new Map();
  let dueMs = clock.monotonic() + KEPT_MS;

  function turn(): void {
    const nowMs = clock.monotonic();
    if (nowMs < dueMs) return;
    old = nowMs >= dueMs + KEPT_MS ? new Map() : young;
    young = new Map();
    dueMs = nowMs + KEPT_MS;
  }

  return {
    highest(accountId, commitment) {
      turn();
      return Math.max(young.get(accountId)?.[commitment] ?? 0, old.get(accountId)?.[commitment] ?? 0);
    },
    note(accountId, commitment, slot) {
      turn();
      const slots = young.get(accountId) ?? { processed: 0, confirmed: 0, finalized: 0 };
      slots[commitment] = Math.max(slots[commitment], slot);
      young.set(accountId, slots);
    },
  };
}

import type { Clock } from '../../shared/clock.ts';
import type { Commitment } from '../backend/view.ts';

/** The highest slot that each account has been shown, by commitment, so that it is never shown an older chain. */
export type Seen = Readonly<{
  /** 0: none, or none lately. */
  highest(accountId: number, commitment: Commitment): number;
  note(accountId: number, commitment: Commitment, slot: number): void;
}>;

/** What an account saw is forgotten after one to two of these: by then every node of the pool has passed it. */
const KEPT_MS = 60_000;

type Slots = Record<Commitment, number>;

/** Bounded by the accounts active within two minutes: two generations, the older one dropped whole. */
export function createSeen(clock: Clock): Seen {
  let young = new Map<number, Slots>();
  let old = new Map<number, Slots>();
  let dueMs = clock.monotonic() + KEPT_MS;

  function slotsOf(accountId: number): Slots | undefined {
    const nowMs = clock.monotonic();
    if (nowMs >= dueMs) {
      old = nowMs >= dueMs + KEPT_MS ? new Map() : young;
      young = new Map();
      dueMs = nowMs + KEPT_MS;
    }
    return young.get(accountId) ?? old.get(accountId);
  }

  return {
    highest: (accountId, commitment) => slotsOf(accountId)?.[commitment] ?? 0,
    note(accountId, commitment, slot) {
      const slots = slotsOf(accountId) ?? { processed: 0, confirmed: 0, finalized: 0 };
      if (slot > slots[commitment]) slots[commitment] = slot;
      young.set(accountId, slots);
    },
  };
}

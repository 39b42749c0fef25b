import type { Backend } from '../backend/backend.ts';
import { isLiveNode } from '../backend/live-node.ts';
import { inOrder } from './order.ts';
import { createSeen } from './seen.ts';
import { createWatch, type WatchOptions } from './watch.ts';
import type { Wish } from './wish.ts';

/** Slots that no backend has, both ends included. */
export type Gap = Readonly<{ from: number; to: number }>;

/** All backends together: which one a call should ask, and how they stand. */
export type Pool = Readonly<{
  /** The slot that the answer of this call must reach: what it asks for, or what its account has been shown; 0: any. */
  slotMin(wish: Wish, accountId: number): number;
  /** `able`, the best first. */
  inOrder(able: readonly Backend[], wish: Wish, accountId: number, slotMin: number): readonly Backend[];
  /** An answer told the slot it was read at. */
  learn(backend: Backend, wish: Wish, accountId: number, slot: number): void;
  /** Looks at every backend once, for a second at most. Never rejects. */
  look(signal: AbortSignal): Promise<void>;
  /** The lowest block that any of them has, long-term storage included; `undefined` until all with history told. */
  floor(): number | undefined;
  /** Whether one that serves accounts is well. */
  isHealthy(): boolean;
}>;

export type PoolOptions = WatchOptions &
  Readonly<{
    /** The lowest slots that no backend has; `undefined`: there are none, or not enough is known. */
    historyGap(backends: readonly Backend[]): Gap | undefined;
    /** Told when slots are found that no backend has, or when there are none any more. */
    onGap(gap: Gap | undefined): void;
  }>;

export function createPool({ backends, clock, historyGap, onGap, ...options }: PoolOptions): Pool {
  const seen = createSeen(clock);
  const watch = createWatch({ backends, clock, ...options });
  let hasGap = false;

  async function look(signal: AbortSignal): Promise<void> {
    await watch.look(signal);
    const gap = historyGap(backends);
    if ((gap !== undefined) !== hasGap) onGap(gap);
    hasGap = gap !== undefined;
  }

  function floor(): number | undefined {
    const holders = backends.filter(
      ({ config, standing }) => config.lanes.includes('archive') && standing.out !== 'of another chain',
    );
    const reaches = holders.map((backend) => watch.extentOf(backend)?.reach);
    const known = reaches.filter((reach) => reach !== undefined);
    return known.length === 0 || known.length < reaches.length ? undefined : Math.min(...known);
  }

  return {
    slotMin({ commitment, slotMin }, accountId) {
      if (backends.length < 2) return 0;
      return commitment === undefined ? slotMin : Math.max(slotMin, seen.highest(accountId, commitment));
    },
    inOrder: (able, wish, accountId, slotMin) =>
      inOrder(able.filter(isOfThisChain), accountId, wish, slotMin, clock),
    learn({ view }, { commitment }, accountId, slot) {
      if (commitment === undefined || slot === 0 || backends.length < 2) return;
      view.tip[commitment] = Math.max(view.tip[commitment], slot);
      seen.note(accountId, commitment, slot);
    },
    look,
    floor,
    isHealthy: () =>
      backends.some(({ config, standing }) => isLiveNode(config) && standing.out === undefined),
  };
}

/** Nobody is answered from another chain, and least of all sent to it, however bad the others are. */
function isOfThisChain({ standing }: Backend): boolean {
  return standing.out !== 'of another chain';
}

/** Why a backend is left out while others are well. */
export type Why = 'unreachable' | 'unhealthy' | 'lagging' | 'stalled' | 'of another chain';

/** How a backend stands after its last probes. */
export type Standing = Readonly<{
  /** `undefined`: it takes part. */
  out: Why | undefined;
  /** What an unreachable one did instead of answering, for the operator; empty otherwise. */
  reason: string;
  /** Slots behind the pool's reference; 0 when not known. */
  lagSlots: number;
  /** Probes in a row that spoke against its present state: bad ones while it takes part, good ones while it is out. */
  against: number;
  /** When it came back, on the monotonic clock; -Infinity: it was never out. */
  backAtMs: number;
  /** Its newest slot, and when that last grew. */
  tip: number;
  movedAtMs: number;
}>;

export const WELL: Standing = {
  out: undefined,
  reason: '',
  lagSlots: 0,
  against: 0,
  backAtMs: -Infinity,
  tip: 0,
  movedAtMs: -Infinity,
};

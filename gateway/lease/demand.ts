/** How much was offered lately, a second. Mutable: it is part of an account's state. */
export type Demand = { perSecond: number; atMs: number };

/** Older offers fade with this time constant. */
const FADE_MS = 1_000;

/** Counts an offer, whether it is refused or not: a starved process must still grow its share. */
export function offer(demand: Demand, amount: number, nowMs: number): void {
  demand.perSecond = demandAt(demand, nowMs) + amount * (1_000 / FADE_MS);
  demand.atMs = nowMs;
}

/** What was offered a second, up to `nowMs`. */
export function demandAt({ perSecond, atMs }: Demand, nowMs: number): number {
  return perSecond * Math.exp(Math.min(0, atMs - nowMs) / FADE_MS);
}

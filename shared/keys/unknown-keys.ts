import type { Clock } from '../clock.ts';

/** Hashes that no key has, so that a guesser's repeats cost no look-up. */
export type UnknownKeys = Readonly<{
  has(name: string): boolean;
  add(name: string): void;
  clear(): void;
}>;

/** How many are remembered; the one asked for longest ago goes first. About 150 bytes each. */
const NAMES_MAX = 50_000;
/** A key made by a way that moves no revision is found after this at the latest. */
const KEPT_MS = 10_000;

export function createUnknownKeys(clock: Clock): UnknownKeys {
  const untilMs = new Map<string, number>();

  function has(name: string): boolean {
    const until = untilMs.get(name);
    if (until === undefined) return false;
    untilMs.delete(name);
    if (clock.monotonic() >= until) return false;
    untilMs.set(name, until); // now the last to go
    return true;
  }

  function add(name: string): void {
    if (untilMs.size >= NAMES_MAX)
      for (const oldest of untilMs.keys()) {
        untilMs.delete(oldest);
        break;
      }
    untilMs.set(name, clock.monotonic() + KEPT_MS);
  }

  return { has, add, clear: () => untilMs.clear() };
}

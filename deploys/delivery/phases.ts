import type { Clock } from '../../shared/clock.ts';

/**
 * How long each part of one attempt took, in milliseconds; `undefined` for a part that was never finished. `dnsMs` ends
 * with a vetted address, `connectMs` with TCP, `tlsMs` with a verified peer, `firstByteMs` with the status line; each
 * is counted from the end of the part before it. `totalMs` is the whole attempt, the answer's body included.
 */
export type Phases = Readonly<{
  dnsMs: number | undefined;
  connectMs: number | undefined;
  tlsMs: number | undefined;
  firstByteMs: number | undefined;
  totalMs: number;
}>;

/** A part of an attempt that ends by itself. */
export type Phase = Exclude<keyof Phases, 'totalMs'>;

/** The parts in their order. */
const ORDER = ['dnsMs', 'connectMs', 'tlsMs', 'firstByteMs'] as const satisfies readonly Phase[];

/** Takes the times of one attempt, from now on. */
export type Stopwatch = Readonly<{
  /** The phase that is going on has ended. */
  ended(phase: Phase): void;
  /** The first phase that has not ended; `undefined` after the status line. */
  current(): Phase | undefined;
  phases(): Phases;
}>;

export function createStopwatch(clock: Pick<Clock, 'monotonic'>): Stopwatch {
  const startMs = clock.monotonic();
  const took = new Map<Phase, number>();
  let lastMs = startMs;
  return {
    ended(phase) {
      const nowMs = clock.monotonic();
      took.set(phase, nowMs - lastMs);
      lastMs = nowMs;
    },
    current: () => ORDER.find((phase) => !took.has(phase)),
    phases: () => ({
      dnsMs: took.get('dnsMs'),
      connectMs: took.get('connectMs'),
      tlsMs: took.get('tlsMs'),
      firstByteMs: took.get('firstByteMs'),
      totalMs: clock.monotonic() - startMs,
    }),
  };
}

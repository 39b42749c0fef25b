import type { MethodClass } from '../route/methods.ts';

/** How long a backend may take to begin its answer. A scan begins only when it has been made (Agave `rpc.rs`). */
const BY_CLASS_MS: Readonly<Record<MethodClass, number>> = {
  light: 30_000,
  meta: 30_000,
  write: 30_000,
  asset: 60_000,
  history: 60_000,
  scan: 240_000,
};

/**
 * The deadline of a call's first byte, and of the last one of an answer that is held until it is whole; it ends before
 * the listener's own idle limit, so that the caller gets a 503.
 */
export function deadlineMsOf(kind: MethodClass, idleMs: number): number {
  return Math.min(BY_CLASS_MS[kind], 0.9 * idleMs);
}

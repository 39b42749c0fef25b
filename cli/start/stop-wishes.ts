import type { Clock } from '../../shared/clock.ts';

/** The user's wish to end: `asked` once for draining, `insisted` for ending at once. */
export type StopWishes = Readonly<{ asked: Promise<void>; insisted: Promise<void>; note(): void }>;

/** A runner such as npm or `bun run` passes Ctrl-C on beside the terminal; copies within this time are one wish. */
const ONE_WISH_MS = 500;

/** Collects signals through `note`. */
export function createStopWishes(clock: Clock): StopWishes {
  const asked = Promise.withResolvers<void>();
  const insisted = Promise.withResolvers<void>();
  let firstMs: number | undefined;

  function note() {
    const nowMs = clock.monotonic();
    firstMs ??= nowMs;
    asked.resolve();
    if (nowMs - firstMs > ONE_WISH_MS) insisted.resolve();
  }

  return { asked: asked.promise, insisted: insisted.promise, note };
}

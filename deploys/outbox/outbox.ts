import type { Store } from '../../shared/store/open.ts';
import { type Claim, createClaim } from './claim.ts';
import { createFinish, type Recorded, type Result } from './finish.ts';
import { createReap } from './reap.ts';
import { createRelease, type Release } from './release.ts';

/**
 * The queue as the worker needs it. Instants are Unix milliseconds. Every function is one IMMEDIATE transaction and
 * throws when it cannot be done; then nothing of it was.
 */
export type Outbox = Readonly<{
  release: Release['release'];
  awaited: Release['awaited'];
  claim(nowMs: number, underWay: Iterable<Claim>): readonly Claim[];
  /** In the order of the results. */
  finish(results: readonly Result[]): readonly Recorded[];
  reap(nowMs: number, mine: ReadonlySet<string>): number;
  /** Makes everything that waits due so much earlier. */
  advanceDue(byMs: number): void;
  /** When the next delivery falls due after `nowMs`. */
  nextDueAtMs(nowMs: number): number | undefined;
  /** How many are due, and since when the oldest of them is. */
  backlog(nowMs: number): Readonly<{ due: number; oldestDueAtMs: number | undefined }>;
}>;

/** The queue over `store`, whose tables hold everything it knows. `random` gives n uniform bytes. */
export function createOutbox(store: Store, random: (bytes: number) => Uint8Array): Outbox {
  const { release, awaited } = createRelease(store);
  const finish = createFinish(store);
  const finishAll = store.transaction((results: readonly Result[]) =>
    results.map((result) => unlessUnwritable(() => finish(result))),
  );
  const reap = store.transaction(createReap(store, finish));
  const claim = createClaim(store, random);
  const advanceDue = store.prepare(`
    UPDATE deliveries SET next_attempt_at_ms = next_attempt_at_ms - ?1, resend_at_ms = resend_at_ms - ?1
    WHERE due_at_ms IS NOT NULL`);
  const isDue = store.prepare('SELECT 1 FROM deliveries WHERE due_at_ms <= ? LIMIT 1');
  const next = store.prepare<{ at: number | null }, [number]>(
    'SELECT min(due_at_ms) AS at FROM deliveries WHERE due_at_ms > ?',
  );
  const backlog = store.prepare<{ due: number; at: number | null }, [number]>(
    'SELECT count(*) AS due, min(due_at_ms) AS at FROM deliveries WHERE due_at_ms <= ?',
  );
  return {
    release,
    awaited,
    // Nothing due is the ordinary case, and no reason to keep others from writing.
    claim: (nowMs, underWay) => (isDue.get(nowMs) === null ? [] : claim(nowMs, underWay)),
    finish: (results) => finishAll.immediate(results),
    reap: (nowMs, mine) => reap.immediate(nowMs, mine),
    advanceDue: (byMs) => void advanceDue.run(byMs),
    nextDueAtMs: (nowMs) => next.get(nowMs)?.at ?? undefined,
    backlog: (nowMs) => {
      const row = backlog.get(nowMs);
      return { due: row?.due ?? 0, oldestDueAtMs: row?.at ?? undefined };
    },
  };
}

/** A single result that the schema refuses must not hold up all others; a disk or a lock that fails fails them all. */
function unlessUnwritable(finish: () => Recorded): Recorded {
  try {
    return finish();
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (/^SQLITE_(CONSTRAINT|MISMATCH|TOOBIG)/.test(code)) return 'unwritable';
    throw error;
  }
}

import type { Clock } from '../../shared/clock.ts';
import type { Migrations, Store } from '../../shared/store/open.ts';

/** `burst` tokens at most, `rps` more every second. */
export type Rate = Readonly<{ burst: number; rps: number }>;

/**
 * Tokens at an instant of the monotonic clock; a fraction, and below zero while a large batch is paid off. Mutable, and
 * without a part of its own: every call looks at one.
 */
export type Bucket = { tokens: number; atMs: number; rps: number; burst: number };

/** The ledger's table of buckets that were not full: tokens at a Unix instant in milliseconds, and the rate that refills them. */
export const BUCKET_MIGRATIONS: Migrations = {
  'ledger-4-buckets': `
    CREATE TABLE buckets (
      account_id INTEGER PRIMARY KEY,
      tokens REAL NOT NULL,
      at_ms INTEGER NOT NULL,
      rps REAL NOT NULL,
      burst INTEGER NOT NULL
    ) STRICT;
  `,
};

/** Rounding of many small refills; far below one call. */
const EPSILON = 1e-6;

export function fullBucket({ rps, burst }: Rate, nowMs: number): Bucket {
  return { tokens: burst, atMs: nowMs, rps, burst };
}

/** Brings the bucket to `nowMs`. A clock that steps back mints nothing; a burst that shrank takes the surplus away. */
export function refill(bucket: Bucket, nowMs: number): void {
  const elapsedMs = nowMs - bucket.atMs;
  if (elapsedMs > 0) {
    bucket.tokens += (elapsedMs / 1_000) * bucket.rps;
    bucket.atMs = nowMs;
  }
  if (bucket.tokens > bucket.burst) bucket.tokens = bucket.burst;
}

/**
 * Milliseconds after which a refilled bucket has what `calls` need if nothing else is taken; 0: it has it now. A batch
 * needs `min(calls, burst)` tokens and takes one for each call, so that one larger than the burst can pass and is then
 * paid off (DESIGN 3.3).
 */
export function shortMs({ tokens, burst, rps }: Bucket, calls: number): number {
  const need = Math.min(calls, burst);
  return tokens + EPSILON >= need ? 0 : ((need - tokens) / rps) * 1_000;
}

/** Whole seconds after which a call that was refused for `waitMs` succeeds; at least 1 (RFC 9110 10.2.3). */
export function retryAfterSeconds(waitMs: number): number {
  return Math.max(1, Math.ceil(waitMs / 1_000));
}

/** Keeps the buckets of a gateway that is alone through a restart: ending it must not refill a burst. */
export type BucketStore = ReturnType<typeof createBucketStore>;

/** Buckets by account; `undefined` for one that is full. */
type Changes = Iterable<readonly [accountId: number, bucket: Bucket | undefined]>;

type Row = { account_id: number; tokens: number; at_ms: number; rps: number; burst: number };

export function createBucketStore(ledger: Store, clock: Clock) {
  const read = ledger.prepare<Row, []>('SELECT * FROM buckets');
  const write = ledger.prepare<null, [number, number, number, number, number]>(
    'INSERT OR REPLACE INTO buckets (account_id, tokens, at_ms, rps, burst) VALUES (?, ?, ?, ?, ?)',
  );
  const remove = ledger.prepare<null, [number]>('DELETE FROM buckets WHERE account_id = ?');
  const removeFull = ledger.prepare<null, [number]>(
    'DELETE FROM buckets WHERE tokens + (? - at_ms) / 1000.0 * rps >= burst',
  );

  const saveAll = ledger.transaction((buckets: Changes) => {
    const [nowMs, unixMs] = [clock.monotonic(), Math.floor(clock.now())];
    for (const [accountId, bucket] of buckets) {
      if (bucket !== undefined) refill(bucket, nowMs);
      if (bucket === undefined || bucket.tokens >= bucket.burst) remove.run(accountId);
      else write.run(accountId, bucket.tokens, unixMs, bucket.rps, bucket.burst);
    }
  });

  return {
    /** Writes buckets in one transaction, full ones as nothing; `false`: it was not done, and may be done again. */
    save(buckets: Changes): boolean {
      try {
        saveAll.immediate(buckets);
        return true;
      } catch {
        return false; // the disk is full or the file is held; charges that need it are refused themselves
      }
    },
    /** The buckets that are not full yet, by account, with the time that went by; none when the ledger cannot be read. */
    load(): Map<number, Bucket> {
      const buckets = new Map<number, Bucket>();
      const [nowMs, unixMs] = [clock.monotonic(), clock.now()];
      try {
        removeFull.run(unixMs);
        for (const { account_id: id, tokens, at_ms: savedMs, rps, burst } of read.all()) {
          // A wall clock that was set back meanwhile refills nothing.
          buckets.set(id, { tokens, atMs: nowMs - Math.max(0, unixMs - savedMs), rps, burst });
        }
      } catch {
        // Buckets that cannot be read are whole bursts.
      }
      return buckets;
    },
  };
}

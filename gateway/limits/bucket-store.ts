import type { Clock } from '../../shared/clock.ts';
import type { Migrations, Store } from '../../shared/store/open.ts';
import { type Bucket, type Rate, refilled } from './bucket.ts';

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

/** One account's bucket and the rate it was filled at. */
export type Held = Readonly<{ bucket: Bucket; rate: Rate }>;

/** Keeps the buckets of a gateway that is alone through a restart: ending it must not refill a burst. */
export type BucketStore = Readonly<{
  /** The buckets that are not full yet, by account, with the time that went by; none when the ledger cannot be read. */
  load(): Map<number, Held>;
  /** Writes buckets in one transaction, full ones as nothing; `false`: it was not done, and may be done again. */
  save(buckets: Iterable<readonly [accountId: number, held: Held | undefined]>): boolean;
}>;

type Row = { account_id: number; tokens: number; at_ms: number; rps: number; burst: number };

export function createBucketStore(ledger: Store, clock: Clock): BucketStore {
  const read = ledger.prepare<Row, []>('SELECT * FROM buckets');
  const write = ledger.prepare<null, [number, number, number, number, number]>(`
    INSERT INTO buckets (account_id, tokens, at_ms, rps, burst) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (account_id) DO UPDATE SET
      tokens = excluded.tokens, at_ms = excluded.at_ms, rps = excluded.rps, burst = excluded.burst`);
  const remove = ledger.prepare<null, [number]>('DELETE FROM buckets WHERE account_id = ?');
  const removeFull = ledger.prepare<null, [number]>(
    'DELETE FROM buckets WHERE tokens + (? - at_ms) / 1000.0 * rps >= burst',
  );

  const saveAll = ledger.transaction((buckets: Parameters<BucketStore['save']>[0]) => {
    const [nowMs, atMs] = [clock.monotonic(), Math.floor(clock.now())];
    for (const [accountId, held] of buckets) {
      const tokens = held === undefined ? Infinity : refilled(held.bucket, held.rate, nowMs).tokens;
      if (held === undefined || tokens >= held.rate.burst) remove.run(accountId);
      else write.run(accountId, tokens, atMs, held.rate.rps, held.rate.burst);
    }
  });

  function save(buckets: Parameters<BucketStore['save']>[0]): boolean {
    try {
      saveAll.immediate(buckets);
      return true;
    } catch {
      return false; // the disk is full or the file is held; charges that need it say so themselves
    }
  }

  function load(): Map<number, Held> {
    const held = new Map<number, Held>();
    const [nowMs, unixMs] = [clock.monotonic(), clock.now()];
    try {
      removeFull.run(unixMs);
      for (const { account_id: id, tokens, at_ms: savedMs, rps, burst } of read.all()) {
        // A wall clock that was set back meanwhile refills nothing.
        const atMs = nowMs - Math.max(0, unixMs - savedMs);
        held.set(id, { bucket: { tokens, atMs }, rate: { rps, burst } });
      }
    } catch {
      return held;
    }
    return held;
  }

  return { load, save };
}

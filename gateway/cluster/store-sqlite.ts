import type { Migrations, Store } from '../../shared/store/open.ts';
import { codeOf, fileReason, isBusy } from '../../shared/store/private.ts';
import { answer } from './authority.ts';
import {
  type LeaseStore,
  type Message,
  type Reply,
  type Sender,
  STORE_DEADLINE_MS,
  type StoreFailure,
  type StoreOptions,
} from './messages.ts';

/**
 * The ledger's tables about the processes of its host.
 *
 * `nodes`: the gateway processes of this data directory, each with the number of its latest start.
 *
 * `leases`: where the leases of these processes meet while there is no Redis. One state per account, which only the
 * authority reads, worth keeping until `until_ms`; for ever when there is none.
 */
export const LEASE_MIGRATIONS: Migrations = {
  'ledger-2-nodes': `
    CREATE TABLE nodes (
      node TEXT PRIMARY KEY,
      fence INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
  `,
  'ledger-3-leases': `
    CREATE TABLE leases (
      account_id INTEGER PRIMARY KEY,
      state TEXT NOT NULL,
      until_ms INTEGER
    ) STRICT;
    CREATE INDEX leases_by_end ON leases (until_ms) WHERE until_ms IS NOT NULL;
  `,
};

/** Messages in one transaction: it holds the event loop and the other processes for about a millisecond. */
const MESSAGES_MAX = 50;

/** A busy ledger is tried again after one millisecond, then two, and never later than this. */
const RETRY_MAX_MS = 5;

/** States that equal none are dropped: so often at most, and so many at once. */
const SWEEP_MS = 10_000;
const SWEEP_ROWS_MAX = 500;

/** Leases in the ledger for one host's processes, in IMMEDIATE transactions; `ledger` is its own connection. */
export function createSqliteStore(ledger: Store, { clock, onReleased }: StoreOptions): LeaseStore {
  // A wait for another process inside SQLite stops every request of this one; the store waits outside of it.
  ledger.run('PRAGMA busy_timeout = 0');
  const read = ledger.prepare<{ state: string }, [number]>('SELECT state FROM leases WHERE account_id = ?');
  const write = ledger.prepare<null, [number, string, number | null]>(`
    INSERT INTO leases (account_id, state, until_ms) VALUES (?, ?, ?)
    ON CONFLICT (account_id) DO UPDATE SET state = excluded.state, until_ms = excluded.until_ms`);
  const dropEnded = ledger.prepare<null, [number, number]>(`
    DELETE FROM leases WHERE account_id IN
      (SELECT account_id FROM leases WHERE until_ms < ? ORDER BY until_ms LIMIT ?)`);
  const closing = new AbortController();
  let sweptMs = Number.NEGATIVE_INFINITY;
  let failure: StoreFailure | undefined;

  const answerAll = ledger.transaction((sender: Sender, messages: readonly Message[]) => {
    // Wall time is the one clock that all processes of a host share. The authority bears its steps.
    const nowMs = Math.floor(clock.now());
    const moment = { nowMs, sinceLossMs: Infinity, answeredSeq: undefined };
    if (clock.monotonic() - sweptMs >= SWEEP_MS) {
      sweptMs = clock.monotonic();
      dropEnded.run(nowMs, SWEEP_ROWS_MAX);
    }
    return messages.map((message) => {
      const { accountId } = message;
      const before = read.get(accountId)?.state;
      const { blob, lifeMs, reply, released } = answer(before, sender, message, moment);
      if (blob !== before) write.run(accountId, blob, lifeMs === undefined ? null : nowMs + lifeMs);
      return { accountId, reply, released };
    });
  });

  /** Answers in turns of a few messages each; what cannot be answered until the deadline has no reply. */
  async function answerInTurns(sender: Sender, messages: readonly Message[]) {
    const untilMs = clock.monotonic() + STORE_DEADLINE_MS;
    const replies: (Reply | undefined)[] = [];
    for (let from = 0; from < messages.length; from += MESSAGES_MAX) {
      const some = messages.slice(from, from + MESSAGES_MAX);
      const answers = await untilFree(() => answerAll.immediate(sender, some), untilMs);
      for (const { accountId, released } of answers ?? [])
        for (const each of released) onReleased(accountId, each);
      for (const at of some.keys()) replies.push(answers?.[at]?.reply);
      // Requests are served between two transactions.
      if (from + MESSAGES_MAX < messages.length) await clock.sleep(0, closing.signal);
    }
    return replies;
  }

  /** Tries until no other process holds the ledger; `undefined` when it cannot be done, for whatever reason. */
  async function untilFree<T>(act: () => T, untilMs: number): Promise<T | undefined> {
    for (let pauseMs = 1; ; pauseMs = Math.min(RETRY_MAX_MS, pauseMs + 1)) {
      if (closing.signal.aborted || clock.monotonic() > untilMs) return undefined;
      try {
        return act();
      } catch (error) {
        failure = { how: codeOf(error) === 'SQLITE_FULL' ? 'full' : 'away', error: fileReason(error) };
        if (!isBusy(error) || clock.monotonic() + pauseMs > untilMs) return undefined;
      }
      await clock.sleep(pauseMs, closing.signal);
    }
  }

  return {
    sync: answerInTurns,
    failure: () => failure,
    async close() {
      closing.abort();
      ledger.close();
    },
  };
}

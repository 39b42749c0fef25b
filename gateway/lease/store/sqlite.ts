import type { Clock } from '../../../shared/clock.ts';
import type { Store } from '../../../shared/store/open.ts';
import { type Released, topUpCredits } from '../centre-credit.ts';
import { rateStateLifeMs, type RateState, topUpRate } from '../centre-rate.ts';
import { SCAN_STATE_LIFE_MS, type ScanState, topUpScans } from '../centre-scans.ts';
import type {
  Answered,
  CreditAsk,
  CreditGrant,
  LeaseStore,
  RateAsk,
  RateGrant,
  ScanAsk,
  ScanGrant,
  Speaker,
} from '../messages.ts';
import { createCreditRows } from './credit-rows.ts';
import { createPassingRows } from './passing-rows.ts';

export type SqliteStoreOptions = Readonly<{
  /** A connection to the ledger of this store alone: it is told not to wait for other processes. */
  ledger: Store;
  clock: Clock;
  /** After it a call is `failed`; nothing of it is written later. In milliseconds. */
  deadlineMs?: number;
  /** Credits that a node, silent for a day, held and that are the account's again. They stand in `credit_releases` too. */
  onReleased(accountId: number, released: Released): void;
}>;

/** How long a call waits for other processes when nothing else is said, in milliseconds. */
export const SQLITE_DEADLINE_MS = 100;

/** Asks in one transaction: it holds the event loop and the other processes for about a millisecond. */
const ASKS_MAX = 50;

/** A busy ledger is tried again after one millisecond, then two, and never later than this. */
const RETRY_MAX_MS = 5;

/** Dropping rows that say nothing: so often at most, and so many at once. */
const SWEEP_MS = 10_000;
const SWEEP_ROWS_MAX = 500;

/** The centre in the ledger, for the gateway processes of one host: every message is one IMMEDIATE transaction. */
export function createSqliteStore(options: SqliteStoreOptions): LeaseStore {
  const { ledger, clock, deadlineMs = SQLITE_DEADLINE_MS, onReleased } = options;
  // A wait inside SQLite stops every request of the process; this store waits outside of it.
  ledger.run('PRAGMA busy_timeout = 0');
  const rates = createPassingRows<RateState>(ledger, 'rates', rateStateLifeMs);
  const scans = createPassingRows<ScanState>(ledger, 'scans', () => SCAN_STATE_LIFE_MS);
  const credits = createCreditRows(ledger);
  const closing = new AbortController();
  const calls = new Set<Promise<unknown>>();
  let sweptMs = Number.NEGATIVE_INFINITY;

  // Milliseconds of wall time: the one clock that all processes of a host share. The centre bears its steps.
  const nowMs = () => Math.floor(clock.now());

  const tellRates = ledger.transaction((speaker: Speaker, asks: readonly RateAsk[]): RateGrant[] => {
    const atMs = nowMs();
    sweep(atMs);
    return asks.map((ask) => {
      const before = rates.read(ask.accountId);
      const { state, grant } = topUpRate(before, speaker, ask, atMs);
      if (state !== before) rates.write(ask.accountId, state);
      return grant;
    });
  });

  const tellCredits = ledger.transaction((speaker: Speaker, asks: readonly CreditAsk[]) => {
    const atMs = nowMs();
    return asks.map((ask) => {
      const before = credits.read(ask.accountId);
      const { state, grant, released } = topUpCredits(before, speaker, ask, atMs, false);
      credits.write(ask.accountId, before, state);
      for (const each of released) credits.noteReleased(ask.accountId, each, atMs);
      return { grant, released, accountId: ask.accountId };
    });
  });

  const tellScans = ledger.transaction((speaker: Speaker, asks: readonly ScanAsk[]): ScanGrant[] => {
    const atMs = nowMs();
    sweep(atMs);
    return asks.map((ask) => {
      const before = scans.read(ask.accountId);
      const { state, grant } = topUpScans(before, speaker, ask, atMs, false);
      if (state !== before) scans.write(ask.accountId, state);
      return grant;
    });
  });

  function sweep(atMs: number): void {
    if (clock.monotonic() - sweptMs < SWEEP_MS) return;
    sweptMs = clock.monotonic();
    rates.sweep(atMs, SWEEP_ROWS_MAX);
    scans.sweep(atMs, SWEEP_ROWS_MAX);
  }

  /** Runs `tell` in turns over a few asks each; what cannot be told until the deadline is `failed`. */
  async function all<Ask, Grant>(
    asks: readonly Ask[],
    tell: (some: readonly Ask[]) => readonly Grant[],
  ): Promise<readonly Answered<Grant>[]> {
    const untilMs = clock.monotonic() + deadlineMs;
    const answers: Answered<Grant>[] = [];
    for (let from = 0; from < asks.length; from += ASKS_MAX) {
      const some = asks.slice(from, from + ASKS_MAX);
      const grants = await patiently(() => tell(some), untilMs);
      for (let at = 0; at < some.length; at++) {
        const grant = grants?.[at];
        answers.push(grant === undefined ? { kind: 'failed' } : { kind: 'granted', grant });
      }
      // Others' requests come between two transactions.
      if (from + ASKS_MAX < asks.length) await clock.sleep(0, closing.signal);
    }
    return answers;
  }

  /** Tries until another process no longer holds the ledger; `undefined` when it cannot be, for whatever reason. */
  async function patiently<T>(tell: () => T, untilMs: number): Promise<T | undefined> {
    for (let pauseMs = 1; ; pauseMs = Math.min(RETRY_MAX_MS, pauseMs + 1)) {
      if (closing.signal.aborted || clock.monotonic() > untilMs) return undefined;
      try {
        return tell();
      } catch (error) {
        if (!isBusy(error) || clock.monotonic() + pauseMs > untilMs) return undefined;
      }
      await clock.sleep(pauseMs, closing.signal);
    }
  }

  function tracked<T>(call: Promise<T>): Promise<T> {
    calls.add(call);
    void call.finally(() => calls.delete(call));
    return call;
  }

  return {
    rates: (speaker, asks) => tracked(all(asks, (some) => tellRates.immediate(speaker, some))),
    scans: (speaker, asks) => tracked(all(asks, (some) => tellScans.immediate(speaker, some))),
    credits: (speaker, asks) =>
      tracked(
        all<CreditAsk, CreditGrant>(asks, (some) => {
          const told = tellCredits.immediate(speaker, some);
          for (const { accountId, released } of told)
            for (const each of released) onReleased(accountId, each);
          return told.map(({ grant }) => grant);
        }),
      ),
    async close() {
      closing.abort();
      await Promise.all(calls);
    },
  };
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'code' in error && String(error.code).startsWith('SQLITE_BUSY');
}

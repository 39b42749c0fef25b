import { type CreditState, topUpCredits } from '../../gateway/lease/centre-credit.ts';
import { type RateState, topUpRate } from '../../gateway/lease/centre-rate.ts';
import { type ScanState, topUpScans } from '../../gateway/lease/centre-scans.ts';
import type { Answered, LeaseStore } from '../../gateway/lease/messages.ts';
import type { Clock } from '../../shared/clock.ts';

/** What the store does with calls from now on. */
export type Conduct = 'answers' | 'fails' | 'is silent';

const DEADLINE_MS = 100;

/** A lease store in memory for several nodes of one test. It answers after `wayMs`, fails at once, or at its deadline. */
export function createLeaseCentre(clock: Clock, wayMs = 1) {
  const rates = new Map<number, RateState>();
  const credits = new Map<number, CreditState>();
  const scans = new Map<number, ScanState>();
  const never = new AbortController().signal;
  const counts = { calls: 0, closed: false };
  let conduct: Conduct = 'answers';

  async function answered<Ask, Grant>(
    asks: readonly Ask[],
    execute: (ask: Ask) => Grant,
  ): Promise<readonly Answered<Grant>[]> {
    counts.calls++;
    const failed = asks.map(() => ({ kind: 'failed' }) as const);
    if (conduct === 'fails') return failed;
    if (conduct === 'is silent') {
      await clock.sleep(DEADLINE_MS, never);
      return failed;
    }
    await clock.sleep(wayMs, never);
    return asks.map((ask) => ({ kind: 'granted', grant: execute(ask) }));
  }

  const store: LeaseStore = {
    rates: (speaker, asks) =>
      answered(asks, (ask) => {
        const { state, grant } = topUpRate(rates.get(ask.accountId), speaker, ask, Math.floor(clock.now()));
        rates.set(ask.accountId, state);
        return grant;
      }),
    credits: (speaker, asks) =>
      answered(asks, (ask) => {
        const nowMs = Math.floor(clock.now());
        const { state, grant } = topUpCredits(credits.get(ask.accountId), speaker, ask, nowMs, false);
        credits.set(ask.accountId, state);
        return grant;
      }),
    scans: (speaker, asks) =>
      answered(asks, (ask) => {
        const nowMs = Math.floor(clock.now());
        const { state, grant } = topUpScans(scans.get(ask.accountId), speaker, ask, nowMs, false);
        scans.set(ask.accountId, state);
        return grant;
      }),
    async close() {
      counts.closed = true;
    },
  };

  return {
    store,
    counts,
    conduct: (next: Conduct) => void (conduct = next),
    creditsOf: (accountId: number) => credits.get(accountId),
  };
}

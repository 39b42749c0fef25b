import type { Clock } from '../../shared/clock.ts';
import type { Plan } from '../../shared/config/plans.ts';
import type { Caller } from '../../shared/keys/source.ts';
import { type Charge, type Charging, durable, type Price } from '../limits/charge.ts';
import type { Journal } from '../limits/journal.ts';
import { type Account, isOverdrawn } from './lease-reports.ts';
import { type Asks, CREDITS_WAIT_MS, type Decision, type Leases, RATE_WAIT_MS } from './leases.ts';

/** Notes that a request waits for one of the limits; `wake` is called with the next reply. Gives what ends the wait. */
export function joinWaiters(account: Account, { calls, credits }: Price, asks: Asks, wake: () => void) {
  const { rate, credit, plan } = account;
  const need = asks === 'ask-rate' ? Math.min(calls, plan.burst) : 0;
  const price = asks === 'ask-credits' ? credits : 0;
  rate.waiting += need;
  rate.waitingMost = Math.max(rate.waitingMost, need);
  if (credit !== undefined) credit.waiting += price;
  account.waiters ??= new Set();
  account.waiters.add(wake);
  return () => {
    account.waiters?.delete(wake);
    rate.waiting -= need;
    rate.waitingMost = Math.min(rate.waitingMost, rate.waiting);
    if (credit !== undefined) credit.waiting -= price;
  };
}

/** Charges an account that other processes charge too: from leases in memory, which `sync` keeps filled. */
export function createSharedCharging(
  accounts: Leases,
  sync: Readonly<{ flushSoon(): void; isOut(): boolean }>,
  journal: Journal,
  clock: Clock,
): Charging {
  function charge(caller: Caller, plan: Plan, price: Price): Charge | Promise<Charge> {
    const nowMs = clock.monotonic();
    const account = accounts.accountOf(caller, plan, nowMs, price);
    if (account === undefined) return { kind: 'credits-unavailable' };
    const decision = accounts.decide(account, price, nowMs, 0, sync.isOut());
    return typeof decision === 'string'
      ? waited(account, price, nowMs, decision)
      : finished(account, price, decision, nowMs);
  }

  function finished(account: Account, price: Price, charge: Charge, nowMs: number): Charge | Promise<Charge> {
    if (charge.kind !== 'charged') return charge;
    if (isOverdrawn(account, nowMs)) sync.flushSoon();
    if (account.plan.credits === undefined || price.credits === 0) return charge;
    price.usageHook?.take();
    return durable(journal, account.id, price, charge, () =>
      accounts.giveBack(account, price, clock.monotonic()),
    );
  }

  /** Decides again after every reply for the account, until memory can tell or the wait budget ends. */
  async function waited(account: Account, price: Price, sinceMs: number, first: Decision): Promise<Charge> {
    for (let [decision, nowMs] = [first, sinceMs]; ;) {
      if (typeof decision !== 'string') return finished(account, price, decision, nowMs);
      const untilMs = sinceMs + (decision === 'ask-rate' ? RATE_WAIT_MS : CREDITS_WAIT_MS);
      const ended = new AbortController();
      const { promise: reply, resolve: wake } = Promise.withResolvers<void>();
      const leave = joinWaiters(account, price, decision, wake);
      sync.flushSoon();
      await Promise.race([reply, clock.sleep(Math.max(1, untilMs - nowMs), ended.signal)]);
      ended.abort();
      leave();
      nowMs = clock.monotonic();
      decision = accounts.decide(account, price, nowMs, nowMs - sinceMs, sync.isOut());
    }
  }

  function refund(caller: Caller, plan: Plan, price: Price): void {
    // The caller is that of the call's begin: credits may have been added since.
    const nowMs = clock.monotonic();
    const account = accounts.accountOf(caller, plan, nowMs);
    if (account === undefined) return;
    accounts.giveBack(account, price, nowMs);
    if (plan.credits !== undefined && price.credits > 0) void journal.append(account.id);
  }

  return {
    charge,
    outOfCredits: (caller, plan, credits) => accounts.outOfCredits(caller, plan, credits, clock.monotonic()),
    refund,
    creditsLeft: (accountId, plan) =>
      plan.credits === undefined ? undefined : accounts.creditsLeft(accountId),
  };
}

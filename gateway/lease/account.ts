import type { Plan } from '../../shared/config/plans.ts';
import type { RateState } from '../limits/charge.ts';
import type { Price } from '../limits/price.ts';
import type { CreditLease } from './credit-lease.ts';
import { newRateLease, type RateLease, type RatePlan, tokensKnown } from './rate-lease.ts';

/** One account in this process. Mutable: it is the account's state. `credit`: only on a plan with credits. */
export type Account = {
  readonly id: number;
  plan: Plan;
  readonly rate: RateLease;
  credit: CreditLease | undefined;
  /** Called, once, when the next answer for the account is there or is missed. */
  waiters: Set<() => void> | undefined;
};

/** An account that was not met. `share`: the part of its rate that this process may let in alone. */
export function newAccount(id: number, plan: Plan, share: number, nowMs: number): Account {
  const rate = newRateLease(ratePlanOf(plan), share, nowMs);
  return { id, plan, rate, credit: undefined, waiters: undefined };
}

/** Notes that a request waits for limits of the account; `wake` is called with the next answer. Gives what ends the wait. */
export function join(
  account: Account,
  { calls, credits }: Price,
  waits: Readonly<{ rate: boolean; credits: boolean }>,
  wake: () => void,
): () => void {
  const { rate, credit } = account;
  const need = waits.rate ? Math.min(calls, rate.plan.burst) : 0;
  const price = waits.credits ? credits : 0;
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

/** The debt of a plan with credits is 0: a trial's rate is never exceeded. */
function ratePlanOf({ rps, burst, credits }: Plan): RatePlan {
  return { rps, burst, debtMax: credits === undefined ? Math.max(1, Math.ceil(0.02 * rps)) : 0 };
}

/** Puts the account on another plan: what memory knew of the centre was about the old one. */
export function changePlan(account: Account, plan: Plan): void {
  account.plan = plan;
  const { rate } = account;
  rate.plan = ratePlanOf(plan);
  rate.emptyUntilMs = rate.contendedUntilMs = rate.refusedUntilMs = 0;
  rate.local = undefined;
}

/** The state of the account's rate as far as this process knows. */
export function stateOf({ plan, rate }: Account, nowMs: number): RateState {
  return { plan, tokens: tokensKnown(rate, nowMs) };
}

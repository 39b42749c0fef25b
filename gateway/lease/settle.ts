import { missCreditGrant, takeCreditGrant } from './credit-lease.ts';
import type { Account } from './account.ts';
import type { Collected } from './leases.ts';
import type { Answered, CreditGrant, RateGrant } from './messages.ts';
import { missGrant, takeGrant } from './rate-top-up.ts';

/** Takes in the answers to rate messages, in their order; a missing one is a failed one. Wakes who waited. */
export function settleRates(
  sent: Collected['rates'],
  answers: readonly Answered<RateGrant>[],
  nowMs: number,
): void {
  for (const [i, { account }] of sent.entries()) {
    const answer = answers[i];
    if (answer?.kind === 'granted') takeGrant(account.rate, answer.grant, nowMs);
    else missGrant(account.rate);
    wake(account);
  }
}

/** Takes in the answers to credit messages, as `settleRates` does. */
export function settleCredits(
  sent: Collected['credits'],
  answers: readonly Answered<CreditGrant>[],
  nowMs: number,
): void {
  for (const [i, { account, credit }] of sent.entries()) {
    const answer = answers[i];
    if (answer?.kind === 'granted') takeCreditGrant(credit, answer.grant, nowMs);
    else missCreditGrant(credit, nowMs);
    wake(account);
  }
}

function wake(account: Account): void {
  const { waiters } = account;
  account.waiters = undefined;
  for (const waiter of waiters ?? []) waiter();
}

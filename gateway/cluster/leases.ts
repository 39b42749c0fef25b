import type { Plan } from '../../shared/config/plans.ts';
import type { Caller } from '../../shared/keys/source.ts';
import { type Charge, type Price, StatedCredits } from '../limits/charge.ts';
import type { Journal, Spending } from '../limits/journal.ts';
import { CreditLease, type CreditCheck, LATER_MS } from './credit-lease.ts';
import { type Account, createReports } from './lease-reports.ts';
import { RateLease, type RatePlan } from './rate-lease.ts';

/** Questions that memory cannot answer, and the next reply for the account may. */
export type Asks = 'ask-rate' | 'ask-credits';
export type Decision = Charge | Asks;

export type Leases = ReturnType<typeof createLeases>;

/** How long a request may wait for the authority when memory cannot tell: for its rate, and for the last credits of a trial. */
export const RATE_WAIT_MS = 50;
export const CREDITS_WAIT_MS = 100;

type AccountsOptions = Readonly<{
  journal: Pick<Journal, 'spentByOthers' | 'isDurable' | 'isFailing' | 'flush'> &
    Readonly<{ spendingOf(accountId: number): Spending | undefined }>;
  /** The revision of the accounts database at which callers and plans were last read. */
  revision(): number;
  /** The part of an account's rate that this process may let in alone while it does not know the others. */
  share: number;
}>;

/** Accounts in memory. Decisions are synchronous arithmetic; nothing here waits. */
export function createLeases({ journal, revision, share }: AccountsOptions) {
  const { spendingOf, spentByOthers } = journal;
  const accounts = new Map<number, Account>();
  /** Kept when an account is forgotten: its callers remember what was stated. */
  const stated = new StatedCredits();
  const { mark, ...reports } = createReports({ accounts, journal, revision });

  /** The account; `undefined` when its journal cannot be read. A price is `offered` to it once, before it is decided on. */
  function accountOf(caller: Caller, plan: Plan, nowMs: number, offered?: Price): Account | undefined {
    let account = accounts.get(caller.accountId);
    if (account === undefined) {
      const rate = new RateLease(ratePlanOf(plan), share, nowMs);
      account = { id: caller.accountId, plan, rate, credit: undefined, waiters: undefined };
      accounts.set(caller.accountId, account);
    } else if (account.plan !== plan) {
      account.plan = plan;
      account.rate.changePlan(ratePlanOf(plan));
    }
    if (plan.credits !== undefined) {
      const total = caller.creditsGranted ?? plan.credits;
      if (account.credit === undefined) {
        const spending = spendingOf(caller.accountId);
        if (spending === undefined) return undefined;
        account.credit = new CreditLease(spending, total, nowMs);
      }
      if (offered !== undefined) {
        stated.setTotal(caller.accountId, total);
        account.credit.setTotal(total);
        account.credit.offer(offered.credits, nowMs);
      }
    }
    if (offered !== undefined) account.rate.demand.offer(offered.calls, nowMs);
    return account;
  }

  /** Takes from both limits or from neither, for a request that has waited for `waitedMs`; the caller journals credits. */
  function decide(account: Account, price: Price, nowMs: number, waitedMs: number, isOut: boolean): Decision {
    const { rate, plan } = account;
    const isCrowded = mark(account);
    const from = rate.check(price.calls, nowMs, waitedMs < RATE_WAIT_MS, isOut, isCrowded);
    let waitMs = from.kind === 'short' ? from.waitMs : undefined;
    const credit = plan.credits === undefined ? undefined : account.credit;
    if (credit !== undefined && price.credits > 0) {
      // Above the rate, to wait would not help.
      const mayWait = waitMs === undefined && waitedMs < CREDITS_WAIT_MS;
      const check = credit.check(price.credits, nowMs, mayWait, isOut);
      const out = outOf(account, credit, check, price.credits, nowMs);
      if (out !== undefined) return out;
      // Tokens come last: those that are granted to a request are lost when its credits then fall short.
      if (check === 'ask') return 'ask-credits';
      if (check === 'later') waitMs ??= LATER_MS;
      if (check === 'unavailable' && waitMs === undefined) return { kind: 'credits-unavailable' };
    }
    if (waitMs !== undefined) return { kind: 'over-rate', rate: stateOf(account, nowMs), waitMs };
    if (from.kind === 'ask') return 'ask-rate';
    rate.spend(price.calls, from);
    credit?.spend(price.credits);
    return { kind: 'charged', rate: stateOf(account, nowMs) };
  }

  /** The refusal of a price that the account is known not to have the credits for. */
  function outOfCredits(caller: Caller, plan: Plan, credits: number, nowMs: number) {
    const account = accountOf(caller, plan, nowMs);
    const credit = account?.credit;
    if (credit === undefined || plan.credits === undefined || credits === 0) return undefined;
    const total = caller.creditsGranted ?? plan.credits;
    stated.setTotal(caller.accountId, total);
    credit.setTotal(total);
    return account && outOf(account, credit, credit.check(credits, nowMs, false, false), credits, nowMs);
  }

  /** The journals of this host know of the last credit before the store does. */
  function outOf(account: Account, credit: CreditLease, check: CreditCheck, credits: number, nowMs: number) {
    if (check === 'enough') return undefined;
    const others = spentByOthers(account.id);
    if (check !== 'out' && credit.unspent(others) >= credits) return undefined;
    // What a dead process holds is neither spent nor to be had.
    const left = creditsLeft(account.id, others, check === 'out' ? credit.withinReach : Infinity) ?? 0;
    return { kind: 'out-of-credits', rate: stateOf(account, nowMs), creditsLeft: left } as const;
  }

  /** The credits left that are stated, `atMost` so many; what nodes of other hosts hold may be spent. */
  function creditsLeft(accountId: number, others = spentByOthers(accountId), atMost = Infinity) {
    const own = spendingOf(accountId);
    if (own === undefined) return undefined;
    let { charged, refunded } = own;
    for (const other of others.values()) {
      charged += other.charged;
      refunded += other.refunded;
    }
    for (const [node, taken] of accounts.get(accountId)?.credit?.taken ?? []) {
      const known = others.get(node);
      if (known === undefined) charged += taken;
      else if (!known.isOnHost) charged += Math.max(0, taken - (known.charged - known.refunded));
    }
    return stated.left(accountId, charged, refunded, atMost);
  }

  /** Gives back what was taken for calls that no backend answered. The caller appends credits to the journal. */
  function giveBack({ rate, credit, plan }: Account, { calls, credits }: Price, nowMs: number): void {
    rate.giveBack(calls, nowMs);
    if (plan.credits !== undefined) credit?.refund(credits);
  }

  return {
    accountOf,
    decide,
    outOfCredits,
    creditsLeft,
    giveBack,
    ...reports,
    size: () => accounts.size,
  };
}

/** The debt of a plan with credits is 0: a trial's rate is never exceeded. */
function ratePlanOf({ rps, burst, credits }: Plan): RatePlan {
  return { rps, burst, debtMax: credits === undefined ? Math.max(1, Math.ceil(0.02 * rps)) : 0 };
}

/** The state of the account's rate as far as this process knows. */
function stateOf({ plan, rate }: Account, nowMs: number): { plan: Plan; tokens: number } {
  return { plan, tokens: rate.tokensKnown(nowMs) };
}

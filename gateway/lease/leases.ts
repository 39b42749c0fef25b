import type { Plan } from '../../shared/config/plans.ts';
import type { Caller } from '../../shared/keys/identify.ts';
import { unreachable } from '../../shared/brand.ts';
import type { Charge, RateState } from '../limits/charge.ts';
import type { Spending } from '../limits/journal.ts';
import type { Price } from '../limits/price.ts';
import {
  askCredits,
  type CreditLease,
  creditsKnown,
  forgetHeard,
  giveBackCredits,
  hasNews,
  lookAtCredits,
  mayForgetCredits,
  newCreditLease,
  offerCredits,
  takeCredits,
  wishOfCredits,
} from './credit-lease.ts';
import type { CreditAsk, RateAsk } from './messages.ts';
import {
  giveBackRate,
  lookAtRate,
  newRateLease,
  offerCalls,
  type RateLease,
  type RatePlan,
  takeRate,
  tokensKnown,
} from './rate-lease.ts';
import { askRate, mayForget, wishOf } from './rate-top-up.ts';

/** One account in this process. Mutable: it is the account's state. `credit`: only on a plan with credits. */
export type Account = {
  readonly id: number;
  plan: Plan;
  readonly rate: RateLease;
  credit: CreditLease | undefined;
  /** Called, once, when the next answer for the account is there or is missed. */
  readonly waiters: Set<() => void>;
};

/** What a request may still wait for. */
export type Patience = Readonly<{ rate: boolean; credits: boolean; storeOut: boolean }>;

export type Decision =
  /** Both limits were taken from. Credits are durable once the journal says so. */
  | { readonly kind: 'taken'; readonly charge: Extract<Charge, { kind: 'charged' }> }
  /** Nothing was taken. */
  | { readonly kind: 'refused'; readonly charge: Exclude<Charge, { kind: 'charged' }> }
  /** Memory cannot tell; the next answers for these limits of the account may. */
  | { readonly kind: 'ask'; readonly rate: boolean; readonly credits: boolean };

/** Messages to send: at most one an account and limit is under way. */
export type Collected = Readonly<{
  rates: readonly Readonly<{ account: Account; ask: RateAsk }>[];
  credits: readonly Readonly<{ account: Account; credit: CreditLease; ask: CreditAsk }>[];
}>;

/** All accounts of this process. Decisions are synchronous arithmetic on memory; nothing here waits. */
export type Leases = Readonly<{
  /** The account, known from here on. Throws when the journal cannot be read. */
  accountOf(caller: Caller, plan: Plan, nowMs: number): Account;
  /** Counts a request as offered; once, before it is decided on. */
  offer(account: Account, caller: Caller, price: Price, nowMs: number): void;
  /** Looks at both limits, and takes from both or from neither. */
  decide(account: Account, price: Price, nowMs: number, patience: Patience): Decision;
  /** Gives back what was taken for calls that nobody answered. The journal must be told of credits. */
  giveBack(account: Account, price: Price, nowMs: number): void;
  /** Up to `max` messages of each kind that are due. */
  collect(nowMs: number, aheadMs: number, max: number): Collected;
  /** Notes that a request waits for limits of the account; gives what ends that. */
  join(account: Account, price: Price, waits: Readonly<{ rate: boolean; credits: boolean }>): () => void;
  /** Has the account's counters told again, as the centre may have lost them; `false`: they are not in memory. */
  tellAgain(accountId: number): boolean;
  /** Up to `max` messages that give all credits back, for a process that ends. */
  release(nowMs: number, max: number): Collected['credits'];
  /** Looks at up to `max` accounts, in turn, and forgets those at rest. */
  forgetIdle(nowMs: number, max: number): void;
  readonly size: number;
}>;

type Deps = Readonly<{
  spendingOf(accountId: number): Spending;
  /** The revision of the accounts database that callers and plans were last read at. */
  revision(): number;
  /** The part of an account's rate that this process may let in alone when it was never told one. */
  share: number;
}>;

export function createLeases({ spendingOf, revision, share }: Deps): Leases {
  const accounts = new Map<number, Account>();
  const marked = new Set<Account>();
  let sweep = accounts.values();

  function accountOf(caller: Caller, plan: Plan, nowMs: number): Account {
    let account = accounts.get(caller.accountId);
    if (account === undefined) {
      const rate = newRateLease(ratePlanOf(plan), share, nowMs);
      account = { id: caller.accountId, plan, rate, credit: undefined, waiters: new Set() };
      accounts.set(caller.accountId, account);
    } else if (account.plan !== plan) changePlan(account, plan);
    if (plan.credits !== undefined && account.credit === undefined) {
      const total = caller.creditsGranted ?? plan.credits;
      account.credit = newCreditLease(spendingOf(caller.accountId), total, nowMs);
    }
    return account;
  }

  function offerRequest(account: Account, caller: Caller, price: Price, nowMs: number): void {
    offerCalls(account.rate, price.calls, nowMs);
    if (account.plan.credits === undefined || account.credit === undefined) return;
    offerCredits(account.credit, price.credits, caller.creditsGranted ?? account.plan.credits, nowMs);
  }

  function decide(account: Account, price: Price, nowMs: number, patience: Patience): Decision {
    const { rate, plan } = account;
    const { storeOut } = patience;
    marked.add(account);
    const calls = lookAtRate(rate, price.calls, nowMs, { mayWait: patience.rate, storeOut });
    if (calls.kind === 'short')
      return refused({ kind: 'over-rate', rate: stateOf(account, nowMs), waitMs: calls.waitMs });
    const credit = plan.credits === undefined ? undefined : account.credit;
    if (credit !== undefined && price.credits > 0) {
      const look = lookAtCredits(credit, price.credits, nowMs, { mayWait: patience.credits, storeOut });
      switch (look.kind) {
        case 'enough':
          break;
        case 'ask':
          // Tokens come last: those that are given to a request are lost when its credits then fall short.
          return { kind: 'ask', rate: false, credits: true };
        case 'out':
          return refused({ kind: 'out-of-credits', rate: stateOf(account, nowMs) });
        case 'later':
          return refused({ kind: 'over-rate', rate: stateOf(account, nowMs), waitMs: look.waitMs });
        case 'unavailable':
          return refused({ kind: 'credits-unavailable' });
        default:
          return unreachable(look);
      }
    }
    if (calls.kind === 'ask') return { kind: 'ask', rate: true, credits: false };
    takeRate(rate, price.calls, calls.from, nowMs);
    if (credit !== undefined) takeCredits(credit, price.credits);
    const creditsLeft = credit === undefined ? undefined : creditsKnown(credit);
    return { kind: 'taken', charge: { kind: 'charged', rate: stateOf(account, nowMs), creditsLeft } };
  }

  function giveBack({ rate, credit, plan }: Account, { calls, credits }: Price, nowMs: number): void {
    giveBackRate(rate, calls, nowMs);
    if (credit !== undefined && plan.credits !== undefined) giveBackCredits(credit, credits);
  }

  function collect(nowMs: number, aheadMs: number, max: number): Collected {
    const due: { -readonly [K in keyof Collected]: Collected[K][number][] } = { rates: [], credits: [] };
    for (const account of marked) {
      const { id, rate, credit } = account;
      const wish = wishOf(rate, nowMs, aheadMs);
      const wishCredits = credit === undefined ? 'nothing' : wishOfCredits(credit, nowMs);
      if (wish === 'nothing' && wishCredits === 'nothing') marked.delete(account);
      if (wish === 'now' && due.rates.length < max)
        due.rates.push({ account, ask: askRate(rate, id, revision(), nowMs, aheadMs) });
      if (wishCredits === 'now' && credit !== undefined && due.credits.length < max)
        due.credits.push({ account, credit, ask: askCredits(credit, id, revision(), nowMs) });
    }
    return due;
  }

  function tellAgain(accountId: number): boolean {
    const account = accounts.get(accountId);
    if (account?.credit === undefined) return false;
    forgetHeard(account.credit);
    marked.add(account);
    return true;
  }

  function release(nowMs: number, max: number): Collected['credits'] {
    const due: Collected['credits'][number][] = [];
    for (const account of accounts.values()) {
      const { id, credit } = account;
      if (credit === undefined || credit.sent !== undefined) continue;
      if (credit.allowance <= 0 && !hasNews(credit)) continue;
      due.push({ account, credit, ask: askCredits(credit, id, revision(), nowMs, 0) });
      if (due.length === max) break;
    }
    return due;
  }

  function forgetIdle(nowMs: number, max: number): void {
    for (let looked = 0; looked < max; looked++) {
      const next = sweep.next();
      if (next.done === true) {
        sweep = accounts.values();
        return;
      }
      const { id, rate, credit } = next.value;
      if (!mayForget(rate, nowMs) || (credit !== undefined && !mayForgetCredits(credit, nowMs))) continue;
      accounts.delete(id);
      marked.delete(next.value);
    }
  }

  return {
    accountOf,
    offer: offerRequest,
    decide,
    giveBack,
    join,
    collect,
    tellAgain,
    release,
    forgetIdle,
    get size() {
      return accounts.size;
    },
  };
}

function join(
  { rate, credit }: Account,
  { calls, credits }: Price,
  waits: Readonly<{ rate: boolean; credits: boolean }>,
): () => void {
  const need = waits.rate ? Math.min(calls, rate.plan.burst) : 0;
  const price = waits.credits ? credits : 0;
  rate.waiting += need;
  rate.waitingMost = Math.max(rate.waitingMost, need);
  if (credit !== undefined) credit.waiting += price;
  return () => {
    rate.waiting -= need;
    rate.waitingMost = Math.min(rate.waitingMost, rate.waiting);
    if (credit !== undefined) credit.waiting -= price;
  };
}

/** The debt of a plan with credits is 0: a trial's rate is never exceeded. */
function ratePlanOf({ rps, burst, credits }: Plan): RatePlan {
  return { rps, burst, debtMax: credits === undefined ? Math.max(1, Math.ceil(0.02 * rps)) : 0 };
}

/** What memory knew of the centre was about another plan. */
function changePlan(account: Account, plan: Plan): void {
  account.plan = plan;
  const { rate } = account;
  rate.plan = ratePlanOf(plan);
  rate.emptyUntilMs = rate.contendedUntilMs = rate.refusedUntilMs = 0;
  rate.local = undefined;
}

function stateOf({ plan, rate }: Account, nowMs: number): RateState {
  return { plan, tokens: tokensKnown(rate, nowMs) };
}

function refused(charge: Extract<Decision, { kind: 'refused' }>['charge']): Decision {
  return { kind: 'refused', charge };
}

import type { Clock } from '../../shared/clock.ts';
import type { Plan } from '../../shared/config/plans.ts';
import type { Caller } from '../../shared/keys/source.ts';
import { type Charge, type Charging, durable, type Price, StatedCredits } from '../limits/charge.ts';
import { CreditLease, type CreditLook, LATER_MS } from './credit-lease.ts';
import type { Journal, Spending } from '../limits/journal.ts';
import type { Message, Reply } from './messages.ts';
import { RateLease, type RatePlan } from './rate-lease.ts';

/** One account in this process. Mutable: it is the account's state. `credit`: only on a plan with credits. */
export type Account = {
  readonly id: number;
  plan: Plan;
  readonly rate: RateLease;
  credit: CreditLease | undefined;
  /** Called, once, with the next reply for the account or without one. */
  waiters: Set<() => void> | undefined;
};

/** What memory cannot tell, and the next reply for the account may. */
type Asks = 'ask-rate' | 'ask-credits';
type Decision = Charge | Asks;

export type Leases = ReturnType<typeof createLeases>;

/** Accounts that wait for their message, 500 bytes each; the calls of further ones wait for a reply. */
const MARKED_MAX = 16_384;
/** How long messages wait at most for those of other accounts: fewer calls of the store, each with more of them. */
export const COMBINE_MS = 340;
/** How long a request may wait for the authority when memory cannot tell: for its rate, and for the last credits of a trial. */
export const RATE_WAIT_MS = 50;
export const CREDITS_WAIT_MS = 100;
/** A plan of at most this rate is slow: what it spends beyond its grants is reported at once. */
const SLOW_RPS = 10;

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
  /** Those with requests since they were last looked at, and those that hold something or will want it again. */
  const marked = new Set<Account>();
  const watched = new Set<Account>();
  let sweeping = accounts.values();
  let triedMs = Number.NEGATIVE_INFINITY;

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
    marked.add(account);
    const isCrowded = marked.size > MARKED_MAX;
    const from = rate.look(price.calls, nowMs, waitedMs < RATE_WAIT_MS, isOut, isCrowded);
    let waitMs = from === 'short' ? rate.waitMs : undefined;
    const credit = plan.credits === undefined ? undefined : account.credit;
    if (credit !== undefined && price.credits > 0) {
      // Above the rate, to wait would not help.
      const mayWait = waitMs === undefined && waitedMs < CREDITS_WAIT_MS;
      const look = credit.look(price.credits, nowMs, mayWait, isOut);
      const out = outOf(account, credit, look, price.credits, nowMs);
      if (out !== undefined) return out;
      // Tokens come last: those that are granted to a request are lost when its credits then fall short.
      if (look === 'ask') return 'ask-credits';
      if (look === 'later') waitMs ??= LATER_MS;
      if (look === 'unavailable' && waitMs === undefined) return { kind: 'credits-unavailable' };
    }
    if (waitMs !== undefined) return { kind: 'over-rate', rate: stateOf(account, nowMs), waitMs };
    if (from === 'ask') return 'ask-rate';
    rate.take(price.calls, from);
    credit?.take(price.credits);
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
    return account && outOf(account, credit, credit.look(credits, nowMs, false, false), credits, nowMs);
  }

  /** The journals of this host know of the last credit before the store does. */
  function outOf(account: Account, credit: CreditLease, look: CreditLook, credits: number, nowMs: number) {
    if (look === 'enough') return undefined;
    const others = spentByOthers(account.id);
    if (look !== 'out' && credit.unspent(others) >= credits) return undefined;
    // What a dead process holds is neither spent nor to be had.
    const left = creditsLeft(account.id, others, look === 'out' ? credit.withinReach : Infinity) ?? 0;
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

  /** Up to `max` messages that are due, of all accounts with `all`; those that wait for time alone take turns. */
  function collect(nowMs: number, aheadMs: number, max: number, all: boolean): Message[] {
    const due: Message[] = [];
    for (const account of marked) {
      if (!all && !isUrgent(account, nowMs)) continue;
      if (due.length >= max) return due;
      const isWatched = gather(due, account, nowMs, aheadMs);
      if (isWatched && account.waiters !== undefined) continue;
      marked.delete(account);
      if (isWatched) watched.add(account);
    }
    let looks = all ? watched.size : 0;
    for (const account of watched) {
      if (looks-- === 0 || due.length >= max) break;
      watched.delete(account);
      if (gather(due, account, nowMs, aheadMs)) watched.add(account);
    }
    return due;
  }

  /** Adds the message that the account has to send now; gives whether it will have more without further requests. */
  function gather(due: Message[], account: Account, nowMs: number, soonMs: number): boolean {
    const { id: accountId, rate, credit } = account;
    const aheadMs = isUrgent(account, nowMs) ? soonMs : soonMs + COMBINE_MS;
    const rateDue = rate.due(nowMs, aheadMs);
    const creditDue = credit?.due(nowMs) ?? 'never';
    const credits = creditDue === 'now' && isReportable(account, nowMs) ? credit?.report(nowMs) : undefined;
    const tokens = rateDue === 'now' ? rate.report(nowMs, aheadMs) : undefined;
    if (tokens !== undefined || credits !== undefined)
      due.push({ accountId, revision: revision(), rate: tokens, credits });
    return rateDue !== 'never' || creditDue !== 'never';
  }

  /** The store must never count a charge that a crash could take from the journal: what is not durable is not reported. */
  function isReportable(account: Account, nowMs: number): boolean {
    if (journal.isDurable(account.id)) return true;
    if (!journal.isFailing() && triedMs !== nowMs) {
      triedMs = nowMs; // a ledger that is held makes a try wait
      journal.flush();
    }
    if (journal.isFailing()) {
      account.credit?.miss(nowMs);
      wake(account);
    }
    return journal.isDurable(account.id);
  }

  /** A plan with credits owes no call: a request that waits for one waits for its message. */
  function isUrgent(account: Account, nowMs: number): boolean {
    return account.waiters !== undefined || account.plan.credits !== undefined || isOverdrawn(account, nowMs);
  }

  /**
   * Whether the account must report at once: a request found too few tokens, or a slow plan spent some that were not yet
   * granted. Until that is reported the authority's bucket does not refill, and each Retry-After is too short by the delay.
   */
  function isOverdrawn({ plan, rate }: Account, nowMs: number): boolean {
    return rate.isStarved || (plan.rps <= SLOW_RPS && rate.isOwing(nowMs));
  }

  /** Takes in the reply to a collected message, and wakes the requests that wait for it. */
  function settle({ accountId, rate, credits }: Message, reply: Reply | undefined, nowMs: number): void {
    const account = accounts.get(accountId);
    if (account === undefined || (rate === undefined && credits === undefined)) return;
    if (rate !== undefined) account.rate.settle(reply?.rate, nowMs);
    if (credits !== undefined) account.credit?.settle(reply?.credits, nowMs);
    wake(account);
  }

  /** Has the account's counters reported again, as the store may have lost them; `false`: they are not in memory. */
  function resync(accountId: number): boolean {
    const account = accounts.get(accountId);
    if (account?.credit === undefined) return false;
    account.credit.unconfirm();
    marked.add(account);
    return true;
  }

  /** Up to `max` messages that return all credits, for a process that ends. */
  function release(nowMs: number, max: number): Message[] {
    const due: Message[] = [];
    for (const { id: accountId, credit } of accounts.values()) {
      if (credit?.mayRelease() !== true || !journal.isDurable(accountId)) continue;
      due.push({ accountId, revision: revision(), credits: credit.report(nowMs, 0) });
      if (due.length === max) break;
    }
    return due;
  }

  /** Looks at up to `max` accounts, in turn, and forgets those at rest. */
  function forgetIdle(nowMs: number, max: number): void {
    for (let looked = 0; looked < max; looked++) {
      const { value: account } = sweeping.next();
      if (account === undefined) return void (sweeping = accounts.values());
      const { id, rate, credit } = account;
      if (!rate.mayForget(nowMs) || credit?.mayForget(nowMs) === false) continue;
      accounts.delete(id);
      marked.delete(account);
      watched.delete(account);
    }
  }

  return {
    accountOf,
    decide,
    outOfCredits,
    creditsLeft,
    giveBack,
    collect,
    settle,
    isOverdrawn,
    resync,
    release,
    forgetIdle,
    size: () => accounts.size,
  };
}

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

function wake(account: Account): void {
  const { waiters } = account;
  account.waiters = undefined;
  for (const go of waiters ?? []) go();
}

/** The debt of a plan with credits is 0: a trial's rate is never exceeded. */
function ratePlanOf({ rps, burst, credits }: Plan): RatePlan {
  return { rps, burst, debtMax: credits === undefined ? Math.max(1, Math.ceil(0.02 * rps)) : 0 };
}

/** The state of the account's rate as far as this process knows. */
function stateOf({ plan, rate }: Account, nowMs: number): { plan: Plan; tokens: number } {
  return { plan, tokens: rate.tokensKnown(nowMs) };
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
    if (accounts.isOverdrawn(account, nowMs)) sync.flushSoon();
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

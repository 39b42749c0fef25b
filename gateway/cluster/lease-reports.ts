import type { Plan } from '../../shared/config/plans.ts';
import type { Journal } from '../limits/journal.ts';
import type { CreditLease } from './credit-lease.ts';
import type { Message, Reply } from './messages.ts';
import type { RateLease } from './rate-lease.ts';

/** One account in this process. Mutable: it is the account's state. `credit`: only on a plan with credits. */
export type Account = {
  readonly id: number;
  plan: Plan;
  readonly rate: RateLease;
  credit: CreditLease | undefined;
  /** Called, once, with the next reply for the account or without one. */
  waiters: Set<() => void> | undefined;
};

/** Accounts that wait for their message, 500 bytes each; the calls of further ones wait for a reply. */
const MARKED_MAX = 16_384;
/** How long messages wait at most for those of other accounts: fewer calls of the store, each with more of them. */
export const COMBINE_MS = 340;
/** A plan of at most this rate is slow: what it spends beyond its grants is reported at once. */
const SLOW_RPS = 10;

type ReportOptions = Readonly<{
  /** All accounts in memory. */
  accounts: Map<number, Account>;
  journal: Pick<Journal, 'isDurable' | 'isFailing' | 'flush'>;
  /** The revision of the accounts database at which callers and plans were last read. */
  revision(): number;
}>;

/** Collects what the accounts in memory have to report, and hands them the replies. */
export function createReports({ accounts, journal, revision }: ReportOptions) {
  /** Those with requests since they were last looked at, and those that hold something or will want it again. */
  const marked = new Set<Account>();
  const watched = new Set<Account>();
  let sweeping = accounts.values();
  const gather = createGather(journal, revision);

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

  /** Takes in the reply to a collected message, and wakes the requests that wait for it. */
  function hear({ accountId, rate, credits }: Message, reply: Reply | undefined, nowMs: number): void {
    const account = accounts.get(accountId);
    if (account === undefined || (rate === undefined && credits === undefined)) return;
    if (rate !== undefined) account.rate.hear(reply?.rate, nowMs);
    if (credits !== undefined) account.credit?.hear(reply?.credits, nowMs);
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
    /** Has the account looked at; gives whether too many wait for their message. */
    mark(account: Account): boolean {
      marked.add(account);
      return marked.size > MARKED_MAX;
    },
    collect,
    hear,
    resync,
    release,
    forgetIdle,
  };
}

/** Writes the messages of accounts. */
function createGather(journal: ReportOptions['journal'], revision: () => number) {
  let triedMs = Number.NEGATIVE_INFINITY;

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

  return gather;
}

/** A plan with credits owes no call: a request that waits for one waits for its message. */
function isUrgent(account: Account, nowMs: number): boolean {
  return account.waiters !== undefined || account.plan.credits !== undefined || isOverdrawn(account, nowMs);
}

/**
 * Whether the account must report at once: a request found too few tokens, or a slow plan spent some that were not yet
 * granted. Until that is reported the authority's bucket does not refill, and each Retry-After is too short by the delay.
 */
export function isOverdrawn({ plan, rate }: Account, nowMs: number): boolean {
  return rate.isStarved || (plan.rps <= SLOW_RPS && rate.isOwing(nowMs));
}

function wake(account: Account): void {
  const { waiters } = account;
  account.waiters = undefined;
  for (const go of waiters ?? []) go();
}

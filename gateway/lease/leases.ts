import type { Plan } from '../../shared/config/plans.ts';
import type { Caller } from '../../shared/keys/identify.ts';
import { unreachable } from '../../shared/brand.ts';
import type { Charge } from '../limits/charge.ts';
import type { Spending } from '../limits/journal.ts';
import type { Price } from '../limits/price.ts';
import { type Account, changePlan, newAccount, stateOf } from './account.ts';
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
import { demandAt } from './demand.ts';
import type { CreditAsk, RateAsk } from './messages.ts';
import { giveBackRate, heldTokens, intervalOf, lookAtRate, offerCalls, takeRate } from './rate-lease.ts';
import { askRate, IDLE_MS, mayForget, wishOf } from './rate-top-up.ts';

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
  /**
   * Up to `max` messages of each kind that are due for accounts that were asked for since the last time; with
   * `hurried` only for those whose bucket would stand full if they waited for the others.
   */
  collect(nowMs: number, aheadMs: number, max: number, hurried?: boolean): Collected;
  /** The same for a part of the accounts that hold something or will want it again; all have their turn in a few. */
  collectWatched(nowMs: number, aheadMs: number, max: number): Collected;
  /** The account owes calls that cannot wait for the messages of others. */
  isPressed(account: Account, nowMs: number): boolean;
  /** Has the next `collect` look at the account. */
  mark(account: Account): void;
  /** Has the account's counters told again, as the centre may have lost them; `false`: they are not in memory. */
  tellAgain(accountId: number): boolean;
  /** Up to `max` messages that give all credits back, for a process that ends. */
  release(nowMs: number, max: number): Collected['credits'];
  /** Looks at up to `max` accounts, in turn, and forgets those at rest. */
  forgetIdle(nowMs: number, max: number): void;
  readonly size: number;
}>;

type Due = { -readonly [K in keyof Collected]: Collected[K][number][] };

/**
 * Accounts that wait for their message: above it a further one must be asked for before its call is let in, or what
 * callers send would pile up here as fast as they can send it. About 500 bytes each.
 */
const MARKED_MAX = 16_384;

/** So many accounts on plans without credits are remembered for so long after their last call, which spares the centre a question each. */
const REMEMBERED_MAX = 16_384;
const REMEMBERED_MS = 15_000;

/** Above so many, one that was asked for once in minutes is not remembered: most of many do not come again. */
const ONCE_REMEMBERED_MAX = 2_048;
/** Then it is forgotten so long after its call: no longer than its message takes. */
const ONCE_REMEMBERED_MS = 250;

/** Watched accounts looked at in a turn, at least: all of a few, so that they are told of together, else a part. */
const WATCH_MIN = 4_096;
const WATCH_TURNS = 4;

/** An account with so long between its messages lets them wait for those of others, and leases for that time too. */
const PATIENT_MS = 250;

/** So small a part of the rate is few calls. */
const FEW = 0.05;

/** At up to so many calls a second what an account owes is told at once. */
const SLOW_RPS = 10;

/** How long they wait at most, in milliseconds: fewer messages, each with more accounts. */
export const GATHER_MS = 280;

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
  const watched = new Set<Account>();
  let watch = watched.values();
  let sweep = accounts.values();

  function accountOf(caller: Caller, plan: Plan, nowMs: number): Account {
    let account = accounts.get(caller.accountId);
    if (account === undefined) {
      account = newAccount(caller.accountId, plan, share, nowMs);
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
    const crowded = marked.size > MARKED_MAX;
    const calls = lookAtRate(rate, price.calls, nowMs, { mayWait: patience.rate, storeOut, crowded });
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

  function collect(nowMs: number, aheadMs: number, max: number, hurried = false): Collected {
    const due: Due = { rates: [], credits: [] };
    for (const account of marked) {
      if (hurried && !isHurried(account, nowMs)) continue;
      if (due.rates.length >= max || due.credits.length >= max) break;
      const wish = gather(due, account, nowMs, aheadMs);
      if (wish === 'soon' && account.waiters !== undefined) continue;
      marked.delete(account);
      if (wish !== 'nothing') watched.add(account);
    }
    return due;
  }

  function collectWatched(nowMs: number, aheadMs: number, max: number): Collected {
    const due: Due = { rates: [], credits: [] };
    for (let looked = Math.max(WATCH_MIN, watched.size / WATCH_TURNS); looked > 0; looked--) {
      if (due.rates.length >= max || due.credits.length >= max) break;
      const next = watch.next();
      if (next.done === true) {
        watch = watched.values();
        break;
      }
      if (gather(due, next.value, nowMs, aheadMs) === 'nothing') watched.delete(next.value);
    }
    return due;
  }

  /** Adds what the account has to say now; gives whether more will come by itself. */
  function gather(due: Due, account: Account, nowMs: number, soonMs: number): 'soon' | 'nothing' {
    const { id, rate, credit } = account;
    const aheadMs = isHurried(account, nowMs) ? soonMs : soonMs + GATHER_MS;
    const wish = wishOf(rate, nowMs, aheadMs);
    const wishCredits = credit === undefined ? 'nothing' : wishOfCredits(credit, nowMs);
    if (wish === 'now') due.rates.push({ account, ask: askRate(rate, id, revision(), nowMs, aheadMs) });
    if (wishCredits === 'now' && credit !== undefined)
      due.credits.push({ account, credit, ask: askCredits(credit, id, revision(), nowMs) });
    return wish === 'nothing' && wishCredits === 'nothing' ? 'nothing' : 'soon';
  }

  /** A plan with credits owes no call: whoever waits for one waits for its message. */
  function isHurried(account: Account, nowMs: number): boolean {
    const { plan, rate, waiters } = account;
    if (waiters !== undefined || plan.credits !== undefined) return true;
    return intervalOf(rate.plan) < PATIENT_MS || isPressed(account, nowMs);
  }

  /**
   * A full bucket refills nothing until it is told of a call, and waits are untrue until then: by more where a plan is
   * slow. Who asks for more than there is gets it in smaller parts.
   */
  function isPressed({ plan, rate }: Account, nowMs: number): boolean {
    const owes = rate.outSinceMs === undefined && heldTokens(rate, nowMs) < 0;
    return (owes && plan.rps <= SLOW_RPS) || (rate.starved && demandAt(rate.demand, nowMs) > FEW * plan.rps);
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
    const paidMs = accounts.size > REMEMBERED_MAX ? IDLE_MS : REMEMBERED_MS;
    for (let looked = 0; looked < max; looked++) {
      const next = sweep.next();
      if (next.done === true) {
        sweep = accounts.values();
        return;
      }
      const { id, rate, credit } = next.value;
      const wasOnce = accounts.size > ONCE_REMEMBERED_MAX && rate.spent <= 1;
      const idleMs = credit !== undefined ? IDLE_MS : wasOnce ? ONCE_REMEMBERED_MS : paidMs;
      if (!mayForget(rate, nowMs, idleMs) || (credit !== undefined && !mayForgetCredits(credit, nowMs)))
        continue;
      accounts.delete(id);
      marked.delete(next.value);
      watched.delete(next.value);
    }
  }

  return {
    accountOf,
    offer: offerRequest,
    decide,
    giveBack,
    isPressed,
    mark: (account) => void marked.add(account),
    collect,
    collectWatched,
    tellAgain,
    release,
    forgetIdle,
    get size() {
      return accounts.size;
    },
  };
}

function refused(charge: Extract<Decision, { kind: 'refused' }>['charge']): Decision {
  return { kind: 'refused', charge };
}

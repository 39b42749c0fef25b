import type { Clock } from '../../shared/clock.ts';
import type { Plan } from '../../shared/config/plans.ts';
import type { Store } from '../../shared/store/open.ts';
import {
  type Account,
  type AccountRow,
  createAccountRows,
  isLabel,
  isReserved,
  type OwnAccount,
} from './account-row.ts';
import type { Action, Actor, Audit, Detail } from './audit.ts';

/** The changes that `set` makes; an absent member stays. `plan: undefined` takes the plan away. */
type AccountChange = Readonly<{ plan?: { readonly name: string | undefined }; creditsLeft?: number }>;

type AccountResult =
  | { readonly kind: 'account'; readonly account: Account }
  /** `reserved-name`: the service itself knows the account by its name. */
  | { readonly kind: 'bad-name' | 'name-taken' | 'reserved-name' | 'unknown-account' }
  | { readonly kind: 'unknown-plan'; readonly plan: string }
  /** Credits were to be set on an account whose plan has no credit limit, or which has no plan. */
  | { readonly kind: 'no-credits'; readonly plan: string | undefined };

export type AdditionResult =
  | AccountResult
  /** Under this name something was added before: nothing was added. `credits` is what was added then. */
  | { readonly kind: 'added-before'; readonly account: Account; readonly credits: number }
  /** `bad-credits`: not a whole number of at least one, or more than an account can hold. */
  | { readonly kind: 'bad-credits' | 'bad-reason' };

type AccountsDeps = Readonly<{
  store: Store;
  plans: ReadonlyMap<string, Plan>;
  /** Credits that an account has spent, by the ledger. */
  spentOf: (accountId: number) => number;
  clock: Clock;
  note: Audit['note'];
}>;

/**
 * The accounts of `store`. An account has its plan's allowance until its credits are set: then it has what was set,
 * whatever plans it leaves and comes back to. What was spent stays spent. Every change is noted with who made it; what
 * changes nothing is not.
 */
export function createAccounts({ store, plans, spentOf, clock, note }: AccountsDeps) {
  const rows = createAccountRows(store, plans, spentOf);
  const { row: rowOf, accountFrom, find, findById, list, page, allowanceOf } = rows;
  const insert = store.prepare('INSERT INTO accounts (name, plan, created_at_ms) VALUES (?, ?, ?)');
  const update = store.prepare<null, AccountRow>(
    'UPDATE accounts SET name = $name, plan = $plan, credits_granted = $creditsGranted, suspended = $suspended WHERE id = $id',
  );
  const addedBefore = store.prepare<{ credits: number }, [number, string]>(`
    SELECT credits FROM credits_added WHERE account_id = ? AND once = ?`);
  const putAdded = store.prepare(`
    INSERT INTO credits_added (account_id, once, credits, reason, at_ms) VALUES (?, ?, ?, ?, ?)`);

  const create = store.transaction((name: string, plan: string | undefined, by: Actor): AccountResult => {
    if (!isLabel(name)) return { kind: 'bad-name' };
    if (isReserved(name)) return { kind: 'reserved-name' };
    return rowOf(name) === undefined ? made(name, plan, by) : { kind: 'name-taken' };
  });

  const own = store.transaction((name: OwnAccount, plan: string | undefined, by: Actor): AccountResult => {
    const row = rowOf(name);
    if (row === undefined) return made(name, plan, by);
    return isMadeByPerson(store, row) ? { kind: 'name-taken' } : unchanged(row);
  });

  function made(name: string, plan: string | undefined, by: Actor): AccountResult {
    if (plan !== undefined && !plans.has(plan)) return { kind: 'unknown-plan', plan };
    insert.run(name, plan ?? null, clock.now());
    const account = find(name);
    if (account === undefined) throw new Error('an account vanished inside its own transaction');
    record('account.create', account, by, { name, plan: plan ?? null });
    return { kind: 'account', account };
  }

  /** A change of the account with a name, in one transaction. */
  function changeOf<Args extends unknown[], Result>(act: (row: AccountRow, ...args: Args) => Result) {
    const change = store.transaction((name: string, ...args: Args) => {
      const row = rowOf(name);
      return row === undefined ? ({ kind: 'unknown-account' } as const) : act(row, ...args);
    });
    return change.immediate;
  }

  function put(row: AccountRow): AccountResult {
    update.run({ ...row });
    return unchanged(row);
  }

  function unchanged(row: AccountRow): AccountResult {
    return { kind: 'account', account: accountFrom(row) };
  }

  function record(action: Action, { id }: Pick<AccountRow, 'id'>, actor: Actor, detail: Detail) {
    note({ atMs: clock.now(), actor, action, accountId: id, subject: String(id), detail });
  }

  const setSuspended = changeOf((row, is: boolean, by: Actor): AccountResult => {
    if ((row.suspended === 1) === is) return unchanged(row);
    record(is ? 'account.suspend' : 'account.resume', row, by, {});
    return put({ ...row, suspended: is ? 1 : 0 });
  });

  const set = changeOf((row, { plan: wanted, creditsLeft }: AccountChange, by: Actor): AccountResult => {
    const plan = wanted === undefined ? row.plan : (wanted.name ?? null);
    if (wanted?.name !== undefined && !plans.has(wanted.name))
      return { kind: 'unknown-plan', plan: wanted.name };
    if (creditsLeft !== undefined && allowanceOf(plan) === undefined)
      return { kind: 'no-credits', plan: plan ?? undefined };
    if (plan !== row.plan) record('account.plan', row, by, { from: row.plan, to: plan });
    if (creditsLeft === undefined) return put({ ...row, plan });
    const from = accountFrom(row).creditsLeft ?? null;
    record('account.credits.set', row, by, { from, to: creditsLeft });
    return put({ ...row, plan, creditsGranted: spentOf(row.id) + creditsLeft });
  });

  const rename = changeOf((row, to: string, by: Actor): AccountResult => {
    const { name } = row;
    if (!isLabel(to)) return { kind: 'bad-name' };
    if (isReserved(to) || (isReserved(name) && !isMadeByPerson(store, row))) return { kind: 'reserved-name' };
    if (to === name) return unchanged(row);
    if (rowOf(to) !== undefined) return { kind: 'name-taken' };
    record('account.rename', row, by, { from: name, to });
    return put({ ...row, name: to });
  });

  const addCredits = changeOf((row, { credits, reason, once }: Addition, by: Actor): AdditionResult => {
    const allowance = allowanceOf(row.plan);
    if (allowance === undefined) return { kind: 'no-credits', plan: row.plan ?? undefined };
    const before = addedBefore.get(row.id, once);
    if (before !== null) return { kind: 'added-before', account: accountFrom(row), ...before };
    if (!REASON.test(reason)) return { kind: 'bad-reason' };
    const creditsGranted = Math.max(row.creditsGranted ?? allowance, spentOf(row.id)) + credits;
    if (!Number.isSafeInteger(credits) || credits < 1 || creditsGranted > CREDITS_MAX)
      return { kind: 'bad-credits' };
    putAdded.run(row.id, once, credits, reason, clock.now());
    record('account.credits.add', row, by, { credits, reason });
    return put({ ...row, creditsGranted });
  });

  return {
    create: create.immediate,
    /** The service's own account of this name, made on `plan` where there is none; `name-taken`: a person made it. */
    own: own.immediate,
    set,
    rename,
    /** Takes every key of the account out of use, until it is resumed. */
    suspend: (name: string, by: Actor) => setSuspended(name, true, by),
    resume: (name: string, by: Actor) => setSuspended(name, false, by),
    /** Adds to what is left; when a plan was lowered below what is spent, that is made up for first. */
    addCredits,
    find,
    findById,
    list,
    page,
  };
}

/** Whether a user made the account at the console, before its name was reserved. */
function isMadeByPerson(store: Store, { id }: AccountRow): boolean {
  const making = store.query<object, [number]>(`
    SELECT 1 FROM audit WHERE account_id = ? AND action = 'account.create' AND actor_kind IN ('user', 'operator')`);
  return making.get(id) !== null;
}

export type Accounts = ReturnType<typeof createAccounts>;

/** Credits to add and why; `once` names the addition, so that a form sent twice adds once. */
type Addition = Readonly<{ credits: number; reason: string; once: string }>;

/** A quarter of the safe integers: granted is spent plus left and must stay exact. */
export const CREDITS_MAX = Math.floor(Number.MAX_SAFE_INTEGER / 4);

/** 1 to 200 printable characters, no space at either end. */
const REASON = /^(?!\s)[^\p{C}\p{Zl}\p{Zp}]{1,200}(?<!\s)$/u;

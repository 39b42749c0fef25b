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

/** What `set` changes; an absent member stays. `plan: undefined` takes the plan away. */
type AccountChange = Readonly<{
  plan?: { readonly name: string | undefined };
  creditsLeft?: number;
}>;

type AccountResult =
  | { readonly kind: 'account'; readonly account: Account }
  | { readonly kind: 'bad-name' }
  | { readonly kind: 'name-taken' }
  /** The service itself knows the account by its name. */
  | { readonly kind: 'reserved-name' }
  | { readonly kind: 'unknown-account' }
  | { readonly kind: 'unknown-plan'; readonly plan: string }
  /** Credits were to be set on an account whose plan has no credit limit, or which has no plan. */
  | { readonly kind: 'no-credits'; readonly plan: string | undefined };

export type AdditionResult =
  | AccountResult
  /** Under this name something was added before: nothing was added. `credits` is what was added then. */
  | { readonly kind: 'added-before'; readonly account: Account; readonly credits: number }
  /** Not a whole number of at least one, or more than an account can hold. */
  | { readonly kind: 'bad-credits' }
  | { readonly kind: 'bad-reason' };

/**
 * The accounts of `store`. An account has its plan's allowance until its credits are set: then it has what was set,
 * whatever plans it leaves and comes back to. What was spent stays spent. Every change is noted with who made it; what
 * changes nothing is not.
 */
export function createAccounts(
  parts: Readonly<{
    store: Store;
    plans: ReadonlyMap<string, Plan>;
    /** What the ledger says an account has spent, in credits. */
    spentOf: (accountId: number) => number;
    clock: Clock;
    note: Audit['note'];
  }>,
) {
  const { store, plans, spentOf, clock, note } = parts;
  const { row: rowOf, find, findById, list, page, allowanceOf } = createAccountRows(store, plans, spentOf);
  const insert = store.prepare('INSERT INTO accounts (name, plan, created_at_ms) VALUES (?, ?, ?)');
  const update = store.prepare(
    'UPDATE accounts SET name = ?, plan = ?, credits_granted = ?, suspended = ? WHERE id = ?',
  );
  const addedBefore = store.prepare<{ credits: number }, [number, string]>(
    'SELECT credits FROM credits_added WHERE account_id = ? AND once = ?',
  );
  const putAdded = store.prepare(
    'INSERT INTO credits_added (account_id, once, credits, reason, at_ms) VALUES (?, ?, ?, ?, ?)',
  );

  const create = store.transaction((name: string, plan: string | undefined, by: Actor): AccountResult => {
    if (!isLabel(name)) return { kind: 'bad-name' };
    if (isReserved(name)) return { kind: 'reserved-name' };
    return rowOf(name) === undefined ? made(name, plan, by) : { kind: 'name-taken' };
  });

  const own = store.transaction((name: OwnAccount, plan: string | undefined, by: Actor): AccountResult => {
    const row = rowOf(name);
    if (row === undefined) return made(name, plan, by);
    return isOfPerson(row) ? { kind: 'name-taken' } : accountOf(name);
  });

  function made(name: string, plan: string | undefined, by: Actor): AccountResult {
    if (plan !== undefined && !plans.has(plan)) return { kind: 'unknown-plan', plan };
    insert.run(name, plan ?? null, clock.now());
    const account = shown(name);
    record('account.create', account, by, { name, plan: plan ?? null });
    return { kind: 'account', account };
  }

  /** Whether somebody at the console made the account, as they could before its name was reserved. */
  function isOfPerson({ id }: AccountRow): boolean {
    const making = store.query<object, [number]>(
      `SELECT 1 FROM audit WHERE account_id = ? AND action = 'account.create' AND actor_kind IN ('user', 'operator')`,
    );
    return making.get(id) !== null;
  }

  const set = store.transaction((name: string, wanted: AccountChange, by: Actor): AccountResult => {
    const row = rowOf(name);
    if (row === undefined) return { kind: 'unknown-account' };
    const plan = wanted.plan === undefined ? (row.plan ?? undefined) : wanted.plan.name;
    if (wanted.plan !== undefined && plan !== undefined && !plans.has(plan))
      return { kind: 'unknown-plan', plan };
    const { creditsLeft } = wanted;
    if (creditsLeft !== undefined && allowanceOf(plan) === undefined) return { kind: 'no-credits', plan };
    const before = { plan: row.plan, left: find(name)?.creditsLeft ?? null };
    const granted = creditsLeft === undefined ? row.credits_granted : spentOf(row.id) + creditsLeft;
    put({ ...row, plan: plan ?? null, credits_granted: granted });
    if ((plan ?? null) !== before.plan)
      record('account.plan', row, by, { from: before.plan, to: plan ?? null });
    if (creditsLeft !== undefined)
      record('account.credits.set', row, by, { from: before.left, to: creditsLeft });
    return accountOf(name);
  });

  const rename = store.transaction((name: string, to: string, by: Actor): AccountResult => {
    const row = rowOf(name);
    if (row === undefined) return { kind: 'unknown-account' };
    if (!isLabel(to)) return { kind: 'bad-name' };
    if (isReserved(to) || (isReserved(name) && !isOfPerson(row))) return { kind: 'reserved-name' };
    if (to === name) return accountOf(name);
    if (rowOf(to) !== undefined) return { kind: 'name-taken' };
    put({ ...row, name: to });
    record('account.rename', row, by, { from: name, to });
    return accountOf(to);
  });

  const setSuspended = store.transaction((name: string, is: boolean, by: Actor): AccountResult => {
    const row = rowOf(name);
    if (row === undefined) return { kind: 'unknown-account' };
    if ((row.suspended === 1) !== is) {
      put({ ...row, suspended: is ? 1 : 0 });
      record(is ? 'account.suspend' : 'account.resume', row, by, {});
    }
    return accountOf(name);
  });

  const addCredits = store.transaction((name: string, added: Addition, by: Actor): AdditionResult => {
    const { credits, reason, once } = added;
    const row = rowOf(name);
    if (row === undefined) return { kind: 'unknown-account' };
    const plan = row.plan ?? undefined;
    const allowance = allowanceOf(plan);
    if (allowance === undefined) return { kind: 'no-credits', plan };
    const before = addedBefore.get(row.id, once);
    if (before !== null) return { kind: 'added-before', account: shown(name), ...before };
    if (!REASON.test(reason)) return { kind: 'bad-reason' };
    const granted = Math.max(row.credits_granted ?? allowance, spentOf(row.id)) + credits;
    if (!Number.isSafeInteger(credits) || credits < 1 || granted > CREDITS_MAX)
      return { kind: 'bad-credits' };
    put({ ...row, credits_granted: granted });
    putAdded.run(row.id, once, credits, reason, clock.now());
    record('account.credits.add', row, by, { credits, reason });
    return accountOf(name);
  });

  function put({ id, name, plan, credits_granted, suspended }: AccountRow): void {
    update.run(name, plan, credits_granted, suspended, id);
  }

  function record(action: Action, { id }: Pick<AccountRow, 'id'>, actor: Actor, detail: Detail) {
    note({ atMs: clock.now(), actor, action, accountId: id, subject: String(id), detail });
  }

  function accountOf(name: string): AccountResult {
    return { kind: 'account', account: shown(name) };
  }

  function shown(name: string): Account {
    const account = find(name);
    if (account === undefined) throw new Error('an account vanished inside its own transaction');
    return account;
  }

  return {
    create: create.immediate,
    /** The service's own account of this name, made on `plan` where there is none; `name-taken`: a person made it. */
    own: own.immediate,
    set: set.immediate,
    rename: rename.immediate,
    /** Takes every key of the account out of use, until it is resumed. */
    suspend: (name: string, by: Actor) => setSuspended.immediate(name, true, by),
    resume: (name: string, by: Actor) => setSuspended.immediate(name, false, by),
    /** Adds to what is left; when a plan was lowered below what is spent, that is made up for first. */
    addCredits: addCredits.immediate,
    find,
    findById,
    list,
    page,
  };
}

export type Accounts = ReturnType<typeof createAccounts>;

/** Credits to add and why; `once` names the addition, so that a form sent twice adds once. */
type Addition = Readonly<{ credits: number; reason: string; once: string }>;

/** A quarter of the safe integers: granted is spent plus left and must stay exact. */
export const CREDITS_MAX = Math.floor(Number.MAX_SAFE_INTEGER / 4);

/** 1 to 200 printable characters, no space at either end. */
const REASON = /^(?!\s)[^\p{C}\p{Zl}\p{Zp}]{1,200}(?<!\s)$/u;

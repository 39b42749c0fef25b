import type { Plan } from '../../shared/config/plans.ts';
import type { Store } from '../../shared/store/open.ts';
import { type AccountWish, createAccountList } from './account-list.ts';
import type { Page } from './page.ts';

/** One customer. Rate and credits are the account's, however many keys it has. */
export type Account = Readonly<{
  id: number;
  name: string;
  /** `undefined`: the program API only. May name a plan that the config no longer has. */
  plan: string | undefined;
  /** What is left of the allowance, as the gateway counts it; `undefined` on a plan without credits. Never below zero. */
  creditsLeft: number | undefined;
  /** None of its keys is accepted. */
  isSuspended: boolean;
  createdAtMs: number;
}>;

/** The same as the tables have it; `credits_granted` is `null` while it is the plan's allowance. */
export type AccountRow = Readonly<{
  id: number;
  name: string;
  plan: string | null;
  credits_granted: number | null;
  suspended: number;
  created_at_ms: number;
}>;

export type AccountRows = Readonly<{
  row(name: string): AccountRow | undefined;
  find(name: string): Account | undefined;
  findById(id: number): Account | undefined;
  /** All of them, the oldest first. */
  list(): readonly Account[];
  /** The newest first; of those only whose name has `search` in it, in either case of A to Z. */
  page(wish: AccountWish): Page<Account, number>;
  /** The credits that a plan begins with; `undefined` when it has no credit limit. */
  allowanceOf(plan: string | undefined): number | undefined;
}>;

export type AccountRowDeps = Readonly<{
  store: Store;
  plans: ReadonlyMap<string, Plan>;
  /** What the ledger says an account has spent, in credits. */
  spentOf: (accountId: number) => number;
}>;

/** Reads the accounts of `store`. */
export function createAccountRows({ store, plans, spentOf }: AccountRowDeps): AccountRows {
  const byName = store.prepare<AccountRow, [string]>('SELECT * FROM accounts WHERE name = ?');
  const byId = store.prepare<AccountRow, [number]>('SELECT * FROM accounts WHERE id = ?');
  const all = store.prepare<AccountRow, []>('SELECT * FROM accounts ORDER BY id');

  function accountFrom({ id, name, plan, credits_granted, suspended, created_at_ms }: AccountRow): Account {
    const allowance = allowanceOf(plan ?? undefined);
    const granted = allowance === undefined ? undefined : (credits_granted ?? allowance);
    const creditsLeft = granted === undefined ? undefined : Math.max(0, granted - spentOf(id));
    return {
      id,
      name,
      plan: plan ?? undefined,
      creditsLeft,
      isSuspended: suspended === 1,
      createdAtMs: created_at_ms,
    };
  }

  function allowanceOf(plan: string | undefined): number | undefined {
    return plan === undefined ? undefined : plans.get(plan)?.credits;
  }

  const shown = (row: AccountRow | null) => (row === null ? undefined : accountFrom(row));
  return {
    row: (name) => byName.get(name) ?? undefined,
    find: (name) => shown(byName.get(name)),
    findById: (id) => shown(byId.get(id)),
    list: () => all.all().map(accountFrom),
    page: createAccountList(store, accountFrom),
    allowanceOf,
  };
}

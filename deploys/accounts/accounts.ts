import type { Clock } from '../../shared/clock.ts';
import type { Plan } from '../../shared/config/plans.ts';
import type { Store } from '../../shared/store/open.ts';
import { isLabel } from './label.ts';

/** One customer. Rate and credits are the account's, however many keys it has. */
export type Account = Readonly<{
  id: number;
  name: string;
  /** `undefined`: the program API only. May name a plan that the config no longer has. */
  plan: string | undefined;
  /** What is left of the allowance; `undefined` on a plan without credits. Never below zero. */
  creditsLeft: number | undefined;
  createdAtMs: number;
}>;

/** What `set` changes; an absent member stays. `plan: undefined` takes the plan away. */
export type AccountChange = Readonly<{
  plan?: { readonly name: string | undefined };
  creditsLeft?: number;
}>;

export type AccountResult =
  | { readonly kind: 'account'; readonly account: Account }
  | { readonly kind: 'bad-name' }
  | { readonly kind: 'name-taken' }
  | { readonly kind: 'unknown-account' }
  | { readonly kind: 'unknown-plan'; readonly plan: string }
  /** Credits were to be set on an account whose plan has no credit limit, or which has no plan. */
  | { readonly kind: 'no-credits'; readonly plan: string | undefined };

export type Accounts = Readonly<{
  create(name: string, plan: string | undefined): AccountResult;
  set(name: string, change: AccountChange): AccountResult;
  find(name: string): Account | undefined;
  list(): readonly Account[];
}>;

type Row = {
  id: number;
  name: string;
  plan: string | null;
  credits_granted: number | null;
  created_at_ms: number;
};

/** `spentOf` tells what the gateway's ledger says an account has spent, in credits. */
export type AccountDeps = Readonly<{
  store: Store;
  plans: ReadonlyMap<string, Plan>;
  spentOf: (accountId: number) => number;
  clock: Clock;
}>;

/**
 * The accounts of `store`. An account has its plan's allowance until its credits are set: then it has what was set,
 * whatever plans it leaves and comes back to. What was spent stays spent.
 */
export function createAccounts({ store, plans, spentOf, clock }: AccountDeps): Accounts {
  const byName = store.prepare<Row, [string]>('SELECT * FROM accounts WHERE name = ?');
  const all = store.prepare<Row, []>('SELECT * FROM accounts ORDER BY id');
  const insert = store.prepare('INSERT INTO accounts (name, plan, created_at_ms) VALUES (?, ?, ?)');
  const update = store.prepare('UPDATE accounts SET plan = ?, credits_granted = ? WHERE id = ?');

  const create = store.transaction((name: string, plan: string | undefined): AccountResult => {
    if (!isLabel(name)) return { kind: 'bad-name' };
    if (plan !== undefined && !plans.has(plan)) return { kind: 'unknown-plan', plan };
    if (byName.get(name) !== null) return { kind: 'name-taken' };
    insert.run(name, null, clock.now());
    return change(name, { plan: { name: plan } });
  });

  const set = store.transaction((name: string, wanted: AccountChange) => change(name, wanted));

  function change(name: string, { plan: wanted, creditsLeft }: AccountChange): AccountResult {
    const row = byName.get(name);
    if (row === null) return { kind: 'unknown-account' };
    const plan = wanted === undefined ? (row.plan ?? undefined) : wanted.name;
    if (wanted !== undefined && plan !== undefined && !plans.has(plan)) return { kind: 'unknown-plan', plan };
    const allowance = allowanceOf(plan);
    if (creditsLeft !== undefined && allowance === undefined) return { kind: 'no-credits', plan };
    const granted = creditsLeft === undefined ? row.credits_granted : spentOf(row.id) + creditsLeft;
    update.run(plan ?? null, granted, row.id);
    const account = find(name);
    if (account === undefined) throw new Error('an account vanished inside its own transaction');
    return { kind: 'account', account };
  }

  function find(name: string): Account | undefined {
    const row = byName.get(name);
    return row === null ? undefined : accountFrom(row);
  }

  function accountFrom({ id, name, plan, credits_granted, created_at_ms }: Row): Account {
    const allowance = allowanceOf(plan ?? undefined);
    const granted = allowance === undefined ? undefined : (credits_granted ?? allowance);
    const creditsLeft = granted === undefined ? undefined : Math.max(0, granted - spentOf(id));
    return { id, name, plan: plan ?? undefined, creditsLeft, createdAtMs: created_at_ms };
  }

  function allowanceOf(plan: string | undefined): number | undefined {
    return plan === undefined ? undefined : plans.get(plan)?.credits;
  }

  return { create: create.immediate, set: set.immediate, find, list: () => all.all().map(accountFrom) };
}

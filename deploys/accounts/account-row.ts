import type { Plan } from '../../shared/config/plans.ts';
import { DEMO } from '../../shared/keys/schema.ts';
import type { Store } from '../../shared/store/open.ts';

const LABEL = /^(?!\s)[^\p{C}\p{Zl}\p{Zp}]{1,64}(?<!\s)$/u;

/** Whether `text` can name an account or a key: 1 to 64 printable characters, no space at either end. */
export function isLabel(text: string): boolean {
  return LABEL.test(text);
}

/** The account the watcher reads as; its usage is counted like any other's. */
export const WATCHER = 'sluice-watcher';

/** The accounts that the service makes for itself. */
export type OwnAccount = typeof DEMO | typeof WATCHER;

/** Whether the service finds this account by its name, and by their names its keys: none of these changes. */
export function isReserved(account: string): account is OwnAccount {
  return account === DEMO || account === WATCHER;
}

/** A request for one page of a list: at most `limit` items with `search` in them, after the last of the page before. */
export type PageRequest<Place> = Readonly<{ search?: string; before?: Place; limit: number }>;

/** A page of a list. `next` is where the next page begins; `undefined` at the end. */
export type Page<Item, Place> = Readonly<{ items: readonly Item[]; next: Place | undefined }>;

const PAGE_MAX = 200;

export function pageLimit(limit: number): number {
  return Math.max(1, Math.min(limit, PAGE_MAX));
}

/** A LIKE pattern, escaped by a backslash, for texts with `search` in them. */
export function likeOf(search: string): string {
  return `%${search.replaceAll(/[\\%_]/g, '\\$&')}%`;
}

/** One customer. Rate and credits are the account's, however many keys it has. */
export type Account = Readonly<{
  id: number;
  name: string;
  /** `undefined`: the program API only. May name a plan that the config no longer has. */
  plan: string | undefined;
  /** The rest of the allowance, as the gateway counts it; `undefined` on a plan without credits. Never below zero. */
  creditsLeft: number | undefined;
  /** None of its keys is accepted. */
  isSuspended: boolean;
  createdAtMs: number;
}>;

/** A row of the table; `creditsGranted` is `null` while it is the plan's allowance. */
export type AccountRow = Pick<Account, 'id' | 'name' | 'createdAtMs'> &
  Readonly<{ plan: string | null; creditsGranted: number | null; suspended: number }>;

/** A page of accounts, of those only for which all that is given holds. */
export type AccountFilter = PageRequest<number> &
  Readonly<{
    /** `name: undefined`: those without a plan. */
    plan?: Readonly<{ name: string | undefined }> | undefined;
    isSuspended?: true | undefined;
    /** Nothing is left of what the plan gives. */
    isOutOfCredits?: true | undefined;
  }>;

/** Accounts that one page reads to find those out of credits, which no index knows; a page that ends there has a next one. */
export const LOOKED_AT_MAX = 2_000;

const PORTION = 200;
const SELECT = `
  SELECT id, name, plan, credits_granted AS creditsGranted, suspended, created_at_ms AS createdAtMs FROM accounts`;

/** Reads the accounts of `store`. `spentOf` is what the ledger says an account has spent, in credits. */
export function createAccountRows(
  store: Store,
  plans: ReadonlyMap<string, Plan>,
  spentOf: (accountId: number) => number,
) {
  const byName = store.prepare<AccountRow, [string]>(`${SELECT} WHERE name = ?`);
  const byId = store.prepare<AccountRow, [number]>(`${SELECT} WHERE id = ?`);
  const all = store.prepare<AccountRow, []>(`${SELECT} ORDER BY id`);

  function accountFrom({ plan, creditsGranted, suspended, ...row }: AccountRow): Account {
    const allowance = allowanceOf(plan);
    const creditsLeft =
      allowance === undefined ? undefined : Math.max(0, (creditsGranted ?? allowance) - spentOf(row.id));
    return { ...row, plan: plan ?? undefined, creditsLeft, isSuspended: suspended === 1 };
  }

  /** The credits that a plan begins with; `undefined` when it has no credit limit. */
  function allowanceOf(plan: string | null): number | undefined {
    return plan === null ? undefined : plans.get(plan)?.credits;
  }

  function page(filter: AccountFilter): Page<Account, number> {
    const { plan, isSuspended, isOutOfCredits, search = '' } = filter;
    const only = `${plan === undefined ? '' : 'plan IS $plan AND '}${isSuspended ? 'suspended = 1 AND ' : ''}`;
    const statement = store.query<AccountRow, Record<string, string | number | null>>(
      `${SELECT} WHERE ${only}id < $before AND name LIKE $like ESCAPE '\\' ORDER BY id DESC LIMIT $limit`,
    );
    const limit = pageLimit(filter.limit);
    const portion = isOutOfCredits ? PORTION : limit;
    // One row more than the page shows whether there is another page.
    const bound = { like: likeOf(search), plan: plan?.name ?? null, limit: portion + 1 };
    const items: Account[] = [];
    let before = filter.before ?? Number.MAX_SAFE_INTEGER;
    for (let lookedAt = 0; lookedAt < (isOutOfCredits ? LOOKED_AT_MAX : 1); lookedAt += portion) {
      const rows = statement.all({ ...bound, before });
      for (const row of rows.slice(0, portion)) {
        if (items.length === limit) return { items, next: before };
        const account = accountFrom(row);
        if (!isOutOfCredits || account.creditsLeft === 0) items.push(account);
        before = row.id;
      }
      if (rows.length <= portion) return { items, next: undefined };
    }
    return { items, next: before };
  }

  const shown = (row: AccountRow | null) => (row === null ? undefined : accountFrom(row));
  return {
    row: (name: string): AccountRow | undefined => byName.get(name) ?? undefined,
    accountFrom,
    find: (name: string): Account | undefined => shown(byName.get(name)),
    findById: (id: number): Account | undefined => shown(byId.get(id)),
    /** All of them, the oldest first. */
    list: (): readonly Account[] => all.all().map(accountFrom),
    /** The newest first; of those only whose name has `search` in it, in either case of A to Z. */
    page,
    allowanceOf,
  };
}

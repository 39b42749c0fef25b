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

/**
 * Whether the service knows this account by its name. Such a name stays, and so do those of its keys: a demo key that
 * had another would not be found when it must be retired.
 */
export function isReserved(account: string): account is OwnAccount {
  return account === DEMO || account === WATCHER;
}

/** Which part of a list is wanted: what has `search` in it, so many, behind the place that the part before ended with. */
export type PageRequest<Place> = Readonly<{ search?: string; before?: Place; limit: number }>;

/** A part of a list. `next` is the place to go on from; `undefined` at the end. */
export type Page<Item, Place> = Readonly<{ items: readonly Item[]; next: Place | undefined }>;

/** Items of one page at most, whatever is asked for. */
const PAGE_MAX = 200;

/** How many items a page has at most. */
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

/** Reads the accounts of `store`. `spentOf` is what the ledger says an account has spent, in credits. */
export function createAccountRows(
  store: Store,
  plans: ReadonlyMap<string, Plan>,
  spentOf: (accountId: number) => number,
) {
  const byName = store.prepare<AccountRow, [string]>('SELECT * FROM accounts WHERE name = ?');
  const byId = store.prepare<AccountRow, [number]>('SELECT * FROM accounts WHERE id = ?');
  const all = store.prepare<AccountRow, []>('SELECT * FROM accounts ORDER BY id');

  function accountFrom({
    id,
    name,
    credits_granted,
    created_at_ms: createdAtMs,
    ...row
  }: AccountRow): Account {
    const plan = row.plan ?? undefined;
    const allowance = allowanceOf(plan);
    const creditsLeft =
      allowance === undefined ? undefined : Math.max(0, (credits_granted ?? allowance) - spentOf(id));
    return { id, name, plan, creditsLeft, isSuspended: row.suspended === 1, createdAtMs };
  }

  function allowanceOf(plan: string | undefined): number | undefined {
    return plan === undefined ? undefined : plans.get(plan)?.credits;
  }

  const shown = (row: AccountRow | null) => (row === null ? undefined : accountFrom(row));
  return {
    row: (name: string): AccountRow | undefined => byName.get(name) ?? undefined,
    find: (name: string): Account | undefined => shown(byName.get(name)),
    findById: (id: number): Account | undefined => shown(byId.get(id)),
    /** All of them, the oldest first. */
    list: (): readonly Account[] => all.all().map(accountFrom),
    /** The newest first; of those only whose name has `search` in it, in either case of A to Z. */
    page: createAccountList(store, accountFrom),
    /** The credits that a plan begins with; `undefined` when it has no credit limit. */
    allowanceOf,
  };
}

/** A page of accounts, of those only for which all that is given holds. */
export type AccountFilter = PageRequest<number> &
  Readonly<{
    /** `name: undefined`: those without a plan. */
    plan?: Readonly<{ name: string | undefined }> | undefined;
    isSuspended?: true | undefined;
    /** Nothing is left of what the plan gives. */
    isOutOfCredits?: true | undefined;
  }>;

/**
 * Accounts that one page looks at to find those out of credits: what is spent is in another database, so no index
 * knows them. A page that ends there has a next one, however few it shows.
 */
export const LOOKED_AT_MAX = 2_000;

const PORTION = 200;

/** Reads accounts page by page, the newest first. */
function createAccountList(store: Store, accountFrom: (row: AccountRow) => Account) {
  function readerOf({ plan, isSuspended, search = '' }: AccountFilter) {
    const of = `${plan === undefined ? '' : 'plan IS $plan AND '}${isSuspended ? 'suspended = 1 AND ' : ''}`;
    const statement = store.query<AccountRow, Record<string, string | number | null>>(`
      SELECT * FROM accounts WHERE ${of}id < $before AND name LIKE $like ESCAPE '\\'
      ORDER BY id DESC LIMIT $limit`);
    const bound = { like: likeOf(search), plan: plan?.name ?? null };
    return (before: number, limit: number) => statement.all({ ...bound, before, limit });
  }

  return function page(filter: AccountFilter): Page<Account, number> {
    const read = readerOf(filter);
    const limit = pageLimit(filter.limit);
    const portion = filter.isOutOfCredits ? PORTION : limit;
    const items: Account[] = [];
    let place = filter.before ?? Number.MAX_SAFE_INTEGER;
    for (let lookedAt = 0; lookedAt < (filter.isOutOfCredits ? LOOKED_AT_MAX : 1);) {
      // One more than is looked at tells whether there is another page.
      const rows = read(place, portion + 1);
      for (const row of rows.slice(0, portion)) {
        if (items.length === limit) return { items, next: place };
        const account = accountFrom(row);
        if (!filter.isOutOfCredits || account.creditsLeft === 0) items.push(account);
        place = row.id;
      }
      lookedAt += portion;
      if (rows.length <= portion) return { items, next: undefined };
    }
    return { items, next: place };
  };
}

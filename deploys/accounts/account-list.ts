import type { Store } from '../../shared/store/open.ts';
import type { Account, AccountRow } from './account-row.ts';
import { likeOf, type Page, type PageWish, shownOf } from './page.ts';

/** A page of accounts, of those only for which all that is given holds. */
export type AccountWish = PageWish<number> &
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

type Wanted = { before: number; like: string; limit: number; plan?: string | null };

/** Reads accounts page by page, the newest first. */
export function createAccountList(store: Store, accountFrom: (row: AccountRow) => Account) {
  const statement = (condition: string) =>
    store.prepare<AccountRow, Wanted>(`
      SELECT * FROM accounts WHERE ${condition} id < $before AND name LIKE $like ESCAPE '\\'
      ORDER BY id DESC LIMIT $limit`);
  const all = statement('');
  const onPlan = statement('plan IS $plan AND');
  const suspended = statement('suspended = 1 AND');
  const suspendedOnPlan = statement('suspended = 1 AND plan IS $plan AND');

  function readerOf({ plan, isSuspended, search = '' }: AccountWish) {
    const like = likeOf(search);
    const some = isSuspended ? suspendedOnPlan : onPlan;
    return (before: number, limit: number): readonly AccountRow[] => {
      if (plan !== undefined) return some.all({ plan: plan.name ?? null, before, like, limit });
      return (isSuspended ? suspended : all).all({ before, like, limit });
    };
  }

  return function page(wish: AccountWish): Page<Account, number> {
    const read = readerOf(wish);
    const limit = shownOf(wish.limit);
    const portion = wish.isOutOfCredits ? PORTION : limit;
    const items: Account[] = [];
    let place = wish.before ?? Number.MAX_SAFE_INTEGER;
    for (let lookedAt = 0; lookedAt < (wish.isOutOfCredits ? LOOKED_AT_MAX : 1);) {
      // One more than is looked at tells whether there is another page.
      const rows = read(place, portion + 1);
      for (const row of rows.slice(0, portion)) {
        if (items.length === limit) return { items, next: place };
        const account = accountFrom(row);
        if (!wish.isOutOfCredits || account.creditsLeft === 0) items.push(account);
        place = row.id;
      }
      lookedAt += portion;
      if (rows.length <= portion) return { items, next: undefined };
    }
    return { items, next: place };
  };
}

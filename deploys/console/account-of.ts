import type { Store } from '../../shared/store/open.ts';
import type { AccountOf } from './router.ts';

type Row = { id: number; name: string; plan: string | null };

/** Finds the account that a page is about, by its id. */
export function createAccountOf(store: Store): AccountOf {
  const byId = store.prepare<Row, [number]>('SELECT id, name, plan FROM accounts WHERE id = ?');
  return function accountOf(accountId) {
    const row = byId.get(accountId);
    return row === null ? undefined : { ...row, plan: row.plan ?? undefined };
  };
}

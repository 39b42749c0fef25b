import type { Store } from '../store/open.ts';

/** Asks every running app on the accounts database to read its config again; gives the request's number, which only grows. */
export function requestReload(accounts: Store): number {
  const bump = accounts.query<{ config: number }, []>(
    'UPDATE revision SET config = config + 1 RETURNING config',
  );
  const row = bump.get();
  if (row === null) throw new Error('the revision row is missing');
  return row.config;
}

/** The plans that accounts are on, each with the number of its accounts. */
export function plansInUse(accounts: Store): ReadonlyMap<string, number> {
  const rows = accounts.query<{ plan: string; accounts: number }, []>(
    'SELECT plan, count(*) AS accounts FROM accounts WHERE plan IS NOT NULL GROUP BY plan ORDER BY plan',
  );
  return new Map(rows.all().map(({ plan, accounts: count }) => [plan, count]));
}

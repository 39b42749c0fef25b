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

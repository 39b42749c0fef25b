import type { Store } from '../../shared/store/open.ts';

/** Asks every running app to read its config again; gives the request's number, which only grows. */
export function requestReload(store: Store): number {
  const bump = store.query<{ config: number }, []>(
    'UPDATE revision SET config = config + 1 RETURNING config',
  );
  const row = bump.get();
  if (row === null) throw new Error('the revision row is missing');
  return row.config;
}

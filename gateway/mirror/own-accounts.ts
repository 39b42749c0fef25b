import type { Store } from '../../shared/store/open.ts';
import type { OwnAccounts } from './choice.ts';

/** What the accounts database `store` says of itself. */
export function createOwnAccounts(store: Store): OwnAccounts {
  const originOf = store.prepare<{ id: string }, []>('SELECT id FROM origin');
  const publisher = store.prepare<{ token: string }, [string]>(
    'SELECT token FROM publishers WHERE token = ?',
  );
  const any = store.prepare<{ token: string }, []>('SELECT token FROM publishers LIMIT 1');
  const account = store.prepare<{ id: number }, []>('SELECT id FROM accounts LIMIT 1');
  return {
    origin: originOf.get()?.id ?? '',
    hasPublisher: (token) => publisher.get(token) !== null,
    wasPublished: () => any.get() !== null,
    hasAccounts: () => account.get() !== null,
  };
}

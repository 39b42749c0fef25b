import type { Clock } from '../../shared/clock.ts';
import type { KeyId } from '../../shared/keys/api-key.ts';
import type { Store } from '../../shared/store/open.ts';
import { type Page, type PageWish, pageOf } from './page.ts';

/** Where a key stands: `expiring` still works, until its time comes. */
export type KeyState = 'active' | 'expiring' | 'expired' | 'revoked';

/** What is known of a key after it was shown. */
export type KeyRow = Readonly<{
  id: KeyId;
  account: string;
  accountId: number;
  name: string;
  prefix: string;
  last4: string;
  state: KeyState;
  createdAtMs: number;
  lastUsedAtMs: number | undefined;
  expiresAtMs: number | undefined;
}>;

/** Where a key stands in the lists. */
export type KeyPlace = Readonly<{ createdAtMs: number; id: string }>;

export type KeyRows = Readonly<{
  /** `accountId`: only when it is a key of this account. */
  find(id: string, accountId?: number): KeyRow | undefined;
  /** Oldest first; of one account when named. */
  list(account?: string): readonly KeyRow[];
  /**
   * The newest first; of one account when given. With `search`, those that have it in their name or id, in either case
   * of A to Z, and those that end with it.
   */
  page(wish: PageWish<KeyPlace> & Readonly<{ accountId?: number }>): Page<KeyRow, KeyPlace>;
}>;

type Row = {
  id: string;
  account: string;
  account_id: number;
  name: string;
  prefix: string;
  last4: string;
  created_at_ms: number;
  last_used_at_ms: number | null;
  expires_at_ms: number | null;
  revoked_at_ms: number | null;
};

const SELECT = `
  SELECT keys.id, accounts.name AS account, account_id, keys.name, prefix, last4, keys.created_at_ms, last_used_at_ms,
    expires_at_ms, revoked_at_ms FROM keys JOIN accounts ON accounts.id = account_id`;

/** Reads the keys of `store`; a key's state is the one at the moment of the call. */
export function createKeyRows(store: Store, clock: Clock): KeyRows {
  const byId = store.prepare<Row, [string]>(`${SELECT} WHERE keys.id = ?`);
  const all = store.prepare<Row, []>(`${SELECT} ORDER BY keys.created_at_ms, keys.id`);
  const ofAccount = store.prepare<Row, [string]>(
    `${SELECT} WHERE accounts.name = ? ORDER BY keys.created_at_ms, keys.id`,
  );

  const some = store.prepare<Row, PageValues>(pageSql(''));
  const someOfAccount = store.prepare<Row, PageValues & { accountId: number }>(
    pageSql('account_id = $accountId AND'),
  );

  function find(id: string, accountId?: number): KeyRow | undefined {
    const row = byId.get(id);
    if (row === null || (accountId !== undefined && row.account_id !== accountId)) return undefined;
    return keyFrom(row, clock.now());
  }

  function list(account?: string): readonly KeyRow[] {
    const rows = account === undefined ? all.all() : ofAccount.all(account);
    const nowMs = clock.now();
    return rows.map((row) => keyFrom(row, nowMs));
  }

  function page(wish: PageWish<KeyPlace> & Readonly<{ accountId?: number }>): Page<KeyRow, KeyPlace> {
    const { accountId, search = '', before = LAST } = wish;
    const nowMs = clock.now();
    return pageOf(wish, {
      read(like, limit) {
        const values = { like, last4: search, beforeMs: before.createdAtMs, beforeId: before.id, limit };
        const rows = accountId === undefined ? some.all(values) : someOfAccount.all({ ...values, accountId });
        return rows.map((row) => keyFrom(row, nowMs));
      },
      placeOf: ({ createdAtMs, id }) => ({ createdAtMs, id }),
    });
  }

  return { find, list, page };
}

type PageValues = Readonly<{
  like: string;
  last4: string;
  beforeMs: number;
  beforeId: string;
  limit: number;
}>;

const LAST: KeyPlace = { createdAtMs: Number.MAX_SAFE_INTEGER, id: '' };

/** Only what is on the page is read from the tables: the search itself reads an index. */
function pageSql(only: string): string {
  return `${SELECT} WHERE keys.id IN (
    SELECT id FROM keys WHERE ${only} (created_at_ms, id) < ($beforeMs, $beforeId)
      AND (name LIKE $like ESCAPE '\\' OR id LIKE $like ESCAPE '\\' OR last4 = $last4)
    ORDER BY created_at_ms DESC, id DESC LIMIT $limit)
    ORDER BY keys.created_at_ms DESC, keys.id DESC`;
}

function keyFrom(row: Row, nowMs: number): KeyRow {
  return {
    id: row.id as KeyId, // written by `createKeys`, which makes it from the hash
    account: row.account,
    accountId: row.account_id,
    name: row.name,
    prefix: row.prefix,
    last4: row.last4,
    state: stateOf(row, nowMs),
    createdAtMs: row.created_at_ms,
    lastUsedAtMs: row.last_used_at_ms ?? undefined,
    expiresAtMs: row.expires_at_ms ?? undefined,
  };
}

function stateOf({ revoked_at_ms, expires_at_ms }: Row, nowMs: number): KeyState {
  if (revoked_at_ms !== null) return 'revoked';
  if (expires_at_ms === null) return 'active';
  return nowMs < expires_at_ms ? 'expiring' : 'expired';
}

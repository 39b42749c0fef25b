import type { Clock } from '../../shared/clock.ts';
import type { KeyId } from '../../shared/keys/api-key.ts';
import type { Store } from '../../shared/store/open.ts';

/** Where a key stands: `expiring` still works, until its time comes. */
export type KeyState = 'active' | 'expiring' | 'expired' | 'revoked';

/** What is known of a key after it was shown. */
export type KeyRow = Readonly<{
  id: KeyId;
  account: string;
  name: string;
  prefix: string;
  last4: string;
  state: KeyState;
  createdAtMs: number;
  lastUsedAtMs: number | undefined;
  expiresAtMs: number | undefined;
}>;

export type KeyRows = Readonly<{
  find(id: string): KeyRow | undefined;
  /** Oldest first; of one account when named. */
  list(account?: string): readonly KeyRow[];
}>;

type Row = {
  id: string;
  account: string;
  name: string;
  prefix: string;
  last4: string;
  created_at_ms: number;
  last_used_at_ms: number | null;
  expires_at_ms: number | null;
  revoked_at_ms: number | null;
};

const SELECT = `
  SELECT keys.id, accounts.name AS account, keys.name, prefix, last4, keys.created_at_ms, last_used_at_ms,
    expires_at_ms, revoked_at_ms FROM keys JOIN accounts ON accounts.id = account_id`;

/** Reads the keys of `store`; a key's state is the one at the moment of the call. */
export function createKeyRows(store: Store, clock: Clock): KeyRows {
  const byId = store.prepare<Row, [string]>(`${SELECT} WHERE keys.id = ?`);
  const all = store.prepare<Row, []>(`${SELECT} ORDER BY keys.created_at_ms, keys.id`);
  const ofAccount = store.prepare<Row, [string]>(
    `${SELECT} WHERE accounts.name = ? ORDER BY keys.created_at_ms, keys.id`,
  );

  function find(id: string): KeyRow | undefined {
    const row = byId.get(id);
    return row === null ? undefined : keyFrom(row, clock.now());
  }

  function list(account?: string): readonly KeyRow[] {
    const rows = account === undefined ? all.all() : ofAccount.all(account);
    const nowMs = clock.now();
    return rows.map((row) => keyFrom(row, nowMs));
  }

  return { find, list };
}

function keyFrom(row: Row, nowMs: number): KeyRow {
  return {
    id: row.id as KeyId, // written by `createKeys`, which makes it from the hash
    account: row.account,
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

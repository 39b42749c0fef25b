import type { Clock } from '../../shared/clock.ts';
import { type ApiKey, hashOf, type KeyId, keyIdOf, makeApiKey, shownOf } from '../../shared/keys/api-key.ts';
import type { Store } from '../../shared/store/open.ts';
import { isLabel, isReserved, likeOf, type Page, pageLimit, type PageRequest } from './account-row.ts';
import type { Action, Actor, Audit, Detail } from './audit.ts';

/** A key just made: the only time that `key` can be read. */
export type NewKey = Readonly<{ key: ApiKey; id: KeyId; account: string; name: string }>;

/** Under the same `once` a key was made before: none is made now. */
type MadeBefore = Readonly<{ kind: 'made-before'; id: string }>;

/** Keys of an account that may work at once, and that it may make in any 24 hours: each stays as a row. */
export const KEYS_MAX = 1_000;
const DAY_MS = 86_400_000;

/** The account has as many as it may have, or made as many as it may. */
type TooManyKeys = Readonly<{ kind: 'too-many' }>;
/** The same as a sentence for the caller. */
export const TOO_MANY_KEYS = `An account can have at most ${KEYS_MAX} active keys and create at most ${KEYS_MAX} in 24 hours. Revoke unused keys or wait.`;

type CreateResult =
  | { readonly kind: 'created'; readonly made: NewKey }
  | MadeBefore
  | TooManyKeys
  | { readonly kind: 'unknown-account' | 'bad-name' };

type RotateResult =
  /** `oldExpiresAtMs` is when the old key ends: after the grace, or earlier when its end was already set. */
  | { readonly kind: 'rotated'; readonly made: NewKey; readonly oldExpiresAtMs: number }
  | MadeBefore
  | TooManyKeys
  | { readonly kind: 'unknown-key' }
  | { readonly kind: 'ended'; readonly state: 'expired' | 'revoked' };

type RevokeResult =
  { readonly kind: 'revoked' | 'already-revoked'; readonly row: KeyRow } | { readonly kind: 'unknown-key' };

type RenameResult =
  | { readonly kind: 'renamed'; readonly row: KeyRow }
  /** `reserved-name`: the service itself knows the keys of this account by their names. */
  | { readonly kind: 'reserved-name' | 'unknown-key' | 'bad-name' };

type KeysDeps = Readonly<{
  store: Store;
  clock: Clock;
  random(bytes: number): Uint8Array;
  note: Audit['note'];
}>;

/**
 * The keys of `store`. Only hashes are stored: a key is shown when it is made and never again. Every change is written to the
 * audit log. With `owner`, the id of an account, a key of another account is unknown. `once` is the id of a form: sent twice
 * it makes one key, because a second one would never be seen. `random` gives n uniform bytes.
 */
export function createKeys({ store, clock, random, note }: KeysDeps) {
  const { find, list, page } = createKeyRows(store, clock);
  const accountId = store.prepare<{ id: number }, [string]>('SELECT id FROM accounts WHERE name = ?');
  const insert = store.prepare(`
    INSERT INTO keys (id, account_id, name, hash, prefix, last4, created_at_ms, once) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`);
  const byForm = store.prepare<{ id: string }, [number, string]>(`
    SELECT id FROM keys WHERE account_id = ? AND once = ?`);
  const working = store.prepare<{ n: number }, [number, number]>(`
    SELECT count(*) AS n FROM keys INDEXED BY keys_working
    WHERE account_id = ? AND revoked_at_ms IS NULL AND coalesce(expires_at_ms, 9e15) > ?`);
  const recent = store.prepare<{ n: number }, [number, number]>(`
    SELECT count(*) AS n FROM keys INDEXED BY keys_of_account_by_age WHERE account_id = ? AND created_at_ms > ?`);

  const create = store.transaction(
    (account: string, name: string, by: Actor, once?: string): CreateResult => {
      if (!isLabel(name)) return { kind: 'bad-name' };
      const owner = accountId.get(account);
      if (owner === null) return { kind: 'unknown-account' };
      const before = madeBefore(owner.id, once);
      if (before !== undefined) return before;
      if (isFull(account, owner.id)) return { kind: 'too-many' };
      const made = make(account, owner.id, name, once);
      record('key.create', made.id, owner.id, by, { name });
      return { kind: 'created', made };
    },
  );

  const rename = store.transaction((id: string, name: string, by: Actor, owner?: number): RenameResult => {
    const row = find(id, owner);
    if (row === undefined) return { kind: 'unknown-key' };
    if (!isLabel(name)) return { kind: 'bad-name' };
    if (isReserved(row.account)) return { kind: 'reserved-name' };
    if (name !== row.name) {
      store.run('UPDATE keys SET name = ? WHERE id = ?', [name, id]);
      record('key.rename', id, row.accountId, by, { from: row.name, to: name });
    }
    return { kind: 'renamed', row: { ...row, name } };
  });

  const rotate = store.transaction(
    (id: string, graceMs: number, by: Actor, owner?: number, once?: string): RotateResult => {
      const old = find(id, owner);
      if (old === undefined) return { kind: 'unknown-key' };
      const before = madeBefore(old.accountId, once);
      if (before !== undefined) return before;
      if (old.state === 'expired' || old.state === 'revoked') return { kind: 'ended', state: old.state };
      if (isFull(old.account, old.accountId)) return { kind: 'too-many' };
      const oldExpiresAtMs = Math.min(clock.now() + graceMs, old.expiresAtMs ?? Number.POSITIVE_INFINITY);
      const made = make(old.account, old.accountId, old.name, once);
      store.run('UPDATE keys SET expires_at_ms = ? WHERE id = ?', [oldExpiresAtMs, id]);
      record('key.rotate', id, old.accountId, by, { new_key_id: made.id, old_expires_at_ms: oldExpiresAtMs });
      return { kind: 'rotated', made, oldExpiresAtMs };
    },
  );

  const revoke = store.transaction((id: string, by: Actor, owner?: number): RevokeResult => {
    const row = find(id, owner);
    if (row === undefined) return { kind: 'unknown-key' };
    if (row.state === 'revoked') return { kind: 'already-revoked', row };
    store.run('UPDATE keys SET revoked_at_ms = ? WHERE id = ?', [clock.now(), id]);
    record('key.revoke', id, row.accountId, by, { name: row.name });
    return { kind: 'revoked', row: { ...row, state: 'revoked' } };
  });

  function madeBefore(owner: number, once: string | undefined): MadeBefore | undefined {
    const row = once === undefined ? null : byForm.get(owner, once);
    return row === null ? undefined : { kind: 'made-before', id: row.id };
  }

  /** The service makes its own keys at every start. */
  function isFull(account: string, owner: number): boolean {
    if (isReserved(account)) return false;
    const counts = [working.get(owner, clock.now())?.n ?? 0, recent.get(owner, clock.now() - DAY_MS)?.n ?? 0];
    return Math.max(...counts) >= KEYS_MAX;
  }

  function make(account: string, owner: number, name: string, once: string | undefined): NewKey {
    const key = makeApiKey(random);
    const hash = hashOf(key);
    const id = keyIdOf(hash);
    const { prefix, last4 } = shownOf(key);
    insert.run(id, owner, name, hash, prefix, last4, clock.now(), once ?? null);
    return { key, id, account, name };
  }

  function record(action: Action, id: string, owner: number, actor: Actor, detail: Detail): void {
    note({ atMs: clock.now(), actor, action, accountId: owner, subject: id, detail });
  }

  return {
    create: create.immediate,
    rename: rename.immediate,
    /** The new key begins now; the old one goes on working for `graceMs`. */
    rotate: rotate.immediate,
    revoke: revoke.immediate,
    find,
    list,
    page,
  };
}

export type Keys = ReturnType<typeof createKeys>;

/** `expiring`: the key works until its end. */
export type KeyState = 'active' | 'expiring' | 'expired' | 'revoked';

/** A key without its secret, as it is known after it was shown. */
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

type KeyPlace = Readonly<{ createdAtMs: number; id: string }>;

type StoredKeyRow = Omit<KeyRow, 'state' | 'lastUsedAtMs' | 'expiresAtMs'> &
  Readonly<Record<'lastUsedAtMs' | 'expiresAtMs' | 'revokedAtMs', number | null>>;

const SELECT = `
  SELECT keys.id, accounts.name AS account, account_id AS accountId, keys.name, prefix, last4,
    keys.created_at_ms AS createdAtMs, last_used_at_ms AS lastUsedAtMs, expires_at_ms AS expiresAtMs,
    revoked_at_ms AS revokedAtMs
  FROM keys JOIN accounts ON accounts.id = account_id`;

const LAST: KeyPlace = { createdAtMs: Number.MAX_SAFE_INTEGER, id: '' };

/** Reads the keys of `store`; a key's state is the one at the moment of the call. */
function createKeyRows(store: Store, clock: Clock) {
  const byId = store.prepare<StoredKeyRow, [string]>(`${SELECT} WHERE keys.id = ?`);
  const read = (rest: string, values: Record<string, string | number>): readonly KeyRow[] =>
    store.query<StoredKeyRow, Record<string, string | number>>(`${SELECT} ${rest}`).all(values).map(keyFrom);

  function keyFrom({ revokedAtMs, expiresAtMs, lastUsedAtMs, ...row }: StoredKeyRow): KeyRow {
    return {
      ...row,
      state: revokedAtMs === null ? stateUntil(expiresAtMs) : 'revoked',
      lastUsedAtMs: lastUsedAtMs ?? undefined,
      expiresAtMs: expiresAtMs ?? undefined,
    };
  }

  function stateUntil(expiresAtMs: number | null): KeyState {
    if (expiresAtMs === null) return 'active';
    return clock.now() < expiresAtMs ? 'expiring' : 'expired';
  }

  return {
    /** `accountId`: only when it is a key of this account. */
    find(id: string, accountId?: number): KeyRow | undefined {
      const row = byId.get(id);
      return row === null || (accountId ?? row.accountId) !== row.accountId ? undefined : keyFrom(row);
    },
    /** Oldest first; of one account when named. */
    list: (account?: string): readonly KeyRow[] =>
      read(
        `${account === undefined ? '' : 'WHERE accounts.name = $account'} ORDER BY keys.created_at_ms, keys.id`,
        account === undefined ? {} : { account },
      ),
    /** The newest first. `search`: a part of the name or id in either case of A to Z, or the last four characters. */
    page(request: PageRequest<KeyPlace> & Readonly<{ accountId?: number }>): Page<KeyRow, KeyPlace> {
      const { accountId, search = '', before = LAST } = request;
      const shown = pageLimit(request.limit);
      // The search itself reads an index, and only rows of the page are read from the tables. One row more than the page
      // shows whether there is another page.
      const rows = read(
        `WHERE keys.id IN (
          SELECT id FROM keys WHERE ${accountId === undefined ? '' : 'account_id = $accountId AND'}
            (created_at_ms, id) < ($beforeMs, $beforeId)
            AND (name LIKE $like ESCAPE '\\' OR id LIKE $like ESCAPE '\\' OR last4 = $search)
          ORDER BY created_at_ms DESC, id DESC LIMIT $limit)
        ORDER BY keys.created_at_ms DESC, keys.id DESC`,
        {
          like: likeOf(search),
          search,
          accountId: accountId ?? 0,
          beforeMs: before.createdAtMs,
          beforeId: before.id,
          limit: shown + 1,
        },
      );
      const items = rows.slice(0, shown);
      const last = rows.length > shown ? items.at(-1) : undefined;
      return { items, next: last && { createdAtMs: last.createdAtMs, id: last.id } };
    },
  };
}

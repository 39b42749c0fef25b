import type { Clock } from '../../shared/clock.ts';
import { type ApiKey, hashOf, type KeyId, keyIdOf, makeApiKey, shownOf } from '../../shared/keys/api-key.ts';
import type { Store } from '../../shared/store/open.ts';
import type { Actor } from '../audit/actor.ts';
import type { Detail } from '../audit/audit.ts';
import type { ChangeAction, NoteChange } from './change-note.ts';
import { createKeyRows, type KeyRow, type KeyRows } from './key-row.ts';
import { isLabel } from './label.ts';
import { isReserved } from './reserved.ts';

/** A key just made: the only time that `key` can be read. */
export type NewKey = Readonly<{ key: ApiKey; id: KeyId; account: string; name: string }>;

/** Under the same `once` a key was made before: none is made now. */
export type MadeBefore = Readonly<{ kind: 'made-before'; id: string }>;

/** Keys of an account that may work at once, and that it may make in any 24 hours: each stays as a row. */
export const KEYS_MAX = 1_000;
const DAY_MS = 86_400_000;

/** The account has as many as it may have, or made as many as it may. */
export type TooManyKeys = Readonly<{ kind: 'too-many' }>;
/** The same in a sentence for whoever asked. */
export const TOO_MANY_KEYS = `An account has at most ${KEYS_MAX} keys that work, and makes at most ${KEYS_MAX} in 24 hours. Revoke some that are not used, or wait.`;

export type CreateResult =
  | { readonly kind: 'created'; readonly made: NewKey }
  | MadeBefore
  | TooManyKeys
  | { readonly kind: 'unknown-account' }
  | { readonly kind: 'bad-name' };

export type RotateResult =
  /** `oldExpiresAtMs` is when the old key ends: after the grace, or earlier when its end was already set. */
  | { readonly kind: 'rotated'; readonly made: NewKey; readonly oldExpiresAtMs: number }
  | MadeBefore
  | TooManyKeys
  | { readonly kind: 'unknown-key' }
  | { readonly kind: 'ended'; readonly state: 'expired' | 'revoked' };

export type RevokeResult =
  | { readonly kind: 'revoked'; readonly row: KeyRow }
  | { readonly kind: 'already-revoked'; readonly row: KeyRow }
  | { readonly kind: 'unknown-key' };

export type RenameResult =
  | { readonly kind: 'renamed'; readonly row: KeyRow }
  /** The service itself knows the keys of this account by their names. */
  | { readonly kind: 'reserved-name' }
  | { readonly kind: 'unknown-key' }
  | { readonly kind: 'bad-name' };

/**
 * Every change is noted with who made it; what changes nothing is not. With `accountId`, a key of another account is
 * unknown. `once` names the form that asks: the same one of an account makes one key, however often it is sent, because
 * nobody would see the second.
 */
export type Keys = KeyRows &
  Readonly<{
    create(account: string, name: string, by: Actor, once?: string): CreateResult;
    rename(id: string, name: string, by: Actor, accountId?: number): RenameResult;
    /** The new key begins now; the old one goes on working for so long, in milliseconds. */
    rotate(id: string, graceMs: number, by: Actor, accountId?: number, once?: string): RotateResult;
    revoke(id: string, by: Actor, accountId?: number): RevokeResult;
  }>;

/** `random` gives n uniform bytes. */
export type KeyDeps = Readonly<{
  store: Store;
  clock: Clock;
  random: (bytes: number) => Uint8Array;
  note: NoteChange;
}>;

/** The keys of `store`. Only hashes are stored: a key is shown when it is made and never again. */
export function createKeys({ store, clock, random, note }: KeyDeps): Keys {
  const { find, list, page } = createKeyRows(store, clock);
  const accountId = store.prepare<{ id: number }, [string]>('SELECT id FROM accounts WHERE name = ?');
  const insert = store.prepare(`
    INSERT INTO keys (id, account_id, name, hash, prefix, last4, created_at_ms, once) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`);
  const byForm = store.prepare<{ id: string }, [number, string]>(
    'SELECT id FROM keys WHERE account_id = ? AND once = ?',
  );
  const working = store.prepare<{ n: number }, [number, number]>(`
    SELECT count(*) AS n FROM keys INDEXED BY keys_working
    WHERE account_id = ? AND revoked_at_ms IS NULL AND coalesce(expires_at_ms, 9e15) > ?`);
  const recent = store.prepare<{ n: number }, [number, number]>(`
    SELECT count(*) AS n FROM keys INDEXED BY keys_of_account_by_age WHERE account_id = ? AND created_at_ms > ?`);
  const expire = store.prepare('UPDATE keys SET expires_at_ms = ? WHERE id = ?');
  const end = store.prepare('UPDATE keys SET revoked_at_ms = ? WHERE id = ?');

  const setName = store.prepare('UPDATE keys SET name = ? WHERE id = ?');

  const create = store.transaction(
    (account: string, name: string, by: Actor, once?: string): CreateResult => {
      if (!isLabel(name)) return { kind: 'bad-name' };
      const owner = accountId.get(account);
      if (owner === null) return { kind: 'unknown-account' };
      const before = madeBefore(owner.id, once);
      if (before !== undefined) return before;
      if (isFull(account, owner.id)) return { kind: 'too-many' };
      const made = make(account, owner.id, name, once);
      tell('key.create', made.id, owner.id, by, { name });
      return { kind: 'created', made };
    },
  );

  const rename = store.transaction((id: string, name: string, by: Actor, owner?: number): RenameResult => {
    const row = find(id, owner);
    if (row === undefined) return { kind: 'unknown-key' };
    if (!isLabel(name)) return { kind: 'bad-name' };
    if (isReserved(row.account)) return { kind: 'reserved-name' };
    if (name !== row.name) {
      setName.run(name, id);
      tell('key.rename', id, row.accountId, by, { from: row.name, to: name });
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
      expire.run(oldExpiresAtMs, id);
      tell('key.rotate', id, old.accountId, by, { new_key_id: made.id, old_expires_at_ms: oldExpiresAtMs });
      return { kind: 'rotated', made, oldExpiresAtMs };
    },
  );

  const revoke = store.transaction((id: string, by: Actor, owner?: number): RevokeResult => {
    const row = find(id, owner);
    if (row === undefined) return { kind: 'unknown-key' };
    if (row.state === 'revoked') return { kind: 'already-revoked', row };
    end.run(clock.now(), id);
    tell('key.revoke', id, row.accountId, by, { name: row.name });
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

  function tell(action: ChangeAction, id: string, owner: number, actor: Actor, detail: Detail): void {
    note({ atMs: clock.now(), actor, action, accountId: owner, subject: id, detail });
  }

  return {
    create: create.immediate,
    rename: rename.immediate,
    rotate: rotate.immediate,
    revoke: revoke.immediate,
    find,
    list,
    page,
  };
}

import type { Clock } from '../../shared/clock.ts';
import { type ApiKey, hashOf, type KeyId, keyIdOf, makeApiKey, shownOf } from '../../shared/keys/api-key.ts';
import type { Store } from '../../shared/store/open.ts';
import { createKeyRows, type KeyRow, type KeyRows } from './key-row.ts';
import { isLabel } from './label.ts';

/** A key just made: the only time that `key` can be read. */
export type NewKey = Readonly<{ key: ApiKey; id: KeyId; account: string; name: string }>;

export type CreateResult =
  | { readonly kind: 'created'; readonly made: NewKey }
  | { readonly kind: 'unknown-account' }
  | { readonly kind: 'bad-name' };

export type RotateResult =
  /** `oldExpiresAtMs` is when the old key ends: after the grace, or earlier when its end was already set. */
  | { readonly kind: 'rotated'; readonly made: NewKey; readonly oldExpiresAtMs: number }
  | { readonly kind: 'unknown-key' }
  | { readonly kind: 'ended'; readonly state: 'expired' | 'revoked' };

export type RevokeResult =
  | { readonly kind: 'revoked'; readonly row: KeyRow }
  | { readonly kind: 'already-revoked'; readonly row: KeyRow }
  | { readonly kind: 'unknown-key' };

export type Keys = KeyRows &
  Readonly<{
    create(account: string, name: string): CreateResult;
    rotate(id: string, graceMs: number): RotateResult;
    revoke(id: string): RevokeResult;
  }>;

/** `random` gives n uniform bytes. */
export type KeyDeps = Readonly<{ store: Store; clock: Clock; random: (bytes: number) => Uint8Array }>;

/** The keys of `store`. Only hashes are stored: a key is shown when it is made and never again. */
export function createKeys({ store, clock, random }: KeyDeps): Keys {
  const { find, list } = createKeyRows(store, clock);
  const accountId = store.prepare<{ id: number }, [string]>('SELECT id FROM accounts WHERE name = ?');
  const insert = store.prepare(`
    INSERT INTO keys (id, account_id, name, hash, prefix, last4, created_at_ms) VALUES (?, ?, ?, ?, ?, ?, ?)`);
  const expire = store.prepare('UPDATE keys SET expires_at_ms = ? WHERE id = ?');
  const end = store.prepare('UPDATE keys SET revoked_at_ms = ? WHERE id = ?');

  const create = store.transaction((account: string, name: string): CreateResult => {
    if (!isLabel(name)) return { kind: 'bad-name' };
    const owner = accountId.get(account);
    if (owner === null) return { kind: 'unknown-account' };
    const key = makeApiKey(random);
    const hash = hashOf(key);
    const id = keyIdOf(hash);
    const { prefix, last4 } = shownOf(key);
    insert.run(id, owner.id, name, hash, prefix, last4, clock.now());
    return { kind: 'created', made: { key, id, account, name } };
  });

  const rotate = store.transaction((id: string, graceMs: number): RotateResult => {
    const old = find(id);
    if (old === undefined) return { kind: 'unknown-key' };
    if (old.state === 'expired' || old.state === 'revoked') return { kind: 'ended', state: old.state };
    const oldExpiresAtMs = Math.min(clock.now() + graceMs, old.expiresAtMs ?? Number.POSITIVE_INFINITY);
    const created = create(old.account, old.name);
    if (created.kind !== 'created') throw new Error(`the account of key ${id} vanished`);
    expire.run(oldExpiresAtMs, id);
    return { kind: 'rotated', made: created.made, oldExpiresAtMs };
  });

  const revoke = store.transaction((id: string): RevokeResult => {
    const row = find(id);
    if (row === undefined) return { kind: 'unknown-key' };
    if (row.state === 'revoked') return { kind: 'already-revoked', row };
    end.run(clock.now(), id);
    return { kind: 'revoked', row: { ...row, state: 'revoked' } };
  });

  return { create: create.immediate, rotate: rotate.immediate, revoke: revoke.immediate, find, list };
}

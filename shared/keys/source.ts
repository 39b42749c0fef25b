import type { Store } from '../store/open.ts';
import type { KeyId } from './api-key.ts';
import type { Identity } from './identify.ts';

/** A key that is not revoked, as its row says. `identity` is made once, so that a hit allocates nothing. */
export type KnownKey = Readonly<{
  identity: Extract<Identity, { kind: 'known' }>;
  suspended: boolean;
  expiresAtMs: number | undefined;
}>;

/** Where keys are kept. Both functions answer at once; they throw when the store does not answer. */
export type KeySource<Elsewhere = never> = Readonly<{
  /** `undefined`: there is no such key, or it is revoked; `Elsewhere`: only a store across the network can tell. */
  read(hash: Buffer): KnownKey | Elsewhere | undefined;
  /** A number that grows with every change of a key or an account. */
  revision(): number | undefined;
}>;

type Row = {
  id: string;
  account_id: number;
  plan: string | null;
  credits_granted: number | null;
  suspended: number;
  expires_at_ms: number | null;
};

/** The keys of `store`. */
export function createKeySource(store: Store): KeySource {
  const byHash = store.prepare<Row, [Buffer]>(`
    SELECT keys.id, account_id, plan, credits_granted, suspended, expires_at_ms
    FROM keys JOIN accounts ON accounts.id = account_id WHERE hash = ? AND revoked_at_ms IS NULL`);
  const revisionOf = store.prepare<{ value: number }, []>('SELECT value FROM revision');

  function read(hash: Buffer): KnownKey | undefined {
    const row = byHash.get(hash);
    return row === null ? undefined : knownFrom(row);
  }

  return { read, revision: () => revisionOf.get()?.value };
}

function knownFrom(row: Row): KnownKey {
  return {
    identity: {
      kind: 'known',
      caller: {
        keyId: row.id as KeyId, // written by createKeys, which makes it from the hash
        accountId: row.account_id,
        plan: row.plan ?? undefined,
        creditsGranted: row.credits_granted ?? undefined,
      },
    },
    suspended: row.suspended === 1,
    expiresAtMs: row.expires_at_ms ?? undefined,
  };
}

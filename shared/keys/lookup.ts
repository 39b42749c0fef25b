import type { Store } from '../store/open.ts';
import type { KeyId } from './api-key.ts';
import type { Identity } from './identify.ts';

/** A key that is not revoked, as its row says. `identity` is made once, so that a hit allocates nothing. */
export type KnownKey = Readonly<{
  identity: Extract<Identity, { kind: 'known' }>;
  suspended: boolean;
  expiresAtMs: number | undefined;
}>;

export type KeyLookup = Readonly<{
  find(hash: Buffer): KnownKey | 'unknown' | 'unavailable';
  refresh(): void;
}>;

/** Keys kept in memory; the oldest go first. About 300 bytes each. */
const KNOWN_MAX = 100_000;
/** Unknown keys remembered, so that a guesser's repeats cost no look-up. */
const UNKNOWN_MAX = 50_000;

type Row = {
  id: string;
  account_id: number;
  plan: string | null;
  credits_granted: number | null;
  suspended: number;
  expires_at_ms: number | null;
};

/** Finds keys by hash, from memory when the store's revision has not moved since they were read. */
export function createKeyLookup(store: Store): KeyLookup {
  const byHash = store.prepare<Row, [Buffer]>(`
    SELECT keys.id, account_id, plan, credits_granted, suspended, expires_at_ms
    FROM keys JOIN accounts ON accounts.id = account_id WHERE hash = ? AND revoked_at_ms IS NULL`);
  const revisionOf = store.prepare<{ value: number }, []>('SELECT value FROM revision');
  const known = new Map<string, KnownKey>();
  const unknown = new Set<string>();
  let revision: number | undefined;

  function find(hash: Buffer) {
    const name = hash.toString('latin1');
    const hit = known.get(name);
    if (hit !== undefined) return hit;
    if (unknown.has(name)) return 'unknown';
    try {
      const row = byHash.get(hash);
      if (row === null) return remember(unknown, name, UNKNOWN_MAX);
      const key = knownFrom(row);
      trim(known, KNOWN_MAX);
      known.set(name, key);
      return key;
    } catch {
      return 'unavailable';
    }
  }

  function refresh() {
    try {
      const value = revisionOf.get()?.value;
      if (value === revision) return;
      revision = value;
      known.clear();
      unknown.clear();
    } catch {
      // The store does not answer: what is in memory stands until it does.
    }
  }

  return { find, refresh };
}

function remember(names: Set<string>, name: string, max: number): 'unknown' {
  trim(names, max);
  names.add(name);
  return 'unknown';
}

/** Makes room for one more by dropping the oldest. */
function trim(kept: Map<string, unknown> | Set<string>, max: number) {
  if (kept.size < max) return;
  for (const name of kept.keys()) {
    kept.delete(name);
    break;
  }
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

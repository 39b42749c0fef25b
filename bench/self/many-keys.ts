import { type ApiKey, hashOf, keyIdOf, makeApiKey, shownOf } from '../../shared/keys/api-key.ts';
import type { Store } from '../../shared/store/open.ts';

/** The key of account `id`: the same in every process, so that none has to hold a million. */
export function keyAt(id: number): ApiKey {
  let state = id >>> 0;
  return makeApiKey((count) => {
    const bytes = new Uint8Array(count);
    for (let i = 0; i < count; i++) {
      // Numerical Recipes' generator: keys need to differ, not to be secret.
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      bytes[i] = state >>> 24;
    }
    return bytes;
  });
}

/** Adds accounts from 1 to `count` with a key each, in one transaction. */
export function addAccounts(store: Store, plan: string, count: number): void {
  const account = store.prepare('INSERT INTO accounts (id, name, plan, created_at_ms) VALUES (?, ?, ?, 0)');
  const key = store.prepare(
    "INSERT INTO keys (id, account_id, name, hash, prefix, last4, created_at_ms) VALUES (?, ?, 'bench', ?, ?, ?, 0)",
  );
  const addAll = store.transaction(() => {
    for (let id = 1; id <= count; id++) {
      const text = keyAt(id);
      const hash = hashOf(text);
      const { prefix, last4 } = shownOf(text);
      account.run(id, `account ${id}`, plan);
      key.run(keyIdOf(hash), id, hash, prefix, last4);
    }
  });
  addAll.immediate();
}

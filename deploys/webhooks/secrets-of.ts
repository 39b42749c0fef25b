import type { Store } from '../../shared/store/open.ts';
import type { SecretsOf } from '../delivery/attempt.ts';
import type { Seal } from './seal.ts';

type Row = {
  account_id: number;
  secret_ct: Uint8Array;
  secret_kid: number;
  next_secret_ct: Uint8Array | null;
  next_secret_kid: number | null;
  next_secret_at_ms: number | null;
};

/** The secrets to sign with, from `store`. A secret that waits takes over at its instant, without anybody's doing. */
export function createSecretsOf(store: Store, seal: Pick<Seal, 'unseal'>): SecretsOf {
  const find = store.prepare<Row, [string]>(`
    SELECT account_id, secret_ct, secret_kid, next_secret_ct, next_secret_kid, next_secret_at_ms
    FROM webhooks WHERE id = ? AND deleted_at_ms IS NULL`);

  return function secretsOf(webhookId, atMs) {
    const row = find.get(webhookId);
    if (row === null) throw new Error(`there is no webhook ${webhookId}`);
    const open = (ciphertext: Uint8Array, keyId: number) =>
      seal.unseal({ ciphertext, keyId }, { accountId: row.account_id, webhookId });
    const { next_secret_ct, next_secret_kid, next_secret_at_ms } = row;
    if (next_secret_ct === null || next_secret_kid === null || next_secret_at_ms === null)
      return { current: open(row.secret_ct, row.secret_kid), next: undefined };
    const next = open(next_secret_ct, next_secret_kid);
    if (next_secret_at_ms <= atMs) return { current: next, next: undefined };
    return { current: open(row.secret_ct, row.secret_kid), next };
  };
}

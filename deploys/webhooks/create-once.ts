import { createHash } from 'node:crypto';
import type { Clock } from '../../shared/clock.ts';
import type { Secret } from '../../shared/secret.ts';
import type { Store } from '../../shared/store/open.ts';
import type { By } from '../audit/actor.ts';
import type { SecretsOf } from '../delivery/attempt.ts';
import { IDEMPOTENCY_KEPT_MS } from '../outbox/prune.ts';
import type { Create, Created } from './create.ts';
import type { Settings } from './settings.ts';
import type { Webhook, WebhookRows } from './webhook.ts';

export type CreatedOnce =
  | Created
  /** The webhook that the key made before, and the secret that signs now. */
  | Readonly<{ kind: 'replayed'; webhook: Webhook; secret: Secret }>
  /** It led to a webhook with other settings. */
  | Readonly<{ kind: 'key-reused' }>
  /** Another request with the key has not come to its end. */
  | Readonly<{ kind: 'key-under-way' }>;

type Given = Pick<Settings, 'url'> & Partial<Settings>;
type Made = { settingsHash: Uint8Array; webhookId: string };
type Deps = Readonly<{ store: Store; rows: WebhookRows; clock: Clock; create: Create; secretsOf: SecretsOf }>;

/**
 * Makes a webhook under a key that its caller chose: the same key and settings again make no second one
 * (draft-ietf-httpapi-idempotency-key-header). What was refused is not remembered, so that it can be tried again; so an account
 * has no more keys than webhooks that it may have or have deleted in that time.
 */
export function createCreateOnce({ store, rows, clock, create, secretsOf }: Deps) {
  const find = store.prepare<Made, [number, Uint8Array, number]>(`
    SELECT settings_hash AS settingsHash, webhook_id AS webhookId FROM webhook_idempotency
    WHERE account_id = ? AND key_hash = ? AND created_at_ms > ?`);
  const keep = store.prepare<null, [number, Uint8Array, Uint8Array, string, number]>(
    'INSERT OR REPLACE INTO webhook_idempotency VALUES (?, ?, ?, ?, ?)',
  );
  const underWay = new Set<string>();

  function again(accountId: number, made: Made, settingsHash: Buffer): CreatedOnce {
    if (!settingsHash.equals(made.settingsHash)) return { kind: 'key-reused' };
    const { webhookId } = made;
    const webhook = rows.find(accountId, webhookId, clock.now());
    if (webhook === undefined) return { kind: 'made-before', webhookId };
    return { kind: 'replayed', webhook, secret: secretsOf(webhookId, clock.now()).current };
  }

  return async function createOnce(
    by: By,
    key: string,
    given: Given,
    signal: AbortSignal,
  ): Promise<CreatedOnce> {
    const { accountId } = by;
    const [keyHash, settingsHash] = [hashOf(key), hashOf(textOf(given))];
    const made = find.get(accountId, keyHash, clock.now() - IDEMPOTENCY_KEPT_MS);
    if (made !== null) return again(accountId, made, settingsHash);
    const name = `${accountId} ${key}`;
    if (underWay.has(name)) return { kind: 'key-under-way' };
    underWay.add(name);
    try {
      const inSameTransaction = (webhookId: string) =>
        void keep.run(accountId, keyHash, settingsHash, webhookId, clock.now());
      return await create(by, { ...given, inSameTransaction }, signal);
    } finally {
      underWay.delete(name);
    }
  };
}

/** Equal for bodies that ask for the same, however they are written. */
function textOf({ url, programs = null, description = '' }: Given): string {
  return JSON.stringify([url, programs, description]);
}

function hashOf(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

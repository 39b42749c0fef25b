import { createHash } from 'node:crypto';
import type { Secret } from '../../shared/secret.ts';
import type { By } from '../accounts/audit.ts';
import type { SecretsOf } from '../delivery/send.ts';
import { uuidFrom } from '../outbox/enqueue.ts';
import { IDEMPOTENCY_KEPT_MS } from '../outbox/prune.ts';
import { makeWebhookSecret, type Seal } from './seal.ts';
import type { Check, CheckSettings, Settings } from './settings.ts';
import type { Webhook, WebhookDeps } from './webhook.ts';

/** Webhooks an account may have. */
export const WEBHOOKS_MAX = 100;
/** Deleted ones beside them while their deliveries are kept, or making and deleting would fill the disk. */
export const DELETED_MAX = 400;

type Created =
  /** The only time that the secret can be read. */
  | Readonly<{ kind: 'created'; webhook: Webhook; secret: Secret }>
  | Readonly<{ kind: 'too-many' }>
  /** The form was sent before; what it made then, if it is there still. */
  | Readonly<{ kind: 'made-before'; webhookId: string }>
  | Exclude<Check, { kind: 'checked' }>;

type NewSettings = Pick<Settings, 'url'> & Partial<Settings>;
/**
 * `once` names the form that asks: the same one of an account makes one webhook, however often it is sent.
 * `inSameTransaction` is called with the id of a webhook that is made.
 */
type Given = NewSettings & Readonly<{ once?: string; inSameTransaction?(webhookId: string): void }>;

/** Makes a webhook for an account. Its secret is sealed before it is stored, and is in no later answer. */
export function createCreate(
  { store, rows, clock, audit }: WebhookDeps,
  seal: Seal,
  check: CheckSettings,
  random: (bytes: number) => Uint8Array,
) {
  const add = store.prepare<
    unknown,
    [string, number, string, string, string, string | null, Uint8Array, number, number]
  >(`
    INSERT INTO webhooks (id, account_id, url, host, description, programs_json, secret_ct, secret_kid,
      created_at_ms, updated_at_ms)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9)`);

  const isThere = store.prepare<unknown, [string]>('SELECT 1 FROM webhooks WHERE id = ?');

  const insert = store.transaction(
    (
      { accountId, actor }: By,
      id: string,
      { href, hostname }: URL,
      more: Partial<Settings>,
      also: Given['inSameTransaction'],
    ): Created => {
      if (isThere.get(id) !== null) return { kind: 'made-before', webhookId: id };
      if (rows.count(accountId) >= WEBHOOKS_MAX || rows.countDeleted(accountId) >= DELETED_MAX)
        return { kind: 'too-many' };
      const [secret, nowMs] = [makeWebhookSecret(random), clock.now()];
      const { ciphertext, keyId } = seal.seal(secret, { accountId, webhookId: id });
      const { description = '', programs } = more;
      const programsJson = programs ? JSON.stringify(programs) : null;
      add.run(id, accountId, href, hostname, description, programsJson, ciphertext, keyId, nowMs);
      const detail = { host: hostname, programs: programs ?? 'all' };
      audit.note({ atMs: nowMs, actor, action: 'webhook.create', accountId, subject: id, detail });
      also?.(id);
      const webhook = rows.find(accountId, id, nowMs);
      if (webhook === undefined) throw new Error(`the webhook ${id} is not there after it was made`);
      return { kind: 'created', webhook, secret };
    },
  );

  return async function create(
    by: By,
    { once, inSameTransaction, ...given }: Given,
    signal: AbortSignal,
  ): Promise<Created> {
    const result = await check(given, signal);
    if (result.kind !== 'checked') return result;
    const { url, ...more } = result.checked;
    if (url === undefined) throw new Error('a webhook was checked without its URL');
    return insert.immediate(
      by,
      uuidFrom(once === undefined ? random : bytesOf(by.accountId, once)),
      url,
      more,
      inSameTransaction,
    );
  };
}

/** The id that a form leads to: the same every time, and no other id can be aimed at. */
function bytesOf(accountId: number, once: string) {
  const digest = createHash('sha256').update(`webhook of ${accountId} by ${once}`).digest();
  return (bytes: number) => digest.subarray(0, bytes);
}

type CreatedOnce =
  | Created
  /** The webhook that the key made before, and the secret that signs now. */
  | Readonly<{ kind: 'replayed'; webhook: Webhook; secret: Secret }>
  /** It led to a webhook with other settings. */
  | Readonly<{ kind: 'key-reused' }>
  /** Another request with the key has not come to its end. */
  | Readonly<{ kind: 'key-under-way' }>;

type Made = { settingsHash: Uint8Array; webhookId: string };

/**
 * Makes a webhook under a key that its caller chose: the same key and settings again make no second one
 * (draft-ietf-httpapi-idempotency-key-header). What was refused is not remembered, so that it can be tried again; so an account
 * has no more keys than webhooks that it may have or have deleted in that time.
 */
export function createCreateOnce(
  { store, rows, clock }: WebhookDeps,
  create: ReturnType<typeof createCreate>,
  secretsOf: SecretsOf,
) {
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
    given: NewSettings,
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
function textOf({ url, programs = null, description = '' }: NewSettings): string {
  return JSON.stringify([url, programs, description]);
}

function hashOf(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

import { createHash } from 'node:crypto';
import type { Secret } from '../../shared/secret.ts';
import type { By } from '../accounts/audit.ts';
import type { SecretsOf } from '../delivery/send.ts';
import { uuidFrom } from '../outbox/enqueue.ts';
import { IDEMPOTENCY_KEPT_MS } from '../outbox/prune.ts';
import { makeWebhookSecret, type Seal } from './seal.ts';
import type { Check, Checked, CheckSettings, Settings } from './settings.ts';
import type { Webhook, WebhookDeps } from './webhook.ts';

export const WEBHOOKS_MAX = 100;
/** Deleted ones whose deliveries are still kept, or creating and deleting would fill the disk. */
export const DELETED_MAX = 400;

type Created =
  /** The only time that the secret can be read. */
  | Readonly<{ kind: 'created'; webhook: Webhook; secret: Secret }>
  | Readonly<{ kind: 'too-many' }>
  /** The form was sent before, and made this webhook. */
  | Readonly<{ kind: 'made-before'; webhookId: string }>
  | Exclude<Check, { kind: 'checked' }>;

type NewSettings = Pick<Settings, 'url'> & Partial<Settings>;
/** `once` identifies a form of the account, which makes one webhook however often it is sent. */
type GivenSettings = NewSettings & Readonly<{ once?: string }>;
type InSameTransaction = ((webhookId: string) => void) | undefined;

/** Creates a webhook. Its secret is sealed before it is stored, and is returned this once. */
export function createCreate(
  { store, rows, clock, audit }: WebhookDeps,
  seal: Seal,
  check: CheckSettings,
  random: (bytes: number) => Uint8Array,
) {
  const add = store.prepare(`
    INSERT INTO webhooks (id, account_id, url, host, description, programs_json, secret_ct, secret_kid,
      created_at_ms, updated_at_ms)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9)`);

  const isThere = store.prepare<unknown, [string]>('SELECT 1 FROM webhooks WHERE id = ?');

  const insert = store.transaction(
    (by: By, id: string, checked: Checked, also: InSameTransaction): Created => {
      const { accountId, actor } = by;
      const { url, programs = null, description = '' } = checked;
      if (url === undefined) throw new Error('a webhook was checked without its URL');
      const { href, hostname: host } = url;
      if (isThere.get(id) !== null) return { kind: 'made-before', webhookId: id };
      if (rows.count(accountId) >= WEBHOOKS_MAX || rows.countDeleted(accountId) >= DELETED_MAX)
        return { kind: 'too-many' };
      const [secret, nowMs] = [makeWebhookSecret(random), clock.now()];
      const { ciphertext, keyId } = seal.seal(secret, { accountId, webhookId: id });
      const programsJson = programs && JSON.stringify(programs);
      add.run(id, accountId, href, host, description, programsJson, ciphertext, keyId, nowMs);
      const detail = { host, programs: programs ?? 'all' };
      audit.note({ atMs: nowMs, actor, action: 'webhook.create', accountId, subject: id, detail });
      also?.(id);
      const webhook = rows.find(accountId, id, nowMs);
      if (webhook === undefined) throw new Error(`webhook ${id} does not exist after its insert`);
      return { kind: 'created', webhook, secret };
    },
  );

  return async (
    by: By,
    given: GivenSettings,
    signal: AbortSignal,
    also?: InSameTransaction,
  ): Promise<Created> => {
    const { once, ...settings } = given;
    const result = await check(settings, signal);
    if (result.kind !== 'checked') return result;
    const id = uuidFrom(once === undefined ? random : bytesOf(by.accountId, once));
    return insert.immediate(by, id, result.checked, also);
  };
}

/** Bytes of the id that a form makes: the same every time, and no other id can be aimed at. */
function bytesOf(accountId: number, once: string) {
  const digest = createHash('sha256').update(`webhook of ${accountId} by ${once}`).digest();
  return (bytes: number) => digest.subarray(0, bytes);
}

type CreatedOnce =
  | Created
  /** The key made this webhook before; the secret is the current one. */
  | Readonly<{ kind: 'replayed'; webhook: Webhook; secret: Secret }>
  /** The key was used with other settings. */
  | Readonly<{ kind: 'key-reused' }>
  /** Another request with the key is in progress. */
  | Readonly<{ kind: 'key-under-way' }>;

type StoredCreation = { settingsHash: Uint8Array; webhookId: string };

/** Creates one webhook for a key of the caller's (draft-ietf-httpapi-idempotency-key-header). Rejected requests store no key. */
export function createCreateOnce(
  { store, rows, clock }: WebhookDeps,
  create: ReturnType<typeof createCreate>,
  secretsOf: SecretsOf,
) {
  const find = store.prepare<StoredCreation, [number, Uint8Array, number]>(`
    SELECT settings_hash AS settingsHash, webhook_id AS webhookId FROM webhook_idempotency
    WHERE account_id = ? AND key_hash = ? AND created_at_ms > ?`);
  const keep = store.prepare<null, [number, Uint8Array, Uint8Array, string, number]>(`
    INSERT OR REPLACE INTO webhook_idempotency VALUES (?, ?, ?, ?, ?)`);
  const underWay = new Set<string>();

  function again(accountId: number, made: StoredCreation, settingsHash: Buffer): CreatedOnce {
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
      return await create(by, given, signal, (webhookId) => {
        keep.run(accountId, keyHash, settingsHash, webhookId, clock.now());
      });
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

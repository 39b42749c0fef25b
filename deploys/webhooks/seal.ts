import { createCipheriv, createDecipheriv, createHash } from 'node:crypto';
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Registry } from 'prom-client';
import { sealingKey } from '../../shared/config/kinds.ts';
import { Secret } from '../../shared/secret.ts';
import type { Store } from '../../shared/store/open.ts';
import { tighten } from '../../shared/store/private.ts';
import type { SecretsOf } from '../delivery/send.ts';
import { createFigures } from '../health/figures.ts';

/** A secret at rest. `keyId` names the key it is sealed under. */
type Sealed = Readonly<{ ciphertext: Uint8Array; keyId: number }>;

/** Whose secret it is. Sealed for one webhook, a secret cannot be opened as another's. */
type Owner = Readonly<{ accountId: number; webhookId: string }>;

const CIPHER = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const SECRET_BYTES = 32;

/** A webhook's secret: `whsec_` and 64 hex digits. Its UTF-8 as shown is the key of the signature. */
export function makeWebhookSecret(random: (bytes: number) => Uint8Array): Secret {
  return new Secret(`whsec_${Buffer.from(random(SECRET_BYTES)).toString('hex')}`);
}

/**
 * Seals under the first of `keys`, each 32 bytes in base64; the others only open what they sealed once. `random` gives n
 * uniform bytes.
 */
export function createSeal(keys: readonly [Secret, ...Secret[]], random: (bytes: number) => Uint8Array) {
  const newest = keyFrom(keys[0]);
  const byId = new Map(keys.map(keyFrom).map((key) => [key.id, key]));
  return {
    seal: (secret: Secret, owner: Owner): Sealed => {
      const text = Buffer.from(secret.reveal());
      return { ciphertext: encrypt(newest.bytes, text, contextOf(owner), random), keyId: newest.id };
    },
    /** Throws when the key is not there, or when the bytes are not what was sealed for this owner. */
    unseal: ({ ciphertext, keyId }: Sealed, owner: Owner): Secret => {
      const key = byId.get(keyId);
      if (key === undefined) throw new Error(`a webhook secret is sealed under another key (${keyId})`);
      return new Secret(decrypt(key.bytes, ciphertext, contextOf(owner)).toString('utf8'));
    },
    /** Whether the key of this name is there. */
    opens: (keyId: number): boolean => byId.has(keyId),
  };
}

export type Seal = ReturnType<typeof createSeal>;

/** A key and its name, 32 bits of a hash: the name tells a lost key from damaged bytes and says nothing of the key. */
function keyFrom(key: Secret): Readonly<{ bytes: Buffer; id: number }> {
  const bytes = Buffer.from(key.reveal(), 'base64');
  return { bytes, id: createHash('sha256').update('key id ').update(bytes).digest().readUInt32BE() };
}

function contextOf({ accountId, webhookId }: Owner): string {
  return `webhook secret of ${accountId}/${webhookId}`;
}

/**
 * AES-256-GCM under 32 bytes of key: 12 bytes of nonce, the ciphertext, 16 bytes of tag. It opens under the same
 * `context` alone. A nonce is random: the same one twice becomes likely only after some billions of texts.
 */
export function encrypt(
  key: Uint8Array,
  text: Uint8Array,
  context: string,
  random: (bytes: number) => Uint8Array,
): Buffer {
  const nonce = random(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(Buffer.from(context));
  return Buffer.concat([nonce, cipher.update(text), cipher.final(), cipher.getAuthTag()]);
}

/** The text; throws when the key, the context or the bytes are not those of `encrypt`. */
export function decrypt(key: Uint8Array, sealed: Uint8Array, context: string): Buffer {
  const nonce = sealed.subarray(0, NONCE_BYTES);
  const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(Buffer.from(context));
  decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
  return Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]);
}

/** The file with the key that was made at the first start, inside `storage.data_dir`. */
export const SEALING_KEY_FILE = 'secret';

const KEY_BYTES = 32;

type SealingKeys =
  /** The first seals, all open. */
  | { readonly kind: 'keys'; readonly keys: readonly [Secret, ...Secret[]] }
  /** `sentence` tells the operator what is wrong with the file. */
  | { readonly kind: 'unusable'; readonly sentence: string };

/**
 * The keys that webhook secrets are sealed under: the config's, and the one kept in `dataDir`, so that a key moved
 * into the config later opens everything still. Without either, one is made and kept, for its owner alone to read; but
 * not while `sealed` webhooks are there already: their key was forgotten with the backup, and deliveries would fail for
 * good before anybody sees it. To be called under the lock of the app. `random` gives n uniform bytes.
 */
export function takeSealingKeys(
  configured: Secret | undefined,
  dataDir: string,
  random: (bytes: number) => Uint8Array,
  sealed: number,
): SealingKeys {
  const path = join(dataDir, SEALING_KEY_FILE);
  try {
    tighten(path);
    const kept = readKept(path);
    if (kept === 'malformed') return { kind: 'unusable', sentence: malformed(path) };
    if (configured !== undefined) return { kind: 'keys', keys: kept ? [configured, kept] : [configured] };
    if (kept === undefined && sealed > 0) return { kind: 'unusable', sentence: lost(path, sealed) };
    return { kind: 'keys', keys: [kept ?? keep(path, random)] };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { kind: 'unusable', sentence: `The file ${path} cannot be used (${reason}).` };
  }
}

function readKept(path: string): Secret | 'malformed' | undefined {
  try {
    return sealingKey.read(readFileSync(path, 'utf8').trim()) ?? 'malformed';
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Whole or not at all, and on the disk before anything is sealed: without it every secret is lost. */
function keep(path: string, random: (bytes: number) => Uint8Array): Secret {
  const text = Buffer.from(random(KEY_BYTES)).toString('base64');
  const partial = `${path}.new`;
  rmSync(partial, { force: true }); // of a start that was cut off: its mode could be another
  const file = openSync(partial, 'wx', 0o600);
  try {
    writeSync(file, `${text}\n`);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(partial, path);
  const folder = openSync(dirname(path), 'r');
  fsyncSync(folder);
  closeSync(folder);
  return new Secret(text);
}

function malformed(path: string): string {
  return `The file ${path} holds no ${sealingKey.expected}; put a backup in its place, or move it away to make a new one, under which no webhook of before can be signed.`;
}

function lost(path: string, sealed: number): string {
  return `The file ${path} is not there, and ${sealed} webhooks are sealed under what it held; put a backup in its place, or ${sealingKey.expected} of your own, under which none of them can be signed until its secret is rotated.`;
}

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

/** How many webhooks of `store` have a secret that none of the seal's keys opens: nothing can be sent to them. */
export function sealedElsewhere(store: Store, { opens }: Pick<Seal, 'opens'>): number {
  const rows = store
    .prepare<{ current: number; next: number | null; n: number }, []>(
      `
      SELECT secret_kid AS current, next_secret_kid AS next, count(*) AS n FROM webhooks
      WHERE deleted_at_ms IS NULL GROUP BY secret_kid, next_secret_kid`,
    )
    .all();
  return rows
    .filter(({ current, next }) => !opens(current) || (next !== null && !opens(next)))
    .reduce((sum, { n }) => sum + n, 0);
}

/** How many webhooks of `store` have a secret, under whatever key. */
export function countSealed(store: Store): number {
  const count = store.prepare<{ n: number }, []>(
    'SELECT count(*) AS n FROM webhooks WHERE deleted_at_ms IS NULL',
  );
  return count.get()?.n ?? 0;
}

/** Shows in `registry` how many webhooks nothing can be sent to, until each of them has a secret under a key that is there. */
export function gaugeSealedElsewhere(registry: Registry, store: Store, seal: Pick<Seal, 'opens'>) {
  createFigures(registry).reading(
    'deploys_webhooks_unsignable',
    'Webhooks whose secret is sealed under another storage.secret; anything but 0 is an alarm',
    () => sealedElsewhere(store, seal),
  );
}

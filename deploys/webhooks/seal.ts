import { createCipheriv, createDecipheriv, createHash } from 'node:crypto';
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Registry } from 'prom-client';
import { sealingKey } from '../../shared/config/kinds.ts';
import { Secret } from '../../shared/secret.ts';
import type { Store } from '../../shared/store/open.ts';
import { codeOf, tighten } from '../../shared/store/private.ts';
import type { SecretsOf } from '../delivery/send.ts';
import { createFigures } from '../health/figures.ts';

type Random = (bytes: number) => Uint8Array;

type Sealed = Readonly<{ ciphertext: Uint8Array; keyId: number }>;

/** A secret sealed for one webhook cannot be opened as another's. */
type Owner = Readonly<{ accountId: number; webhookId: string }>;

const CIPHER = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const SECRET_BYTES = 32;

/** A webhook's secret: `whsec_` and 64 hex digits. Its UTF-8 as shown is the key of the signature. */
export function makeWebhookSecret(random: Random): Secret {
  return new Secret(`whsec_${Buffer.from(random(SECRET_BYTES)).toString('hex')}`);
}

/** Seals under the first of `keys`, each 32 bytes in base64; the others only open. `random` gives n uniform bytes. */
export function createSeal(keys: readonly [Secret, ...Secret[]], random: Random) {
  const newest = keyFrom(keys[0]);
  const byId = new Map(keys.map(keyFrom).map((key) => [key.id, key]));
  return {
    seal: (secret: Secret, owner: Owner): Sealed => {
      const text = Buffer.from(secret.reveal());
      return { ciphertext: encrypt(newest.bytes, text, contextOf(owner), random), keyId: newest.id };
    },
    /** Throws when the key is absent, or the bytes are not what was sealed for this owner. */
    unseal: ({ ciphertext, keyId }: Sealed, owner: Owner): Secret => {
      const key = byId.get(keyId);
      if (key === undefined) throw new Error(`a webhook secret is encrypted under another key (${keyId})`);
      return new Secret(decrypt(key.bytes, ciphertext, contextOf(owner)).toString('utf8'));
    },
    opens: (keyId: number): boolean => byId.has(keyId),
  };
}

export type Seal = ReturnType<typeof createSeal>;

/** A key and its id, 32 bits of a hash: it tells a lost key from damaged bytes and reveals nothing of the key. */
function keyFrom(key: Secret): Readonly<{ bytes: Buffer; id: number }> {
  const bytes = Buffer.from(key.reveal(), 'base64');
  return { bytes, id: createHash('sha256').update('key id ').update(bytes).digest().readUInt32BE() };
}

function contextOf({ accountId, webhookId }: Owner): string {
  return `webhook secret of ${accountId}/${webhookId}`;
}

/** AES-256-GCM: 12 bytes of nonce, the ciphertext, 16 of tag; opens with the same `context`. Random nonces do for billions of texts. */
export function encrypt(key: Uint8Array, text: Uint8Array, context: string, random: Random): Buffer {
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

/** The file in `storage.data_dir` with the key that was made at the first start. */
export const SEALING_KEY_FILE = 'secret';

const KEY_BYTES = 32;

type SealingKeys =
  /** The first seals, all open. */
  | { readonly kind: 'keys'; readonly keys: readonly [Secret, ...Secret[]] }
  /** `sentence` tells the operator what is wrong with the file. */
  | { readonly kind: 'unusable'; readonly sentence: string };

/**
 * The keys of webhook secrets: the config's, and the one kept in `dataDir`, so that secrets sealed before a key was put
 * into the config still open. Without either, one is made and kept, readable for its owner alone; but not while there are
 * `sealed` webhooks, whose key is missing from a backup: their deliveries would fail. To be called under the app's lock.
 */
export function takeSealingKeys(
  configured: Secret | undefined,
  dataDir: string,
  random: Random,
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
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** Whole or not at all, and on the disk before anything is sealed: without it every secret is lost. */
function keep(path: string, random: Random): Secret {
  const text = Buffer.from(random(KEY_BYTES)).toString('base64');
  const partial = `${path}.new`;
  rmSync(partial, { force: true }); // left by an interrupted start, perhaps with another mode
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
  return `The file ${path} holds no ${sealingKey.expected}; restore it from a backup, or remove it to create a new key, with which existing webhooks cannot be signed.`;
}

function lost(path: string, sealed: number): string {
  return `The file ${path} is missing, and the secrets of ${sealed} webhooks are encrypted with its key; restore it from a backup, or put in ${sealingKey.expected} of your own, with which none of them can be signed until its secret is rotated.`;
}

type SealedRow = Readonly<{ accountId: number; atMs: number | null } & Sealed & Next>;
type Next = { nextCiphertext: Uint8Array; nextKeyId: number } | { nextCiphertext: null; nextKeyId: null };

/** The secrets to sign with. The next one takes over at its instant by itself. */
export function createSecretsOf(store: Store, seal: Pick<Seal, 'unseal'>): SecretsOf {
  const find = store.prepare<SealedRow, [string]>(`
    SELECT account_id AS accountId, secret_ct AS ciphertext, secret_kid AS keyId,
      next_secret_ct AS nextCiphertext, next_secret_kid AS nextKeyId, next_secret_at_ms AS atMs
    FROM webhooks WHERE id = ? AND deleted_at_ms IS NULL`);

  return function secretsOf(webhookId, atMs) {
    const row = find.get(webhookId);
    if (row === null) throw new Error(`webhook ${webhookId} does not exist`);
    const owner = { accountId: row.accountId, webhookId };
    const next =
      row.nextKeyId === null
        ? undefined
        : seal.unseal({ ciphertext: row.nextCiphertext, keyId: row.nextKeyId }, owner);
    if (next !== undefined && Number(row.atMs) <= atMs) return { current: next, next: undefined };
    return { current: seal.unseal(row, owner), next };
  };
}

/** How many webhooks have a secret that none of the seal's keys opens, so that nothing can be sent to them. */
export function sealedElsewhere(store: Store, { opens }: Pick<Seal, 'opens'>): number {
  const rows = store.prepare<{ current: number; next: number | null; n: number }, []>(`
    SELECT secret_kid AS current, next_secret_kid AS next, count(*) AS n FROM webhooks
    WHERE deleted_at_ms IS NULL GROUP BY secret_kid, next_secret_kid`);
  return rows
    .all()
    .filter(({ current, next }) => !opens(current) || (next !== null && !opens(next)))
    .reduce((sum, { n }) => sum + n, 0);
}

/** How many webhooks there are, whatever key their secrets are sealed under. */
export function countSealed(store: Store): number {
  const count = store.prepare<{ n: number }, []>(`
    SELECT count(*) AS n FROM webhooks WHERE deleted_at_ms IS NULL`);
  return count.get()?.n ?? 0;
}

export function gaugeSealedElsewhere(registry: Registry, store: Store, seal: Pick<Seal, 'opens'>) {
  createFigures(registry).reading(
    'deploys_webhooks_unsignable',
    'Webhooks whose secret is encrypted under another storage.secret; anything but 0 is an alarm',
    () => sealedElsewhere(store, seal),
  );
}

import { closeSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { sealingKey } from '../../shared/config/kinds.ts';
import { Secret } from '../../shared/secret.ts';
import { tighten } from '../../shared/store/private.ts';

/** The file with the key that was made at the first start, inside `storage.data_dir`. */
export const SEALING_KEY_FILE = 'secret';

const KEY_BYTES = 32;

export type SealingKeys =
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
  return `The file ${path} holds no ${sealingKey.wanted}; put a backup in its place, or move it away to make a new one, under which no webhook of before can be signed.`;
}

function lost(path: string, sealed: number): string {
  return `The file ${path} is not there, and ${sealed} webhooks are sealed under what it held; put a backup in its place, or ${sealingKey.wanted} of your own, under which none of them can be signed until its secret is rotated.`;
}

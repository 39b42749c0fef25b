import { createHash } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Clock } from '../../shared/clock.ts';
import type { Store } from '../../shared/store/open.ts';

/** In the data directory. */
const LINK_FILE = 'first-operator-link';
const TOKEN_BYTES = 32;
const LAST_MS = 24 * 3_600_000;

type Deps = Readonly<{ store: Store; clock: Clock; random(bytes: number): Uint8Array }>;

/**
 * The token of a new link that makes the first operator, for 24 hours and one use; the link before it ends.
 * `undefined`: there is an operator, who can be asked.
 */
export function inviteFirstOperator({ store, clock, random }: Deps): string | undefined {
  const token = Buffer.from(random(TOKEN_BYTES)).toString('base64url');
  const invite = store.transaction(() => {
    store.run('DELETE FROM first_operator');
    if (store.query("SELECT 1 FROM users WHERE role = 'operator' LIMIT 1").get() !== null) return undefined;
    store.run('INSERT INTO first_operator VALUES (1, ?, ?)', [hashOf(token), clock.now() + LAST_MS]);
    return token;
  });
  return invite.immediate();
}

/** Whether a link is good: its time is not over, and nobody became an operator by another way since. */
export function isInvited({ store, clock }: Pick<Deps, 'store' | 'clock'>, token: string): boolean {
  const row = store
    .query<object, [Uint8Array, number]>(
      `SELECT 1 FROM first_operator WHERE token_hash = ? AND expires_at_ms > ?
       AND NOT EXISTS (SELECT 1 FROM users WHERE role = 'operator')`,
    )
    .get(hashOf(token), clock.now());
  return row !== null;
}

/** Uses the link up; to be called in the transaction that makes the operator. */
export function useInvitation(store: Store): void {
  store.run('DELETE FROM first_operator');
}

/** Where a person finds the link: on their terminal, or in a file of the service's user. */
export type ShownLink =
  { readonly kind: 'terminal'; readonly url: string } | { readonly kind: 'file'; readonly path: string };

/** What is printed to no terminal is often kept and sent on, and a link that makes an operator must be neither. */
export function showLink(url: string, dataDir: string, isTerminal: boolean): ShownLink {
  const path = resolve(dataDir, LINK_FILE);
  rmSync(path, { force: true }); // the link of an earlier start, or a file with rights of its own
  if (isTerminal) return { kind: 'terminal', url };
  writeFileSync(path, `${url}\n`, { mode: 0o600, flag: 'wx' });
  return { kind: 'file', path };
}

/** Where the console is reached: the configured address, or the listener's own where that was to be any free port. */
export function consoleUrlOf(publicUrl: URL, listenUrl: URL): URL {
  return publicUrl.port === '0' ? listenUrl : publicUrl;
}

function hashOf(token: string): Uint8Array {
  return createHash('sha256').update(token).digest();
}

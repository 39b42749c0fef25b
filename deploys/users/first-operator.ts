import { createHash } from 'node:crypto';
import type { Clock } from '../../shared/clock.ts';
import type { Store } from '../../shared/store/open.ts';

/** Where the link leads. */
export const FIRST_OPERATOR_PATH = '/first-operator';

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

/** Whether a link is good. */
export function isInvited({ store, clock }: Pick<Deps, 'store' | 'clock'>, token: string): boolean {
  const row = store
    .query<object, [Uint8Array, number]>(
      'SELECT 1 FROM first_operator WHERE token_hash = ? AND expires_at_ms > ?',
    )
    .get(hashOf(token), clock.now());
  return row !== null;
}

/** Uses the link up; to be called in the transaction that makes the operator. */
export function useInvitation(store: Store): void {
  store.run('DELETE FROM first_operator');
}

function hashOf(token: string): Uint8Array {
  return createHash('sha256').update(token).digest();
}

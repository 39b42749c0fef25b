import type { Store } from '../../shared/store/open.ts';
import type { Actor } from '../audit/actor.ts';
import { createAudit } from '../audit/audit.ts';
import type { User } from './users.ts';

/** Turns a user's second factor off and forgets its codes, with its line in the audit log. */
export function resetSecondFactor(store: Store, user: User, actor: Actor, atMs: number): void {
  const { note } = createAudit(store);
  const reset = store.transaction(() => {
    store.run('UPDATE users SET totp_secret = NULL, totp_pending = NULL, totp_step = 0 WHERE id = ?', [
      user.id,
    ]);
    store.run('DELETE FROM backup_codes WHERE user_id = ?', [user.id]);
    note({ atMs, actor, action: 'user.second-factor-off', accountId: user.accountId, subject: user.id });
  });
  reset.immediate();
}

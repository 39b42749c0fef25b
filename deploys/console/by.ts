import type { By } from '../audit/actor.ts';
import type { AskedOfAccount } from './context.ts';

/** Who makes a change on a page of an account, for the audit log. */
export function byOf({ viewer, account }: Pick<AskedOfAccount, 'viewer' | 'account'>): By {
  const kind = viewer.role === 'operator' ? viewer.role : 'user';
  return { accountId: account.id, actor: { kind, userId: viewer.userId } };
}

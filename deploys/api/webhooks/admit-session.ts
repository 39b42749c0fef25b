import type { Clock } from '../../../shared/clock.ts';
import type { SessionAccount } from '../../users/session-account.ts';
import type { Enter } from '../request-log.ts';
import type { AdmitBySession } from './admit.ts';

type Deps = Readonly<{
  sessionAccount(request: Request): Promise<SessionAccount>;
  /** The rate of a user, which is that of a key. */
  enter: Enter<string>;
  clock: Clock;
}>;

/** Admits a customer by the login of the console; a user has the rate of a key (spec 8). */
export function createAdmitBySession({ sessionAccount, enter, clock }: Deps): AdmitBySession {
  return async function admitBySession(request) {
    const found = await sessionAccount(request);
    if (found.kind === 'none') return undefined;
    if (found.kind === 'other-origin') return found;
    const { accountId, viewer } = found;
    const entry = enter(viewer.userId, clock.monotonic());
    if (entry.kind !== 'entered') return entry;
    const kind = viewer.role === 'operator' ? viewer.role : 'user';
    return { kind: 'admitted', by: { accountId, actor: { kind, userId: viewer.userId } } };
  };
}

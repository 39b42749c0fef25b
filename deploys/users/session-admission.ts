import type { Clock } from '../../shared/clock.ts';
import type { Enter } from '../api/request-log.ts';
import type { AdmitBySession } from '../api/webhooks/admit.ts';
import { isSameOrigin } from '../console/same-origin.ts';
import type { ViewerOf } from '../console/viewer.ts';

const READS = new Set(['GET', 'HEAD']);

type Deps = Readonly<{
  viewerOf: ViewerOf;
  /** The console's. */
  origin: string;
  /** The rate of a user, which is that of a key (spec 8). */
  enter: Enter<string>;
  clock: Pick<Clock, 'monotonic'>;
}>;

/**
 * Admits to an API by the session of a viewer with an account. Cookies come along with requests that other sites made,
 * so for a change a session counts only from the console's own pages.
 */
export function createAdmitBySession({ viewerOf, origin, enter, clock }: Deps): AdmitBySession {
  return async function admitBySession(request) {
    const viewer = await viewerOf(request);
    if (viewer?.accountId === undefined) return undefined;
    if (!READS.has(request.method) && !isSameOrigin(request, origin)) return { kind: 'other-origin' };
    const { accountId, role, userId } = viewer;
    const entry = enter(userId, clock.monotonic());
    if (entry.kind !== 'entered') return entry;
    const kind = role === 'operator' ? 'operator' : 'user';
    return { kind: 'admitted', by: { accountId, actor: { kind, userId } } };
  };
}

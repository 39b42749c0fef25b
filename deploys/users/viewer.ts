import type { Clock } from '../../shared/clock.ts';
import { actorOf } from '../audit/actor.ts';
import type { Enter } from '../api/request-log.ts';
import type { AdmitBySession } from '../api/webhooks/admit.ts';
import type { AuthService } from './auth-service.ts';

/** Who looks at the console. */
export type Viewer = Readonly<{
  userId: string;
  email: string;
  /** An operator sees every account; a customer sees their own. */
  role: 'operator' | 'customer';
  /** The account the user belongs to; an operator may have none. */
  accountId: number | undefined;
}>;

/** Finds who a request's session belongs to; `undefined`: nobody, or the session has ended. Never throws for a bad cookie. */
export type ViewerOf = (request: Request) => Promise<Viewer | undefined>;

/** Finds the viewer of a request; an operator who must set up a second factor first is nobody until then. */
export function createViewerOf({
  sessionOf,
  mustEnrol,
}: Pick<AuthService, 'sessionOf' | 'mustEnrol'>): ViewerOf {
  return async function viewerOf(request) {
    const session = sessionOf(request);
    if (session === undefined || mustEnrol(session)) return undefined;
    const { userId, email, role, accountId } = session;
    return { userId, email, role, accountId };
  };
}

/**
 * Whether a request that changes something comes from a page of the console itself. `Sec-Fetch-Site` says so in every
 * browser of today; `Origin` stands in where it is missing; a request with neither is no form of ours.
 */
export function isSameOrigin(request: Request, origin: string): boolean {
  const site = request.headers.get('sec-fetch-site');
  if (site !== null) return site === 'same-origin';
  return request.headers.get('origin') === origin;
}

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
    return { kind: 'admitted', by: { accountId, actor: actorOf(userId, role) } };
  };
}

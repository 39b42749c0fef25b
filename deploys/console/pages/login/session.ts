import type { Answer, PageContext } from '../../context.ts';
import type { LoginServices } from '../../page-services.ts';
import { ownPath, paths, withNext } from '../../paths.ts';
import { redirect } from '../../redirect.ts';
import type { AuthService } from '../../../auth/auth-service.ts';
import type { From } from '../../../auth/login.ts';
import {
  type CookieName,
  cookieOf,
  type Session,
  SESSION_COOKIE,
  SESSION_MS,
  setCookie,
} from '../../../auth/sessions.ts';
import type { User } from '../../../auth/users.ts';

/** Carries the second step's ticket. */
export const STEP_COOKIE: CookieName = '__Host-sluice-step';
const STEP_MS = 5 * 60_000;

/** Where `next` of an address or form leads: a path of the console, `/` for anything else. */
export function nextOf(fields: URLSearchParams): string {
  return ownPath(fields.get('next')) ?? paths.start;
}

/** Where an attempt to sign in comes from. */
export function fromOf({ auth, addressOf }: LoginServices, { request }: PageContext): From {
  return { address: addressOf(request), signedInAs: auth.sessionOf(request)?.userId };
}

/** Begins a session for a user who showed everything that is wanted. What the browser had before ends: a token is never taken over. */
export function beginSession(
  { sessions, login }: AuthService,
  { request }: PageContext,
  user: User,
  next: string,
  from: From,
): Response {
  login.remember(user, from);
  const former = cookieOf(request.headers, SESSION_COOKIE);
  const token = sessions.begin(user.id, request.headers.get('user-agent'), former);
  const asksForMore = user.role === 'operator' && !user.hasSecondFactor;
  return redirect(asksForMore ? withNext(paths.secondFactor, next) : next, undefined, [
    setCookie(SESSION_COOKIE, token, SESSION_MS.absolute),
    setCookie(STEP_COOKIE, '', 0),
  ]);
}

/** Sends a user whose first step was right to the second. */
export function toSecondStep(ticket: string, next: string): Response {
  return redirect(withNext(paths.secondStep, next), undefined, [setCookie(STEP_COOKIE, ticket, STEP_MS)]);
}

export type Self = Readonly<{ session: Session; user: User }>;

/** Answers a user who is signed in, also an operator who must set up a second factor; others are redirected to the login. */
export function forSelf(
  { auth }: LoginServices,
  { request, url }: PageContext,
  answer: (self: Self) => Answer,
): Answer {
  const session = auth.sessionOf(request);
  const user = session && auth.users.byId(session.userId);
  if (session !== undefined && user !== undefined) return answer({ session, user });
  return redirect(
    request.method === 'POST' ? paths.login : withNext(paths.login, `${url.pathname}${url.search}`),
  );
}

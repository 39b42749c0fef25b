import type { Asked, Filled, PersonPage } from './login-form.tsx';
import { ownPath } from '../../paths.ts';
import { type CookieName, cookieOf, SESSION_COOKIE, setCookie } from '../../../users/cookie.ts';
import type { From } from '../../../users/login.ts';
import type { People } from '../../../users/people.ts';
import { type Session, SESSION_MS } from '../../../users/sessions.ts';
import type { User } from '../../../users/users.ts';

export const LOGIN_PATH = '/login';
export const PROVIDER_PATH = '/login/provider';
export const SECOND_STEP_PATH = '/login/second-step';
export const SECOND_FACTOR_PATH = '/settings/second-factor';
/** Carries the second step's ticket. */
export const STEP_COOKIE: CookieName = '__Host-sluice-step';
const STEP_MS = 5 * 60_000;

/** Sends the browser on (303) with these cookies. `path` is one of the console's own. */
export function moveTo(path: string, cookies: readonly string[] = []): Response {
  const headers = new Headers({ location: path });
  for (const cookie of cookies) headers.append('set-cookie', cookie);
  return new Response(null, { status: 303, headers });
}

/** Where `next` of an address or form leads: a path of the console, `/` for anything else. */
export function nextOf(text: string | null): string {
  return ownPath(text) ?? '/';
}

/** An address of the login with `next` behind it, left away where it is the first page. */
export function withNext(path: string, next: string): string {
  return next === '/' ? path : `${path}?next=${encodeURIComponent(next)}`;
}

/** Begins a session for a user who showed everything that is wanted. What the browser had before ends: a token is never taken over. */
export function moveIn(
  { sessions, login }: People,
  request: Request,
  user: User,
  next: string,
  from: From,
): Response {
  login.remember(user, from);
  const former = cookieOf(request.headers, SESSION_COOKIE);
  const token = sessions.begin(user.id, request.headers.get('user-agent'), former);
  const asksForMore = user.role === 'operator' && !user.hasSecondFactor;
  return moveTo(asksForMore ? withNext(SECOND_FACTOR_PATH, next) : next, [
    setCookie(SESSION_COOKIE, token, SESSION_MS.absolute),
    setCookie(STEP_COOKIE, '', 0),
  ]);
}

/** Sends a user whose first step was right to the second. */
export function moveToSecondStep(ticket: string, next: string): Response {
  return moveTo(withNext(SECOND_STEP_PATH, next), [setCookie(STEP_COOKIE, ticket, STEP_MS)]);
}

/** Whoever is signed in, as this request shows. */
export type Self = Readonly<{ session: Session; user: User }>;

type Answer = Response | Promise<Response>;

/** A page for whoever is signed in, an operator who must set up a second factor among them; others are sent to sign in. */
export function ownPage(
  people: People,
  path: string,
  answers: Readonly<{ get?(asked: Asked, self: Self): Answer; post?(asked: Filled, self: Self): Answer }>,
): PersonPage {
  function selfOf(request: Request): Self | undefined {
    const session = people.sessionOf(request);
    const user = session && people.users.byId(session.userId);
    return session && user && { session, user };
  }
  const { get, post } = answers;
  return {
    path,
    ...(get && {
      get: (asked: Asked) => {
        const self = selfOf(asked.request);
        const { pathname, search } = asked.url;
        return self ? get(asked, self) : moveTo(withNext(LOGIN_PATH, `${pathname}${search}`));
      },
    }),
    ...(post && {
      post: (asked: Filled) => {
        const self = selfOf(asked.request);
        return self ? post(asked, self) : moveTo(LOGIN_PATH);
      },
    }),
  };
}

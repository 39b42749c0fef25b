import { ownPath } from '../../console/paths.ts';
import { type CookieName, cookieOf, SESSION_COOKIE, setCookie } from '../cookie.ts';
import type { From } from '../login.ts';
import type { People } from '../people.ts';
import { SESSION_MS } from '../sessions.ts';
import type { User } from '../users.ts';

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

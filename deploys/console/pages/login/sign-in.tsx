/** @jsxImportSource preact */
import { unreachable } from '../../../../shared/brand.ts';
import { type Actor, actorOf } from '../../../accounts/audit.ts';
import type { From, TooMany } from '../../../auth/login.ts';
import { type Busy, PASSWORD_CHARACTERS } from '../../../auth/passwords.ts';
import {
  type CookieName,
  cookieOf,
  type Session,
  SESSION_COOKIE,
  SESSION_MS,
  setCookie,
} from '../../../auth/sessions.ts';
import type { User } from '../../../auth/users.ts';
import { TextField } from '../../components/forms.tsx';
import type { LoginServices } from '../../page-services.ts';
import type { PageContext, FormRefusal } from '../../page.ts';
import { ownPath, paths, redirect, withNext } from '../../paths.ts';

/** Why an attempt is rejected before it is looked at. */
export function notTried(result: TooMany | Busy): FormRefusal {
  switch (result.kind) {
    case 'too-many': {
      const { retryAfterSeconds } = result;
      const isShort = retryAfterSeconds < 120;
      const wait = isShort ? `${retryAfterSeconds} seconds` : `${Math.ceil(retryAfterSeconds / 60)} minutes`;
      const form = `Too many attempts. Try again in ${wait}.`;
      return { errors: { form }, status: 429, retryAfterSeconds };
    }
    case 'busy': {
      const form = 'Too many sign-ins in progress. Try again in a few seconds.';
      return { errors: { form }, status: 503, retryAfterSeconds: 2 };
    }
    default:
      return unreachable(result);
  }
}

/** A field of a form as text; at most what a body can hold. */
export function field(form: URLSearchParams, name: string): string {
  return form.get(name) ?? '';
}

export function EmailField() {
  return <TextField name="email" label="Email" type="email" autocomplete="username" isRequired />;
}

export function CodeField({ hint }: Readonly<{ hint?: string }>) {
  return <TextField name="code" label="Code" autocomplete="one-time-code" hint={hint} isRequired />;
}

/** The field of the current password. */
export function PasswordField({ label = 'Password' }: Readonly<{ label?: string }>) {
  return (
    <TextField name="password" label={label} type="password" autocomplete="current-password" isRequired />
  );
}

/** The field of a new password, with its rule. */
export function NewPasswordField({ label = 'Password' }: Readonly<{ label?: string }>) {
  const { min, max } = PASSWORD_CHARACTERS;
  const hint = `${min}–${max} characters. A passphrase works well.`;
  const field = { name: 'new-password', type: 'password', autocomplete: 'new-password' } as const;
  return <TextField {...field} label={label} hint={hint} isRequired />;
}

/** Carries the second step's ticket. */
export const STEP_COOKIE: CookieName = '__Host-sluice-step';
const STEP_MS = 5 * 60_000;

/** Where `next` of an address or form leads: a path of the console, `/` for anything else. */
export function nextOf(fields: URLSearchParams): string {
  return ownPath(fields.get('next')) ?? paths.start;
}

/** The fields of the form that comes back, else of the address. */
export function fieldsOf({ returned, url }: PageContext): URLSearchParams {
  return returned?.sent ?? url.searchParams;
}

/** Where an attempt to sign in comes from. */
export function fromOf({ auth, addressOf }: LoginServices, { request }: PageContext): From {
  return { address: addressOf(request), signedInAs: auth.sessionOf(request)?.userId };
}

/** Begins a session for a user who has passed every step. The browser's former session ends: a token is never taken over. */
export function beginSession(
  { auth: { sessions, login }, addressOf }: LoginServices,
  { request }: PageContext,
  user: User,
  next: string,
): Response {
  login.remember(user, { address: addressOf(request) });
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

export type Self = Readonly<{ session: Session; user: User; actor: Actor }>;

/** A user who is signed in, also an operator who must set up a second factor; others are redirected to the login. */
export function selfOf({ auth }: LoginServices, { request, url }: PageContext): Self | Response {
  const session = auth.sessionOf(request);
  const user = session && auth.users.byId(session.userId);
  if (session !== undefined && user !== undefined)
    return { session, user, actor: actorOf(user.id, user.role) };
  return redirect(
    request.method === 'POST' ? paths.login : withNext(paths.login, `${url.pathname}${url.search}`),
  );
}

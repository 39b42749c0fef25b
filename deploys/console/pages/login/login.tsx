/** @jsxImportSource preact */
import { unreachable } from '../../../../shared/brand.ts';
import type { AuthService } from '../../../auth/auth-service.ts';
import { AT_PROVIDER_MS } from '../../../auth/provider.ts';
import { type CookieName, cookieOf, SESSION_COOKIE, setCookie } from '../../../auth/sessions.ts';
import type { SignUpResult } from '../../../auth/sign-up.ts';
import { ButtonLink, TextField } from '../../components/forms.tsx';
import type { FormContext, PageContext } from '../../context.ts';
import type { LoginServices } from '../../page-services.ts';
import { paths, redirect, redirectAway, withNext } from '../../paths.ts';
import {
  beginSession,
  CodeField,
  EmailField,
  field,
  type FormRefusal,
  fromOf,
  NewPasswordField,
  nextOf,
  notTried,
  PasswordField,
  showForm,
  STEP_COOKIE,
  toSecondStep,
} from './sign-in.tsx';

const PROVIDER_COOKIE: CookieName = '__Host-sluice-provider';

const REFUSALS = {
  /** One text for every reason, so that it does not reveal which emails have a user. */
  wrong: refusal(401, 'Incorrect email or password.'),
  'wrong-code': refusal(401, 'This code is incorrect, expired or already used. Wait for the next one.'),
  unavailable: refusal(503, 'The identity provider is unavailable. Try again, or sign in with a password.'),
  over: refusal(400, 'The sign-in expired or was started in another window. Please try again.'),
  unknown: refusal(403, 'There is no user for this identity. Ask an operator to add you.'),
  unverified: refusal(
    403,
    'A user with this email signed up with a password, and the email was never verified. If this is you, sign in with the password and link the identity provider in Settings. Otherwise ask an operator to remove that user.',
  ),
  'linked-elsewhere': refusal(
    403,
    'The user with this email is linked to another identity at the provider. Ask an operator to unlink it.',
  ),
} as const;

function refusal(status: number, form: string): FormRefusal {
  return { errors: { form }, status };
}

/** The login; a viewer who is signed in is redirected. */
export function loginPage({ auth }: LoginServices, context: PageContext): Response {
  const next = nextOf(context.url.searchParams);
  const session = auth.sessionOf(context.request);
  if (session === undefined) return showLogin(auth, context, next);
  return redirect(auth.mustEnrol(session) ? withNext(paths.secondFactor, next) : next);
}

export async function logIn(services: LoginServices, context: FormContext): Promise<Response> {
  const { auth } = services;
  const next = nextOf(context.form);
  const [email, password] = [field(context.form, 'email'), field(context.form, 'password')];
  const from = fromOf(services, context);
  const result = await auth.login.withPassword(email, password, from);
  switch (result.kind) {
    case 'right':
      return beginSession(auth, context, result.user, next, from);
    case 'code-wanted':
      return toSecondStep(result.ticket, next);
    case 'wrong':
      return showLogin(auth, context, next, REFUSALS.wrong);
    case 'too-many':
    case 'busy':
      return showLogin(auth, context, next, notTried(result));
    default:
      return unreachable(result);
  }
}

function showLogin(
  { config: { oidc, signUp } }: AuthService,
  context: PageContext | FormContext,
  next: string,
  refused?: FormRefusal,
): Response {
  const page = {
    title: 'Sign in',
    action: paths.login,
    button: 'Sign in',
    hidden: { next },
    fields: (
      <>
        <EmailField />
        <PasswordField />
      </>
    ),
    below: (
      <>
        {oidc && (
          <p>
            <ButtonLink to={withNext(paths.provider, next)} text={`Sign in with ${oidc.name}`} />
          </p>
        )}
        {signUp && (
          <p>
            <a href={paths.signUp}>Sign up</a>
          </p>
        )}
      </>
    ),
  };
  return showForm(context, page, refused);
}

/** The code after the password; also as it comes back. */
export function secondStepPage(
  context: PageContext | FormContext,
  next = nextOf(context.url.searchParams),
  refused?: FormRefusal,
): Response {
  const page = {
    title: 'Two-factor authentication',
    action: paths.secondStep,
    button: 'Sign in',
    hidden: { next },
    fields: <CodeField hint="The six-digit code from your authenticator app, or a backup code." />,
    below: (
      <p>
        <a href={withNext(paths.login, next)}>Start over</a>
      </p>
    ),
  };
  return showForm(context, page, refused);
}

export function enterCode(services: LoginServices, context: FormContext): Response {
  const { auth } = services;
  const { form, request } = context;
  const next = nextOf(form);
  const result = auth.login.withCode(cookieOf(request.headers, STEP_COOKIE), field(form, 'code'));
  switch (result.kind) {
    case 'right':
      return beginSession(auth, context, result.user, next, fromOf(services, context));
    case 'wrong':
      return secondStepPage(context, next, REFUSALS['wrong-code']);
    case 'too-many':
      return secondStepPage(context, next, notTried(result));
    case 'over':
      return redirect(withNext(paths.login, next), undefined, [setCookie(STEP_COOKIE, '', 0)]);
    default:
      return unreachable(result);
  }
}

/** Confirms a sign-out whose address was typed. */
export function logoutPage(context: PageContext): Response {
  return showForm(context, { title: 'Sign out', action: paths.logout, button: 'Sign out' });
}

export function logOut({ auth }: LoginServices, { request }: PageContext): Response {
  const token = cookieOf(request.headers, SESSION_COOKIE);
  if (token !== undefined) auth.sessions.end(token);
  return redirect(paths.login, undefined, [setCookie(SESSION_COOKIE, '', 0)]);
}

/** Sends to the identity provider. */
export async function providerPage(
  { auth, noteUnavailable }: LoginServices,
  context: PageContext,
): Promise<Response> {
  if (auth.providerLogin === undefined) return context.notFound();
  const next = nextOf(context.url.searchParams);
  const begun = await auth.providerLogin.begin(next);
  if (begun.kind === 'unavailable') {
    noteUnavailable(begun.reason);
    return showLogin(auth, context, next, REFUSALS.unavailable);
  }
  return redirectAway(begun.url, [setCookie(PROVIDER_COOKIE, begun.ticket, AT_PROVIDER_MS)]);
}

/** Signs in a user who returns from the identity provider. */
export async function providerReturnPage(services: LoginServices, context: PageContext): Promise<Response> {
  const { auth, noteUnavailable } = services;
  if (auth.providerLogin === undefined) return context.notFound();
  const { request, url } = context;
  const ticket = cookieOf(request.headers, PROVIDER_COOKIE);
  const from = fromOf(services, context);
  const result = await auth.providerLogin.finish(ticket, url.searchParams, from);
  switch (result.kind) {
    case 'right': {
      const { user } = result;
      const next = nextOf(new URLSearchParams({ next: result.next }));
      const moved = user.hasSecondFactor
        ? toSecondStep(auth.login.ticketFor(user), next)
        : beginSession(auth, context, user, next, from);
      moved.headers.append('set-cookie', setCookie(PROVIDER_COOKIE, '', 0));
      return moved;
    }
    case 'too-many':
      return showLogin(auth, context, paths.start, notTried(result));
    case 'unavailable':
      noteUnavailable(result.reason);
      return showLogin(auth, context, paths.start, REFUSALS.unavailable);
    default:
      return showLogin(auth, context, paths.start, REFUSALS[result.kind]);
  }
}

const NO_INVITATION =
  'This link has been used or has expired. Restart the service to get a new one while there is no operator, or run: bun run sluice user create EMAIL --operator';

/** The form of the first operator's link; also as it comes back. */
export function firstOperatorPage(
  context: PageContext | FormContext,
  token = context.url.searchParams.get('token') ?? '',
  refusal?: FormRefusal,
): Response {
  const page = {
    title: 'Create the first operator',
    action: paths.firstOperator,
    button: 'Create login',
    hidden: { token },
    above: <p>Operators can see all accounts and manage plans and credits.</p>,
    fields: (
      <>
        <EmailField />
        <NewPasswordField />
      </>
    ),
  };
  return showForm(context, page, refusal);
}

export async function makeFirstOperator(services: LoginServices, context: FormContext): Promise<Response> {
  const token = field(context.form, 'token');
  const result = await services.auth.signUp.firstOperator(token, applicationFrom(context.form));
  return answered(services, context, result, (refusal) => firstOperatorPage(context, token, refusal));
}

/** The form of a new account with its first user; also as it comes back. */
export function signUpPage(context: PageContext | FormContext, refusal?: FormRefusal): Response {
  const page = {
    title: 'Sign up',
    action: paths.signUp,
    button: 'Sign up',
    fields: (
      <>
        <TextField
          name="account"
          label="Account name"
          autocomplete="organization"
          hint="Your company or project."
          isRequired
        />
        <EmailField />
        <NewPasswordField />
      </>
    ),
    below: (
      <p>
        <a href={paths.login}>Already have an account? Sign in</a>
      </p>
    ),
  };
  return showForm(context, page, refusal);
}

export async function signUp(services: LoginServices, context: FormContext): Promise<Response> {
  const { auth, addressOf } = services;
  const name = field(context.form, 'account').trim();
  const from = { address: addressOf(context.request) };
  const result = await auth.signUp.customer(name, applicationFrom(context.form), from);
  return answered(services, context, result, (refusal) => signUpPage(context, refusal));
}

function applicationFrom(form: URLSearchParams) {
  return { email: field(form, 'email'), password: field(form, 'new-password') };
}

function answered(
  { auth, addressOf }: LoginServices,
  context: FormContext,
  result: SignUpResult,
  again: (refusal: FormRefusal) => Response,
): Response {
  switch (result.kind) {
    case 'created': {
      const from = { address: addressOf(context.request) };
      return beginSession(auth, context, result.user, paths.start, from);
    }
    case 'unfit': {
      const name = result.of === 'password' ? 'new-password' : result.of;
      return again({ errors: { [name]: result.sentence }, status: 422 });
    }
    case 'no-invitation':
      return again({ errors: { form: NO_INVITATION }, status: 410 });
    case 'too-many':
    case 'busy':
      return again(notTried(result));
    default:
      return unreachable(result);
  }
}

/** @jsxImportSource preact */
import { unreachable } from '../../../../shared/brand.ts';
import type { AuthService, Viewer } from '../../../auth/auth-service.ts';
import { AT_PROVIDER_MS } from '../../../auth/provider.ts';
import { type CookieName, cookieOf, SESSION_COOKIE, setCookie } from '../../../auth/sessions.ts';
import { ButtonLink, formContent, TextField } from '../../components/forms.tsx';
import type { LoginServices } from '../../page-services.ts';
import { type Content, type FormContext, openPage, type FormRefusal } from '../../page.ts';
import { paths, redirect, redirectAway, withNext } from '../../paths.ts';
import {
  beginSession,
  CodeField,
  EmailField,
  field,
  fieldsOf,
  fromOf,
  NewPasswordField,
  nextOf,
  notTried,
  PasswordField,
  STEP_COOKIE,
  toSecondStep,
} from './sign-in.tsx';

/** Where everybody begins. */
export const startPage = openPage({
  path: paths.start,
  show: (_, { viewer }) => redirect(viewer === undefined ? paths.login : startPathOf(viewer)),
});

function startPathOf({ role, accountId }: Viewer): string {
  if (role === 'operator') return paths.operatorAccounts;
  return accountId === undefined ? paths.settings : paths.overview(accountId);
}

/** Keeps the chosen colours in a cookie and comes back to the page. */
export const themePage = openPage({
  path: paths.theme,
  forms: {
    '': ({ origin }, { form }) =>
      redirect(form.get('next') ?? paths.start, undefined, [
        themeCookie(form.get('theme'), origin.startsWith('https:')),
      ]),
  },
});

const YEAR_SECONDS = 365 * 86_400;

/** The `Set-Cookie` of a choice, neither secret nor personal; no choice takes the cookie away. */
export function themeCookie(chosen: string | null, isSecure: boolean): string {
  const [value, maxAge] = chosen === 'light' || chosen === 'dark' ? [chosen, YEAR_SECONDS] : ['', 0];
  const secure = isSecure ? '; Secure' : '';
  return `theme=${value}; Path=/; Max-Age=${maxAge}; SameSite=Lax; HttpOnly${secure}`;
}

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
export const loginPage = openPage({
  path: paths.login,
  show({ auth }, context) {
    const next = nextOf(fieldsOf(context));
    const session = context.returned ? undefined : auth.sessionOf(context.request);
    if (session === undefined) return loginContent(auth, next);
    return redirect(auth.mustEnrol(session) ? withNext(paths.secondFactor, next) : next);
  },
  forms: {
    async ''(services, context) {
      const [email, password] = [field(context.form, 'email'), field(context.form, 'password')];
      const from = fromOf(services, context);
      return answered(services, context, await services.auth.login.withPassword(email, password, from));
    },
  },
});

type LoginFormResult =
  | Awaited<ReturnType<AuthService['login']['withPassword' | 'withCode']>>
  | Awaited<ReturnType<AuthService['signUp']['customer' | 'firstOperator']>>;

/** How an attempt ends: signed in, at the second step, or with its form again; `wrong` is said of what was sent. */
function answered(
  services: LoginServices,
  context: FormContext,
  result: LoginFormResult,
  wrong: FormRefusal = REFUSALS.wrong,
): Response | FormRefusal {
  const next = nextOf(context.form);
  switch (result.kind) {
    case 'right':
    case 'created':
      return beginSession(services, context, result.user, next);
    case 'code-wanted':
      return toSecondStep(result.ticket, next);
    case 'over':
      return redirect(withNext(paths.login, next), undefined, [setCookie(STEP_COOKIE, '', 0)]);
    case 'wrong':
      return wrong;
    case 'unfit':
      return { errors: { [result.of === 'password' ? 'new-password' : result.of]: result.sentence } };
    case 'no-invitation':
      return refusal(410, NO_INVITATION);
    case 'too-many':
    case 'busy':
      return notTried(result);
    default:
      return unreachable(result);
  }
}

/** With a `refusal` where somebody did not come to the login by themselves. */
function loginContent(
  { config: { oidc, signUp } }: AuthService,
  next: string,
  refused?: FormRefusal,
): Content {
  const content = formContent({
    title: 'Sign in',
    action: paths.login,
    button: 'Sign in',
    hidden: { next },
    children: [<EmailField />, <PasswordField />],
    below: [
      oidc && (
        <p>
          <ButtonLink to={withNext(paths.provider, next)} text={`Sign in with ${oidc.name}`} />
        </p>
      ),
      signUp && (
        <p>
          <a href={paths.signUp}>Sign up</a>
        </p>
      ),
    ],
  });
  return { ...content, ...refused, returned: refused };
}

/** The code after the password. */
export const secondStepPage = openPage({
  path: paths.secondStep,
  show(_, context) {
    const next = nextOf(fieldsOf(context));
    return formContent({
      title: 'Two-factor authentication',
      action: paths.secondStep,
      button: 'Sign in',
      hidden: { next },
      children: <CodeField hint="The six-digit code from your authenticator app, or a backup code." />,
      below: (
        <p>
          <a href={withNext(paths.login, next)}>Start over</a>
        </p>
      ),
    });
  },
  forms: {
    ''(services, context) {
      const ticket = cookieOf(context.request.headers, STEP_COOKIE);
      const result = services.auth.login.withCode(ticket, field(context.form, 'code'));
      return answered(services, context, result, REFUSALS['wrong-code']);
    },
  },
});

/** Ends the session; the page confirms a sign-out whose address was typed. */
export const logoutPage = openPage({
  path: paths.logout,
  show: () => formContent({ title: 'Sign out', action: paths.logout, button: 'Sign out' }),
  forms: {
    ''({ auth }, { request }) {
      const token = cookieOf(request.headers, SESSION_COOKIE);
      if (token !== undefined) auth.sessions.end(token);
      return redirect(paths.login, undefined, [setCookie(SESSION_COOKIE, '', 0)]);
    },
  },
});

const hasProvider = ({ auth }: LoginServices) => auth.providerLogin !== undefined;

/** Sends to the identity provider. By a link, not a form: `form-action` of the policy would refuse the way to another origin. */
export const providerPage = openPage({
  path: paths.provider,
  isThere: hasProvider,
  async show({ auth, noteUnavailable }, { url }) {
    const next = nextOf(url.searchParams);
    const started = await auth.providerLogin?.begin(next);
    if (started === undefined) return undefined;
    if (started.kind === 'unavailable') {
      noteUnavailable(started.reason);
      return loginContent(auth, next, REFUSALS.unavailable);
    }
    return redirectAway(started.url, [setCookie(PROVIDER_COOKIE, started.ticket, AT_PROVIDER_MS)]);
  },
});

/** Signs in a user who returns from the identity provider. */
export const providerReturnPage = openPage({
  path: paths.providerReturn,
  isThere: hasProvider,
  async show(services, context) {
    const { auth, noteUnavailable } = services;
    const { request, url } = context;
    const ticket = cookieOf(request.headers, PROVIDER_COOKIE);
    const from = fromOf(services, context);
    const result = await auth.providerLogin?.finish(ticket, url.searchParams, from);
    if (result === undefined) return undefined; // there is no provider
    switch (result.kind) {
      case 'right': {
        const { user } = result;
        const next = nextOf(new URLSearchParams({ next: result.next }));
        const moved = user.hasSecondFactor
          ? toSecondStep(auth.login.ticketFor(user), next)
          : beginSession(services, context, user, next);
        moved.headers.append('set-cookie', setCookie(PROVIDER_COOKIE, '', 0));
        return moved;
      }
      case 'too-many':
        return loginContent(auth, paths.start, notTried(result));
      case 'unavailable':
        noteUnavailable(result.reason);
        return loginContent(auth, paths.start, REFUSALS.unavailable);
      default:
        return loginContent(auth, paths.start, REFUSALS[result.kind]);
    }
  },
});

const NO_INVITATION =
  'This link has been used or has expired. Restart the service to get a new one while there is no operator, or run: bun run sluice user create EMAIL --operator';

/** The first operator's link. */
export const firstOperatorPage = openPage({
  path: paths.firstOperator,
  show: (_, context) =>
    formContent({
      title: 'Create the first operator',
      action: paths.firstOperator,
      button: 'Create login',
      hidden: { token: field(fieldsOf(context), 'token') },
      above: <p>Operators can see all accounts and manage plans and credits.</p>,
      children: [<EmailField />, <NewPasswordField />],
    }),
  forms: {
    async ''(services, context) {
      const { form } = context;
      const { signUp } = services.auth;
      const result = await signUp.firstOperator(field(form, 'token'), applicationFrom(form));
      return answered(services, context, result);
    },
  },
});

/** A new account with its first user. */
export const signUpPage = openPage({
  path: paths.signUp,
  isThere: ({ auth }) => auth.config.signUp,
  show: () =>
    formContent({
      title: 'Sign up',
      action: paths.signUp,
      button: 'Sign up',
      children: [
        <TextField
          name="account"
          label="Account name"
          autocomplete="organization"
          hint="Your company or project."
          isRequired
        />,
        <EmailField />,
        <NewPasswordField />,
      ],
      below: (
        <p>
          <a href={paths.login}>Already have an account? Sign in</a>
        </p>
      ),
    }),
  forms: {
    async ''(services, context) {
      const { form, request } = context;
      const [name, from] = [field(form, 'account').trim(), { address: services.addressOf(request) }];
      const result = await services.auth.signUp.customer(name, applicationFrom(form), from);
      return answered(services, context, result);
    },
  },
});

function applicationFrom(form: URLSearchParams) {
  return { email: field(form, 'email'), password: field(form, 'new-password') };
}

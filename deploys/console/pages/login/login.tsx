/** @jsxImportSource preact */
import { unreachable } from '../../../../shared/brand.ts';
import { ButtonLink, PostForm } from '../../components/forms.tsx';
import type { FormContext, PageContext } from '../../context.ts';
import type { LoginServices } from '../../page-services.ts';
import {
  Card,
  CodeField,
  EmailField,
  field,
  type FormRefusal,
  notTried,
  PasswordField,
} from './login-form.tsx';
import { beginSession, fromOf, nextOf, STEP_COOKIE, toSecondStep } from './session.ts';
import { paths, withNext } from '../../paths.ts';
import { redirect } from '../../redirect.ts';
import type { AuthService } from '../../../auth/auth-service.ts';
import { cookieOf, SESSION_COOKIE, setCookie } from '../../../auth/sessions.ts';

/** One text for every reason, so that it does not reveal which emails have a user. */
const WRONG: FormRefusal = { errors: { form: 'Incorrect email or password.' }, status: 401 };
const WRONG_CODE: FormRefusal = {
  errors: { form: 'This code is incorrect, expired or already used. Wait for the next one.' },
  status: 401,
};

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
      return showLogin(auth, context, next, WRONG);
    case 'too-many':
    case 'busy':
      return showLogin(auth, context, next, notTried(result));
    default:
      return unreachable(result);
  }
}

export function showLogin(
  { config }: AuthService,
  context: PageContext | FormContext,
  next: string,
  refusal?: FormRefusal,
): Response {
  return context.show({
    ...refusal,
    title: 'Sign in',
    body: (
      <>
        <Card>
          <PostForm
            action={paths.login}
            button="Sign in"
            kind="primary"
            hidden={{ next }}
            errors={refusal?.errors}
            sent={'form' in context ? context.form : undefined}
          >
            <EmailField />
            <PasswordField />
          </PostForm>
        </Card>
        {config.oidc && (
          <p>
            <ButtonLink to={withNext(paths.provider, next)}>Sign in with {config.oidc.name}</ButtonLink>
          </p>
        )}
        {config.signUp && (
          <p>
            <a href={paths.signUp}>Sign up</a>
          </p>
        )}
      </>
    ),
  });
}

export function secondStepPage(context: PageContext): Response {
  return showSecondStep(context, nextOf(context.url.searchParams));
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
      return showSecondStep(context, next, WRONG_CODE);
    case 'too-many':
      return showSecondStep(context, next, notTried(result));
    case 'over':
      return redirect(withNext(paths.login, next), undefined, [setCookie(STEP_COOKIE, '', 0)]);
    default:
      return unreachable(result);
  }
}

function showSecondStep({ show }: PageContext, next: string, refusal?: FormRefusal): Response {
  return show({
    ...refusal,
    title: 'Two-factor authentication',
    body: (
      <>
        <Card>
          <PostForm
            action={paths.secondStep}
            button="Sign in"
            kind="primary"
            hidden={{ next }}
            errors={refusal?.errors}
          >
            <CodeField hint="The six-digit code from your authenticator app, or a backup code." />
          </PostForm>
        </Card>
        <p>
          <a href={withNext(paths.login, next)}>Start over</a>
        </p>
      </>
    ),
  });
}

/** Asks for confirmation, for an address that was typed. */
export function logoutPage({ show }: PageContext): Response {
  return show({
    title: 'Sign out',
    body: (
      <Card>
        <PostForm action={paths.logout} button="Sign out" kind="primary" />
      </Card>
    ),
  });
}

export function logOut({ auth }: LoginServices, { request }: PageContext): Response {
  const token = cookieOf(request.headers, SESSION_COOKIE);
  if (token !== undefined) auth.sessions.end(token);
  return redirect(paths.login, undefined, [setCookie(SESSION_COOKIE, '', 0)]);
}

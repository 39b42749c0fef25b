/** @jsxImportSource preact */
import { LOGOUT_PATH } from '../../console/paths.ts';
import { unreachable } from '../../../shared/brand.ts';
import { ButtonLink } from '../../console/components/forms.tsx';
import type { AddressOf } from '../client-address.ts';
import { cookieOf, SESSION_COOKIE, setCookie } from '../cookie.ts';
import type { From } from '../login.ts';
import type { People } from '../people.ts';
import { type Asked, field, type Filled, type PersonPage } from './asked.ts';
import { Card, Complaint, Field, Form } from './form.tsx';
import {
  LOGIN_PATH,
  moveIn,
  moveTo,
  moveToSecondStep,
  nextOf,
  PROVIDER_PATH,
  SECOND_FACTOR_PATH,
  SECOND_STEP_PATH,
  STEP_COOKIE,
  withNext,
} from './moves.ts';
import { type FormRefusal, notTried, refused } from './refusals.ts';

/** One text for every reason, so that nobody learns which e-mails have a login. */
const WRONG: FormRefusal = { sentence: 'The e-mail or the password is wrong.', status: 401 };
const WRONG_CODE: FormRefusal = {
  sentence: 'This code is wrong, too old, or was used already. Wait for the next one.',
  status: 401,
};

/** `/login`, `/login/second-step` and `/logout`. */
export function loginPages(people: People, addressOf: AddressOf): readonly PersonPage[] {
  const fromOf = ({ request }: Asked): From => ({
    address: addressOf(request),
    signedInAs: people.sessionOf(request)?.userId,
  });
  return [
    {
      path: LOGIN_PATH,
      get: (asked) => {
        const next = nextOf(asked.url.searchParams.get('next'));
        const session = people.sessionOf(asked.request);
        if (session === undefined) return showLogin(people, asked, next);
        return moveTo(people.mustEnrol(session) ? withNext(SECOND_FACTOR_PATH, next) : next);
      },
      post: (asked) => logIn(people, asked, fromOf(asked)),
    },
    {
      path: SECOND_STEP_PATH,
      get: (asked) => showSecondStep(asked, nextOf(asked.url.searchParams.get('next'))),
      post: (asked) => enterCode(people, asked, fromOf(asked)),
    },
    {
      path: LOGOUT_PATH,
      get: (asked) =>
        asked.show({
          title: 'Sign out',
          body: (
            <Card>
              <Form action={LOGOUT_PATH} button="Sign out of this browser" />
            </Card>
          ),
        }),
      post: ({ request }) => {
        const token = cookieOf(request.headers, SESSION_COOKIE);
        if (token !== undefined) people.sessions.end(token);
        return moveTo(LOGIN_PATH, [setCookie(SESSION_COOKIE, '', 0)]);
      },
    },
  ];
}

async function logIn(people: People, asked: Filled, from: From): Promise<Response> {
  const { form, request } = asked;
  const next = nextOf(form.get('next'));
  const email = field(form, 'email');
  const result = await people.login.withPassword(email, field(form, 'password'), from);
  switch (result.kind) {
    case 'right':
      return moveIn(people, request, result.user, next, from);
    case 'code-wanted':
      return moveToSecondStep(result.ticket, next);
    case 'wrong':
      return showLogin(people, asked, next, email, WRONG);
    case 'too-many':
    case 'busy':
      return showLogin(people, asked, next, email, notTried(result));
    default:
      return unreachable(result);
  }
}

function enterCode(people: People, asked: Filled, from: From): Response {
  const { form, request } = asked;
  const next = nextOf(form.get('next'));
  const result = people.login.withCode(cookieOf(request.headers, STEP_COOKIE), field(form, 'code'));
  switch (result.kind) {
    case 'right':
      return moveIn(people, request, result.user, next, from);
    case 'wrong':
      return showSecondStep(asked, next, WRONG_CODE);
    case 'too-many':
      return showSecondStep(asked, next, notTried(result));
    case 'over':
      return moveTo(withNext(LOGIN_PATH, next), [setCookie(STEP_COOKIE, '', 0)]);
    default:
      return unreachable(result);
  }
}

/** The login form, with what was wrong with the last one. */
export function showLogin(
  { config }: People,
  asked: Asked,
  next: string,
  email = '',
  refusal?: FormRefusal,
): Response {
  const response = asked.show({
    title: 'Sign in',
    ...(refusal && { status: refusal.status }),
    body: (
      <>
        <Complaint sentence={refusal?.sentence} />
        <Card>
          <Form action={LOGIN_PATH} button="Sign in" hidden={{ next }}>
            <Field name="email" label="E-mail" type="email" autocomplete="username" value={email} />
            <Field name="password" label="Password" type="password" autocomplete="current-password" />
          </Form>
        </Card>
        {config.oidc && (
          <p>
            <ButtonLink to={withNext(PROVIDER_PATH, next)}>Sign in with {config.oidc.name}</ButtonLink>
          </p>
        )}
        {config.signUp && (
          <p>
            <a href="/sign-up">Make an account</a>
          </p>
        )}
      </>
    ),
  });
  return refusal ? refused(response, refusal) : response;
}

function showSecondStep(asked: Asked, next: string, refusal?: FormRefusal): Response {
  const hint = 'Six digits of the authenticator app, or one of the backup codes.';
  const response = asked.show({
    title: 'Second step',
    ...(refusal && { status: refusal.status }),
    body: (
      <>
        <Complaint sentence={refusal?.sentence} />
        <Card>
          <Form action={SECOND_STEP_PATH} button="Sign in" hidden={{ next }}>
            <Field name="code" label="Code" autocomplete="one-time-code" hint={hint} />
          </Form>
        </Card>
        <p>
          <a href={withNext(LOGIN_PATH, next)}>Start again</a>
        </p>
      </>
    ),
  });
  return refusal ? refused(response, refusal) : response;
}

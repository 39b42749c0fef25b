/** @jsxImportSource preact */
import { unreachable } from '../../../../shared/brand.ts';
import { ButtonLink } from '../../components/forms.tsx';
import {
  type Asked,
  Card,
  Complaint,
  field,
  Field,
  type Filled,
  Form,
  type FormRefusal,
  notTried,
  type PersonPage,
  refused,
} from './login-form.tsx';
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
} from './session.ts';
import { LOGOUT_PATH } from '../../paths.ts';
import type { AddressOf } from '../../../users/client-address.ts';
import { type CookieName, cookieOf, SESSION_COOKIE, setCookie } from '../../../users/cookie.ts';
import type { From } from '../../../users/login.ts';
import { AT_PROVIDER_MS } from '../../../users/oidc/login.ts';
import { type People, PROVIDER_RETURN_PATH } from '../../../users/people.ts';

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

const PROVIDER_COOKIE: CookieName = '__Host-sluice-provider';

const REFUSALS = {
  unavailable: {
    sentence: 'The identity provider cannot be reached. Try again, or sign in with a password.',
    status: 503,
  },
  over: { sentence: 'That took too long, or was begun in another window. Try again.', status: 400 },
  unknown: { sentence: 'There is no login here for this person. Ask an operator for one.', status: 403 },
  unverified: {
    sentence:
      'Somebody signed up with this e-mail and a password, and nobody verified that it is theirs. If that was you, sign in with the password and link the identity provider under Settings; if not, ask an operator to remove that login.',
    status: 403,
  },
  'linked-elsewhere': {
    sentence:
      'The login of this e-mail belongs to another identity at the provider. Ask an operator to unlink it.',
    status: 403,
  },
} as const;

/** The way to the identity provider and back; none where no provider is configured. `noteUnavailable` hears why one failed. */
export function providerPages(
  people: People,
  addressOf: AddressOf,
  noteUnavailable: (reason: string) => void,
): readonly PersonPage[] {
  const { providerLogin, login } = people;
  if (providerLogin === undefined) return [];
  return [
    {
      path: PROVIDER_PATH,
      // A link, not a form: `form-action` of the policy would refuse the way to another origin.
      get: async (asked) => {
        const next = nextOf(asked.url.searchParams.get('next'));
        const begun = await providerLogin.begin(next);
        if (begun.kind === 'unavailable') {
          noteUnavailable(begun.reason);
          return showLogin(people, asked, next, '', REFUSALS.unavailable);
        }
        return moveTo(begun.url.href, [setCookie(PROVIDER_COOKIE, begun.ticket, AT_PROVIDER_MS)]);
      },
    },
    {
      path: PROVIDER_RETURN_PATH,
      get: async (asked) => {
        const { request, url } = asked;
        const ticket = cookieOf(request.headers, PROVIDER_COOKIE);
        const back = { address: addressOf(request), signedInAs: people.sessionOf(request)?.userId };
        const result = await providerLogin.finish(ticket, url.searchParams, back);
        switch (result.kind) {
          case 'right': {
            const next = nextOf(result.next);
            const { user } = result;
            const moved = user.hasSecondFactor
              ? moveToSecondStep(login.ticketFor(user), next)
              : moveIn(people, request, user, next, back);
            moved.headers.append('set-cookie', setCookie(PROVIDER_COOKIE, '', 0));
            return moved;
          }
          case 'unavailable':
            noteUnavailable(result.reason);
            return showLogin(people, asked, '/', '', REFUSALS.unavailable);
          case 'over':
          case 'unknown':
          case 'unverified':
          case 'linked-elsewhere':
            return showLogin(people, asked, '/', '', REFUSALS[result.kind]);
          case 'too-many':
            return showLogin(people, asked, '/', '', notTried(result));
          default:
            return unreachable(result);
        }
      },
    },
  ];
}

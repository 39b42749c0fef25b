/** @jsxImportSource preact */
import { unreachable } from '../../../../shared/brand.ts';
import {
  type Asked,
  Card,
  Complaint,
  errorAt,
  errorOfForm,
  field,
  Field,
  type Filled,
  Form,
  type FormRefusal,
  NewPassword,
  notTried,
  type PersonPage,
  refused,
} from './login-form.tsx';
import { moveIn } from './session.ts';
import type { AddressOf } from '../../../users/client-address.ts';
import { FIRST_OPERATOR_PATH } from '../../../users/first-operator.ts';
import type { From } from '../../../users/login.ts';
import type { People } from '../../../users/people.ts';
import type { SignUpResult } from '../../../users/sign-up.ts';

const SIGN_UP_PATH = '/sign-up';

/** `/first-operator`, and `/sign-up` where it is allowed. */
export function signUpPages(people: People, addressOf: AddressOf): readonly PersonPage[] {
  const { signUp } = people;
  const fromOf = ({ request }: Asked): From => ({ address: addressOf(request) });
  const firstOperator: PersonPage = {
    path: FIRST_OPERATOR_PATH,
    get: (asked) => showFirstOperator(asked, asked.url.searchParams.get('token') ?? ''),
    post: async (asked) => {
      const token = field(asked.form, 'token');
      const result = await signUp.firstOperator(token, applicationFrom(asked.form));
      return answered(people, asked, fromOf(asked), result, (refusal) =>
        showFirstOperator(asked, token, refusal),
      );
    },
  };
  if (!people.config.signUp) return [firstOperator];
  return [
    firstOperator,
    {
      path: SIGN_UP_PATH,
      get: (asked) => showSignUp(asked),
      post: async (asked) => {
        const from = fromOf(asked);
        const result = await signUp.customer(
          field(asked.form, 'account').trim(),
          applicationFrom(asked.form),
          from,
        );
        return answered(people, asked, from, result, (refusal) => showSignUp(asked, refusal));
      },
    },
  ];
}

function applicationFrom(form: URLSearchParams) {
  return { email: field(form, 'email'), password: field(form, 'new-password') };
}

function answered(
  people: People,
  { request }: Filled,
  from: From,
  result: SignUpResult,
  again: (refusal: FormRefusal) => Response,
): Response {
  switch (result.kind) {
    case 'created':
      return moveIn(people, request, result.user, '/', from);
    case 'unfit':
      return again({
        sentence: result.sentence,
        status: 422,
        field: result.of === 'password' ? 'new-password' : result.of,
      });
    case 'no-invitation':
      return again({ sentence: NO_INVITATION, status: 410 });
    case 'too-many':
    case 'busy':
      return again(notTried(result));
    default:
      return unreachable(result);
  }
}

const NO_INVITATION =
  'This link was used already or is over. Restart the service for a new one while there is no operator, or run: bun run sluice user create EMAIL --operator';

function showFirstOperator(asked: Asked, token: string, refusal?: FormRefusal): Response {
  const response = asked.show({
    title: 'The first operator',
    ...(refusal && { status: refusal.status }),
    body: (
      <>
        <Complaint sentence={errorOfForm(refusal)} />
        <p>An operator sees every account, and sets plans and credits.</p>
        <Card>
          <Form action={FIRST_OPERATOR_PATH} button="Make the login" hidden={{ token }}>
            <EmailField asked={asked} refusal={refusal} />
            <NewPassword error={errorAt(refusal, 'new-password')} />
          </Form>
        </Card>
      </>
    ),
  });
  return refusal ? refused(response, refusal) : response;
}

function showSignUp(asked: Asked, refusal?: FormRefusal): Response {
  const response = asked.show({
    title: 'Make an account',
    ...(refusal && { status: refusal.status }),
    body: (
      <>
        <Complaint sentence={errorOfForm(refusal)} />
        <Card>
          <Form action={SIGN_UP_PATH} button="Make the account">
            <Field
              name="account"
              label="Account name"
              autocomplete="organization"
              value={kept(asked, 'account')}
              hint="Of your company or project."
              error={errorAt(refusal, 'account')}
            />
            <EmailField asked={asked} refusal={refusal} />
            <NewPassword error={errorAt(refusal, 'new-password')} />
          </Form>
        </Card>
        <p>
          <a href="/login">Sign in instead</a>
        </p>
      </>
    ),
  });
  return refusal ? refused(response, refusal) : response;
}

function EmailField({ asked, refusal }: Readonly<{ asked: Asked; refusal: FormRefusal | undefined }>) {
  return (
    <Field
      name="email"
      label="E-mail"
      type="email"
      autocomplete="username"
      value={kept(asked, 'email')}
      error={errorAt(refusal, 'email')}
    />
  );
}

/** What was typed before, so that a refused form comes back filled; never a password. */
function kept(asked: Asked, name: 'email' | 'account'): string {
  return 'form' in asked && asked.form instanceof URLSearchParams ? field(asked.form, name) : '';
}

/** @jsxImportSource preact */
import { unreachable } from '../../../../shared/brand.ts';
import type { FormContext, PageContext } from '../../context.ts';
import type { LoginServices } from '../../page-services.ts';
import {
  Card,
  Complaint,
  errorAt,
  field,
  Field,
  Form,
  type FormRefusal,
  NewPassword,
  notTried,
} from './login-form.tsx';
import { beginSession } from './session.ts';
import { paths } from '../../paths.ts';
import type { SignUpResult } from '../../../auth/sign-up.ts';

const NO_INVITATION =
  'This link was used already or is over. Restart the service for a new one while there is no operator, or run: bun run sluice user create EMAIL --operator';

/** The form behind the link of the first operator. */
export function firstOperatorPage(context: PageContext): Response {
  return showFirstOperator(context, context.url.searchParams.get('token') ?? '');
}

/** Makes the first operator. */
export async function makeFirstOperator(services: LoginServices, context: FormContext): Promise<Response> {
  const token = field(context.form, 'token');
  const result = await services.auth.signUp.firstOperator(token, applicationFrom(context.form));
  return answered(services, context, result, (refusal) => showFirstOperator(context, token, refusal));
}

/** The form of a new account. */
export function signUpPage(context: PageContext): Response {
  return showSignUp(context);
}

/** Makes an account with its first user. */
export async function signUp(services: LoginServices, context: FormContext): Promise<Response> {
  const { auth, addressOf } = services;
  const name = field(context.form, 'account').trim();
  const from = { address: addressOf(context.request) };
  const result = await auth.signUp.customer(name, applicationFrom(context.form), from);
  return answered(services, context, result, (refusal) => showSignUp(context, refusal));
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
    case 'created':
      return beginSession(auth, context, result.user, paths.start, {
        address: addressOf(context.request),
      });
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

function showFirstOperator(context: PageContext, token: string, refusal?: FormRefusal): Response {
  return context.show({
    ...refusal,
    title: 'The first operator',
    body: (
      <>
        <Complaint refusal={refusal} />
        <p>An operator sees every account, and sets plans and credits.</p>
        <Card>
          <Form action={paths.firstOperator} button="Make the login" hidden={{ token }}>
            <EmailField context={context} refusal={refusal} />
            <NewPassword refusal={refusal} />
          </Form>
        </Card>
      </>
    ),
  });
}

function showSignUp(context: PageContext, refusal?: FormRefusal): Response {
  return context.show({
    ...refusal,
    title: 'Make an account',
    body: (
      <>
        <Complaint refusal={refusal} />
        <Card>
          <Form action={paths.signUp} button="Make the account">
            <Field
              name="account"
              label="Account name"
              autocomplete="organization"
              value={kept(context, 'account')}
              hint="Of your company or project."
              error={errorAt(refusal, 'account')}
            />
            <EmailField context={context} refusal={refusal} />
            <NewPassword refusal={refusal} />
          </Form>
        </Card>
        <p>
          <a href={paths.login}>Sign in instead</a>
        </p>
      </>
    ),
  });
}

type EmailProps = Readonly<{ context: PageContext; refusal: FormRefusal | undefined }>;

function EmailField({ context, refusal }: EmailProps) {
  return (
    <Field
      name="email"
      label="E-mail"
      type="email"
      autocomplete="username"
      value={kept(context, 'email')}
      error={errorAt(refusal, 'email')}
    />
  );
}

/** What was typed before, so that a refused form comes back filled; never a password. */
function kept(context: PageContext, name: 'email' | 'account'): string {
  return 'form' in context && context.form instanceof URLSearchParams ? field(context.form, name) : '';
}

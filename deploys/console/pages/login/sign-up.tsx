/** @jsxImportSource preact */
import { unreachable } from '../../../../shared/brand.ts';
import type { SignUpResult } from '../../../auth/sign-up.ts';
import { TextField } from '../../components/forms.tsx';
import type { FormContext, PageContext } from '../../context.ts';
import type { LoginServices } from '../../page-services.ts';
import { paths } from '../../paths.ts';
import {
  beginSession,
  EmailField,
  field,
  type FormRefusal,
  NewPasswordField,
  notTried,
  showForm,
} from './sign-in.tsx';

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

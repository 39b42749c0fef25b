/** @jsxImportSource preact */
import { unreachable } from '../../../../shared/brand.ts';
import { PostForm, TextField } from '../../components/forms.tsx';
import type { FormContext, PageContext } from '../../context.ts';
import type { LoginServices } from '../../page-services.ts';
import { Card, EmailField, field, type FormRefusal, NewPasswordField, notTried } from './login-form.tsx';
import { beginSession } from './session.ts';
import { paths } from '../../paths.ts';
import type { SignUpResult } from '../../../auth/sign-up.ts';

const NO_INVITATION =
  'This link has been used or has expired. Restart the service to get a new one while there is no operator, or run: bun run sluice user create EMAIL --operator';

export function firstOperatorPage(context: PageContext): Response {
  return showFirstOperator(context, context.url.searchParams.get('token') ?? '');
}

export async function makeFirstOperator(services: LoginServices, context: FormContext): Promise<Response> {
  const token = field(context.form, 'token');
  const result = await services.auth.signUp.firstOperator(token, applicationFrom(context.form));
  return answered(services, context, result, (refusal) => showFirstOperator(context, token, refusal));
}

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
        errors: { [result.of === 'password' ? 'new-password' : result.of]: result.sentence },
        status: 422,
      });
    case 'no-invitation':
      return again({ errors: { form: NO_INVITATION }, status: 410 });
    case 'too-many':
    case 'busy':
      return again(notTried(result));
    default:
      return unreachable(result);
  }
}

function showFirstOperator(
  context: PageContext | FormContext,
  token: string,
  refusal?: FormRefusal,
): Response {
  return context.show({
    ...refusal,
    title: 'Create the first operator',
    body: (
      <>
        <p>Operators can see all accounts and manage plans and credits.</p>
        <Card>
          <PostForm
            action={paths.firstOperator}
            button="Create login"
            kind="primary"
            hidden={{ token }}
            errors={refusal?.errors}
            sent={'form' in context ? context.form : undefined}
          >
            <EmailField />
            <NewPasswordField />
          </PostForm>
        </Card>
      </>
    ),
  });
}

function showSignUp(context: PageContext | FormContext, refusal?: FormRefusal): Response {
  return context.show({
    ...refusal,
    title: 'Sign up',
    body: (
      <>
        <Card>
          <PostForm
            action={paths.signUp}
            button="Sign up"
            kind="primary"
            errors={refusal?.errors}
            sent={'form' in context ? context.form : undefined}
          >
            <TextField
              name="account"
              label="Account name"
              autocomplete="organization"
              hint="Your company or project."
              isRequired
            />
            <EmailField />
            <NewPasswordField />
          </PostForm>
        </Card>
        <p>
          <a href={paths.login}>Already have an account? Sign in</a>
        </p>
      </>
    ),
  });
}

/** @jsxImportSource preact */
import type { Account } from '../../../accounts/account-row.ts';
import type { AdditionResult } from '../../../accounts/accounts.ts';
import { type Actor, actorOf } from '../../../accounts/audit.ts';
import { makePassword } from '../../../auth/passwords.ts';
import { readEmail } from '../../../auth/users.ts';
import { confirmErrors, ConfirmPanel, type FormErrors, formIdFrom } from '../../components/forms.tsx';
import type { Answer, ViewerContext, ViewerForm } from '../../context.ts';
import type { PageServices } from '../../page-services.ts';
import { accountIn, type Filling, showAccount } from './account.tsx';
import { accountErrors, creditsFrom, NO_PLAN } from './accounts.tsx';
import { paths } from '../../paths.ts';
import { type FlashCode, redirect } from '../../redirect.ts';

/** Does something to the account of the path; where there is none, the page of what is not there. */
function onAccount<A extends Answer>(
  services: PageServices,
  context: ViewerForm,
  act: (account: Account, by: Actor) => A,
): A | Response {
  const account = accountIn(services, context);
  const { userId, role } = context.viewer;
  return account === undefined ? context.notFound() : act(account, actorOf(userId, role));
}

export function changePlan(services: PageServices, context: ViewerForm): Response {
  return onAccount(services, context, (account, by) => {
    const plan = context.form.get('plan') ?? '';
    const wanted = { plan: { name: plan === NO_PLAN ? undefined : plan } };
    const result = services.accounts.set(account.name, wanted, by);
    return answered(services, context, account, result, 'plan', 'plan-changed');
  });
}

/** Adds once per form, however often it is sent. */
export function addCredits(services: PageServices, context: ViewerForm): Response {
  return onAccount(services, context, (account, by) => {
    const { form } = context;
    const once = formIdFrom(form);
    if (once === undefined)
      return showAccount(services, context, account, {
        of: 'credits',
        sent: form,
        errors: { form: INCOMPLETE },
      });
    const [credits, reason] = [creditsFrom(form.get('credits') ?? ''), form.get('reason')?.trim() ?? ''];
    const result = services.accounts.addCredits(account.name, { credits, reason, once }, by);
    return answered(services, context, account, result, 'credits', 'credits-added');
  });
}

export function renameAccount(services: PageServices, context: ViewerForm): Response {
  return onAccount(services, context, (account, by) => {
    const result = services.accounts.rename(account.name, context.form.get('name')?.trim() ?? '', by);
    return answered(services, context, account, result, 'name', 'saved');
  });
}

/** Accepts the account's keys again. */
export function resumeAccount(services: PageServices, context: ViewerForm): Response {
  return onAccount(services, context, (account, by) => {
    services.accounts.resume(account.name, by);
    return redirect(paths.operatorAccount(account.id), 'account-resumed');
  });
}

export function suspendPage(services: PageServices, context: ViewerContext): Response {
  const account = accountIn(services, context);
  return account === undefined ? context.notFound() : showSuspend(context, account);
}

export function suspendAccount(services: PageServices, context: ViewerForm): Response {
  return onAccount(services, context, (account, by) => {
    const errors = confirmErrors(context.form, account.name);
    if (errors) return showSuspend(context, account, errors);
    services.accounts.suspend(account.name, by);
    return redirect(paths.operatorAccount(account.id), 'account-suspended');
  });
}

function showSuspend({ show }: ViewerContext, { id, name }: Account, errors?: FormErrors): Response {
  return show({
    title: `Suspend ${name}`,
    crumbs: [
      ['Accounts', paths.operatorAccounts],
      [name, paths.operatorAccount(id)],
    ],
    status: errors && 422,
    body: (
      <ConfirmPanel
        title="Suspend"
        action={`${paths.operatorAccount(id)}/suspend`}
        phrase={name}
        button="Suspend account"
        errors={errors}
      >
        All API keys stop working within a second, at the RPC endpoint and the program API, until you resume
        the account. Users can still sign in and webhooks are still sent. You can resume it at any time.
      </ConfirmPanel>
    ),
  });
}

function answered(
  services: PageServices,
  context: ViewerForm,
  account: Account,
  result: AdditionResult,
  of: Filling['of'],
  flash: FlashCode,
): Response {
  if (result.kind === 'account' || result.kind === 'added-before')
    return redirect(paths.operatorAccount(account.id), flash);
  return showAccount(services, context, account, { of, sent: context.form, errors: accountErrors(result) });
}

/** A user with a first password, which the user's page shows once. */
export function addUser(services: PageServices, context: ViewerForm): Answer {
  const { auth, random, oneTimeSecrets } = services;
  return onAccount(services, context, async (account, by) => {
    const refuse = (errors: FormErrors) =>
      showAccount(services, context, account, { of: 'user', sent: context.form, errors });
    const email = readEmail(context.form.get('email') ?? '');
    const id = context.form.get('user') ?? '';
    if (email === undefined) return refuse({ email: 'Enter a valid email address.' });
    if (!/^[0-9a-f]{24}$/.test(id)) return refuse({ form: INCOMPLETE });
    const password = makePassword(random);
    const hashed = await auth.hashing.hash(password, 'known');
    if (hashed.kind === 'busy') return refuse({ form: 'The server is busy. Please try again.' });
    if (auth.users.byId(id) === undefined) {
      const place = { role: 'customer', accountId: account.id } as const;
      const created = auth.users.create({ id, email, place, passwordHash: hashed.hash }, by);
      if (created.kind === 'email-taken') return refuse({ email: TAKEN });
      oneTimeSecrets.put(context.viewer.userId, password, id);
    }
    const user = auth.users.byId(id);
    if (user?.email !== email || user.accountId !== account.id)
      return refuse({ form: 'This form was already submitted. Please reload the page.' });
    return redirect(`${paths.user(id)}?shown=${id}`, 'user-created');
  });
}

const INCOMPLETE = 'The form was incomplete. Please try again.';
const TAKEN = "A user with this email already exists. You can reset the password on the user's page.";

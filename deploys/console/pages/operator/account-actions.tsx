/** @jsxImportSource preact */
import type { Account } from '../../../accounts/account-row.ts';
import type { AdditionResult } from '../../../accounts/accounts.ts';
import { type Actor, actorOf } from '../../../accounts/audit.ts';
import { makePassword } from '../../../auth/passwords.ts';
import { readEmail } from '../../../auth/users.ts';
import { ConfirmPanel, type FormErrors, isConfirmed } from '../../components/forms.tsx';
import type { ViewerContext, ViewerForm } from '../../context.ts';
import type { PageServices } from '../../page-services.ts';
import { accountIn, type Filling, showAccount, USER_ID_FIELD } from './account.tsx';
import { accountErrors, creditsFrom, NO_PLAN } from './accounts.tsx';
import { paths } from '../../paths.ts';
import { type FlashCode, redirect } from '../../redirect.ts';

/** Does something to the account of the path; where there is none, the page of what is not there. */
function onAccount(
  services: PageServices,
  context: ViewerForm,
  act: (account: Account, by: Actor) => Response,
): Response {
  const account = accountIn(services, context);
  const { userId, role } = context.viewer;
  return account === undefined ? context.notFound() : act(account, actorOf(userId, role));
}

/** Puts the account on another plan. */
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
    const once = form.get('once') ?? '';
    if (!/^[0-9a-f]{32}$/.test(once))
      return again(services, context, account, 'credits', { form: 'This form is not whole. Fill it again.' });
    const credits = creditsFrom(form.get('credits') ?? '');
    const reason = form.get('reason')?.trim() ?? '';
    const result = services.accounts.addCredits(account.name, { credits, reason, once }, by);
    return answered(services, context, account, result, 'credits', 'credits-added');
  });
}

/** Gives the account another name. */
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

/** Asks for confirmation. */
export function suspendPage(services: PageServices, context: ViewerContext): Response {
  const account = accountIn(services, context);
  return account === undefined ? context.notFound() : showSuspend(context, account);
}

/** Suspends the account whose name was typed. */
export function suspendAccount(services: PageServices, context: ViewerForm): Response {
  return onAccount(services, context, (account, by) => {
    if (!isConfirmed(context.form, account.name))
      return showSuspend(context, account, { confirm: `That is not ${account.name}.` });
    services.accounts.suspend(account.name, by);
    return redirect(paths.operatorAccount(account.id), 'account-suspended');
  });
}

function showSuspend({ show }: ViewerContext, { id, name }: Account, errors?: FormErrors): Response {
  return show({
    title: `Suspend ${name}`,
    crumbs: [
      { label: 'Accounts', to: paths.operatorAccounts },
      { label: name, to: paths.operatorAccount(id) },
    ],
    status: errors && 422,
    body: (
      <ConfirmPanel
        title="Suspend"
        action={`${paths.operatorAccount(id)}/suspend`}
        phrase={name}
        button="Suspend this account"
        errors={errors}
      >
        Within a second none of its keys is accepted, at the RPC endpoint and at the program API. Its users
        can sign in still, and webhooks are sent still. Resuming takes it back.
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
  return again(services, context, account, of, accountErrors(result));
}

function again(
  services: PageServices,
  context: ViewerForm,
  account: Account,
  of: Filling['of'],
  errors: FormErrors,
): Response {
  return showAccount(services, context, account, { of, form: context.form, errors });
}

/** A user with a first password, which the user's page shows once. */
export async function addUser(services: PageServices, context: ViewerForm): Promise<Response> {
  const { auth, random, oneTimeSecrets } = services;
  const account = accountIn(services, context);
  if (account === undefined) return context.notFound();
  const again = (errors: FormErrors) =>
    showAccount(services, context, account, { of: 'user', form: context.form, errors });
  const email = readEmail(context.form.get('email') ?? '');
  const id = context.form.get(USER_ID_FIELD) ?? '';
  if (email === undefined) return again({ email: 'That is no e-mail address.' });
  if (!/^[0-9a-f]{24}$/.test(id)) return again({ form: 'This form is not whole. Open the page anew.' });
  const password = makePassword(random);
  const hashed = await auth.hashing.hash(password, 'known');
  if (hashed.kind === 'busy') return again({ form: 'Too many logins are being checked. Try again.' });
  const place = { role: 'customer', accountId: account.id } as const;
  const isMade = auth.users.byId(id) !== undefined;
  if (!isMade) {
    const user = { id, email, place, passwordHash: hashed.hash };
    const created = auth.users.create(user, actorOf(context.viewer.userId, context.viewer.role));
    if (created.kind === 'email-taken') return again({ email: TAKEN });
    oneTimeSecrets.put(context.viewer.userId, password, id);
  }
  const made = auth.users.byId(id);
  if (made?.email !== email || made.accountId !== account.id)
    return again({ form: 'This form was sent before. Open the page anew.' });
  return redirect(`${paths.user(id)}?shown=${id}`, 'user-created');
}

const TAKEN = 'There is a login of this e-mail already. Its page can make a new password.';

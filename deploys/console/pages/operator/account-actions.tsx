/** @jsxImportSource preact */
import type { Account } from '../../../accounts/account-row.ts';
import type { AccountResult } from '../../../accounts/accounts.ts';
import { ConfirmForm, type FormErrors, isConfirmed } from '../../components/forms.tsx';
import { Panel } from '../../components/panels.tsx';
import type { Action, AskedByViewer, Filled, Page } from '../../context.ts';
import type { PageDeps } from '../../page-services.ts';
import { accountIn, type AccountPageDeps, type Filling, showAccount } from './account.tsx';
import { accountErrors, creditsFrom, NO_PLAN } from './accounts.tsx';
import { operatorActor } from './actor.ts';
import { USER_ID_FIELD } from './user.tsx';
import { accountPath, ACCOUNTS_PATH, userPath } from '../../paths.ts';
import { type FlashCode, seeOther } from '../../redirect.ts';
import { readEmail } from '../../../users/email.ts';
import { makePassword } from '../../../users/initial-password.ts';

type Asked = AskedByViewer & Filled;
type Operator = ReturnType<typeof operatorActor>;

/** An action on the account of the path; there is none: the page of what is not there. */
function onAccount(
  deps: AccountPageDeps,
  act: (account: Account, asked: Asked, by: Operator) => Response | Promise<Response>,
): Action<AskedByViewer> {
  return (asked) => {
    const account = accountIn(deps, asked);
    return account === undefined ? asked.notFound() : act(account, asked, operatorActor(asked));
  };
}

/** `POST /operator/accounts/:id/plan`. */
export function createChangePlan(deps: AccountPageDeps): Action<AskedByViewer> {
  return onAccount(deps, (account, asked, by) => {
    const plan = asked.form.get('plan') ?? '';
    const result = deps.accounts.set(
      account.name,
      { plan: { name: plan === NO_PLAN ? undefined : plan } },
      by,
    );
    return answered(deps, asked, account, result, 'plan', 'plan-changed');
  });
}

/** `POST /operator/accounts/:id/credits`: adds once per form, however often it is sent. */
export function createAddCredits(deps: AccountPageDeps): Action<AskedByViewer> {
  return onAccount(deps, (account, asked, by) => {
    const { form } = asked;
    const once = form.get('once') ?? '';
    if (!/^[0-9a-f]{32}$/.test(once))
      return again(deps, asked, account, 'credits', { form: 'This form is not whole. Fill it again.' });
    const credits = creditsFrom(form.get('credits') ?? '');
    const reason = form.get('reason')?.trim() ?? '';
    const result = deps.accounts.addCredits(account.name, { credits, reason, once }, by);
    if (result.kind === 'account' || result.kind === 'added-before')
      return seeOther(accountPath(account.id), 'credits-added');
    return again(deps, asked, account, 'credits', accountErrors(result, 'name'));
  });
}

/** `POST /operator/accounts/:id/rename`. */
export function createRename(deps: AccountPageDeps): Action<AskedByViewer> {
  return onAccount(deps, (account, asked, by) => {
    const result = deps.accounts.rename(account.name, asked.form.get('name')?.trim() ?? '', by);
    return answered(deps, asked, account, result, 'name', 'saved');
  });
}

/** `POST /operator/accounts/:id/resume`. */
export function createResume(deps: AccountPageDeps): Action<AskedByViewer> {
  return onAccount(deps, (account, _, by) => {
    deps.accounts.resume(account.name, by);
    return seeOther(accountPath(account.id), 'account-resumed');
  });
}

/** `GET /operator/accounts/:id/suspend`: asks whether it is meant. */
export function createSuspendPage(deps: AccountPageDeps): Page<AskedByViewer> {
  return (asked) => {
    const account = accountIn(deps, asked);
    return account === undefined ? asked.notFound() : showSuspend(asked, account);
  };
}

/** `POST /operator/accounts/:id/suspend`, with the account's name typed. */
export function createSuspend(deps: AccountPageDeps): Action<AskedByViewer> {
  return onAccount(deps, (account, asked, by) => {
    if (!isConfirmed(asked.form, account.name))
      return showSuspend(asked, account, { confirm: `That is not ${account.name}.` });
    deps.accounts.suspend(account.name, by);
    return seeOther(accountPath(account.id), 'account-suspended');
  });
}

function showSuspend({ show }: AskedByViewer, { id, name }: Account, errors?: FormErrors): Response {
  return show({
    title: `Suspend ${name}`,
    crumbs: [
      { label: 'Accounts', to: ACCOUNTS_PATH },
      { label: name, to: accountPath(id) },
    ],
    status: errors && 422,
    body: (
      <Panel title="Suspend" isDanger>
        <ConfirmForm
          action={`${accountPath(id)}/suspend`}
          phrase={name}
          button="Suspend this account"
          errors={errors}
        >
          <p>
            Within a second none of its keys is accepted, at the RPC endpoint and at the program API. Its
            users can sign in still, and webhooks are sent still. Resuming takes it back.
          </p>
        </ConfirmForm>
      </Panel>
    ),
  });
}

function answered(
  deps: AccountPageDeps,
  asked: Asked,
  account: Account,
  result: AccountResult,
  of: Filling['of'],
  flash: FlashCode,
): Response {
  if (result.kind === 'account') return seeOther(accountPath(account.id), flash);
  return again(deps, asked, account, of, accountErrors(result, 'name'));
}

function again(
  deps: AccountPageDeps,
  asked: Asked,
  account: Account,
  of: Filling['of'],
  errors: FormErrors,
): Response {
  return showAccount(deps, asked, account, { of, form: asked.form, errors });
}

/** `POST /operator/accounts/:id/users`: a user with a first password, which the user's page shows once. */
export function createAddUser(deps: AccountPageDeps & Pick<PageDeps, 'reveals'>): Action<AskedByViewer> {
  const { people, random, reveals } = deps;
  return async function addUser(asked) {
    const account = accountIn(deps, asked);
    if (account === undefined) return asked.notFound();
    const again = (errors: FormErrors) =>
      showAccount(deps, asked, account, { of: 'user', form: asked.form, errors });
    const email = readEmail(asked.form.get('email') ?? '');
    const id = asked.form.get(USER_ID_FIELD) ?? '';
    if (email === undefined) return again({ email: 'That is no e-mail address.' });
    if (!/^[0-9a-f]{24}$/.test(id)) return again({ form: 'This form is not whole. Open the page anew.' });
    const password = makePassword(random);
    const hashed = await people.hashing.hash(password, 'known');
    if (hashed.kind === 'busy') return again({ form: 'Too many logins are being checked. Try again.' });
    const place = { role: 'customer', accountId: account.id } as const;
    const isMade = people.users.byId(id) !== undefined;
    if (!isMade) {
      const user = { id, email, place, passwordHash: hashed.hash };
      const created = people.users.create(user, operatorActor(asked));
      if (created.kind === 'email-taken') return again({ email: TAKEN });
      reveals.put(asked.viewer.userId, password, id);
    }
    const made = people.users.byId(id);
    if (made?.email !== email || made.accountId !== account.id)
      return again({ form: 'This form was sent before. Open the page anew.' });
    return seeOther(`${userPath(id)}?shown=${id}`, 'user-created');
  };
}

const TAKEN = 'There is a login of this e-mail already. Its page can make a new password.';

/** @jsxImportSource preact */
import type { Account } from '../../../accounts/account-row.ts';
import type { AdditionResult } from '../../../accounts/accounts.ts';
import { type Actor, actorOf } from '../../../accounts/audit.ts';
import { makePassword } from '../../../auth/passwords.ts';
import { readEmail } from '../../../auth/users.ts';
import { Ago, countText } from '../../components/format.tsx';
import {
  ActionPanel,
  ButtonLink,
  confirmErrors,
  type FormErrors,
  formIdFrom,
  INCOMPLETE_FORM,
  newFormId,
  PostForm,
  type Returned,
  SelectField,
  TextField,
} from '../../components/forms.tsx';
import { Columns, Notice, Panel, statRow } from '../../components/panels.tsx';
import { Link, Tabs } from '../../components/links.tsx';
import type { Answer, ViewerContext, ViewerForm } from '../../context.ts';
import type { PageServices } from '../../page-services.ts';
import { type FlashCode, idFrom, paths, redirect } from '../../paths.ts';
import { AccountBadge, accountErrors, confirmPage, creditsFrom, NO_PLAN, planOptions } from './accounts.tsx';
import { auditTable, createWhoOf } from './audit.tsx';
import { userTable } from './user.tsx';

const ENTRIES = 10;

function accountIn({ accounts }: PageServices, { params }: ViewerContext) {
  const id = idFrom(params['id']);
  return id === undefined ? undefined : accounts.findById(id);
}

/** One account, and all that can be done with it. */
export function accountPage(services: PageServices, context: ViewerContext): Response {
  const account = accountIn(services, context);
  return account === undefined ? context.notFound() : showAccount(services, context, account);
}

/** The page of an account; with `filling`, one of its forms comes back with what is wrong. */
function showAccount(
  services: PageServices,
  context: ViewerContext,
  account: Account,
  filling?: Filling,
): Response {
  const { id, name } = account;
  const { operator, auth, plans, random } = services;
  const entries = operator.audit.list({ accountId: id, limit: ENTRIES });
  const users = auth.users.ofAccount(id);
  const returned = (of: Filling['of']): Returned =>
    filling?.of === of ? { errors: filling.errors, sent: filling.sent } : {};
  return context.show({
    title: name,
    crumbs: [['Accounts', paths.operatorAccounts]],
    aside: <AccountBadge account={account} />,
    status: filling && 422,
    body: (
      <>
        {accountTabs(id)}
        {attention(account, plans)}
        {figures(services, account, users.length, context.nowMs)}
        <Columns>
          <div class="panel-stack">
            {planPanel(account, plans, returned('plan'))}
            {namePanel(account, returned('name'))}
          </div>
          <div class="panel-stack">
            {creditsPanel(account, random, returned('credits'))}
            {suspendPanel(account)}
          </div>
        </Columns>
        <Panel title="Users" isFlush={users.length > 0}>
          {userTable(users, true, <p>No users yet.</p>)}
        </Panel>
        {userPanel(id, auth.users.newId(), returned('user'))}
        <Panel
          title="Audit log"
          isFlush={entries.length > 0}
          aside={<Link to={`${paths.audit}?account=${id}`}>All entries</Link>}
        >
          {auditTable(entries, createWhoOf(services), <p>No changes in the last 400 days.</p>)}
        </Panel>
      </>
    ),
  });
}

function planPanel({ id, plan }: Account, plans: PageServices['plans'], returned: Returned) {
  return (
    <Panel title="Plan">
      <PostForm action={`${paths.operatorAccount(id)}/plan`} button="Change plan" {...returned}>
        <SelectField
          name="plan"
          label="Plan"
          value={plan ?? NO_PLAN}
          options={planOptions(plans, plan)}
          hint="Credits already used are not restored. Takes effect within a second."
        />
      </PostForm>
    </Panel>
  );
}

function namePanel({ id, name }: Account, returned: Returned) {
  return (
    <Panel title="Name">
      <PostForm action={`${paths.operatorAccount(id)}/rename`} button="Rename" {...returned}>
        <TextField name="name" label="Name" value={name} isRequired maxLength={64} />
      </PostForm>
    </Panel>
  );
}

function creditsPanel({ id, creditsLeft }: Account, random: PageServices['random'], returned: Returned) {
  return (
    <Panel title="Add credits">
      {creditsLeft === undefined && returned.errors === undefined ? (
        <p>This plan has unlimited credits.</p>
      ) : (
        <PostForm
          action={`${paths.operatorAccount(id)}/credits`}
          button="Add credits"
          // The form has an id of its own, so that it adds once however often it is sent.
          hidden={{ once: returned.sent?.get('once') ?? newFormId(random) }}
          {...returned}
        >
          <TextField
            name="credits"
            label="Credits"
            inputMode="numeric"
            isRequired
            placeholder="250,000"
            hint={creditsLeft === undefined ? undefined : `${countText(creditsLeft)} left.`}
          />
          <TextField
            name="reason"
            label="Reason"
            isRequired
            maxLength={200}
            hint="Recorded in the audit log."
          />
        </PostForm>
      )}
    </Panel>
  );
}

function userPanel(accountId: number, newId: string, returned: Returned) {
  return (
    <Panel title="Add user" id="add-user">
      <PostForm
        action={`${paths.operatorAccount(accountId)}/users`}
        button="Add user"
        // The form chooses the new user's id: sent twice, it leads both times to the one user and password.
        hidden={{ user: returned.sent?.get('user') ?? newId }}
        {...returned}
      >
        <TextField
          name="email"
          label="Email"
          type="email"
          isRequired
          maxLength={254}
          hint="An initial password is generated and shown once. No email is sent."
        />
      </PostForm>
    </Panel>
  );
}

function accountTabs(id: number) {
  const pages = [
    ['Manage', paths.operatorAccount(id)],
    ['Overview', paths.overview(id)],
    ['Usage', paths.usage(id)],
    ['API keys', paths.keys(id)],
    ['Webhooks', paths.webhooks(id)],
    ['Deliveries', paths.deliveries(id)],
  ] as const;
  return <Tabs label="Account" tabs={pages.map(([label, to], i) => [label, to, i === 0])} />;
}

function attention({ plan, isSuspended, creditsLeft }: Account, plans: PageServices['plans']) {
  return (
    <>
      {isSuspended && <Notice tone="bad">Suspended: all API keys are rejected.</Notice>}
      {creditsLeft === 0 && (
        <Notice tone="warning">
          Out of credits: all calls are rejected with 402 until credits are added.
        </Notice>
      )}
      {plan !== undefined && !plans.has(plan) && (
        <Notice tone="warning">Plan {plan} is no longer in the config, so all calls are rejected.</Notice>
      )}
    </>
  );
}

function figures({ plans, minutes }: PageServices, account: Account, userCount: number, nowMs: number) {
  const { id, plan, creditsLeft, createdAtMs } = account;
  const rate = plan === undefined ? undefined : plans.get(plan);
  const hour = minutes.recentMinutes(id, nowMs);
  const sum = (figure: 'calls' | 'refused') =>
    countText(hour.reduce((all, minute) => all + minute[figure], 0));
  const left = creditsLeft === undefined ? 'Unlimited' : countText(creditsLeft);
  return statRow([
    ['Plan', plan ?? 'None', rate && `${countText(rate.rps)} calls per second`],
    ['Credits left', left, undefined, creditsLeft === 0 && 'warning'],
    ['Calls, last hour', sum('calls'), `${sum('refused')} rejected`],
    ['Users', countText(userCount)],
    ['Created', <Ago atMs={createdAtMs} />],
  ]);
}

function suspendPanel({ id, isSuspended }: Account) {
  const path = paths.operatorAccount(id);
  if (isSuspended)
    return (
      <ActionPanel title="Resume" action={`${path}/resume`} button="Resume account" kind="primary">
        All API keys work again within a second.
      </ActionPanel>
    );
  return (
    <Panel title="Suspend" isDanger>
      <p>All API keys stop working until you resume the account. Nothing is deleted.</p>
      <div>
        <ButtonLink to={`${path}/suspend`} text="Suspend account…" />
      </div>
    </Panel>
  );
}

/** One of the page's forms as it was sent, with what is wrong with it. */
type Filling = Returned & Readonly<{ of: 'plan' | 'credits' | 'name' | 'user' }>;

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
        errors: { form: INCOMPLETE_FORM },
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

function showSuspend(context: ViewerContext, { id, name }: Account, errors?: FormErrors): Response {
  const path = paths.operatorAccount(id);
  return confirmPage(context, `Suspend ${name}`, [name, path], {
    title: 'Suspend',
    action: `${path}/suspend`,
    phrase: name,
    button: 'Suspend account',
    errors,
    children:
      'All API keys stop working within a second, at the RPC endpoint and the program API, until you resume the ' +
      'account. Users can still sign in and webhooks are still sent. You can resume it at any time.',
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
    if (!/^[0-9a-f]{24}$/.test(id)) return refuse({ form: INCOMPLETE_FORM });
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

const TAKEN = "A user with this email already exists. You can reset the password on the user's page.";

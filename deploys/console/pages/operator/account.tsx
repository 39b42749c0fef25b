/** @jsxImportSource preact */
import type { Account } from '../../../accounts/account-row.ts';
import type { AdditionResult } from '../../../accounts/accounts.ts';
import { makePassword } from '../../../auth/passwords.ts';
import { readEmail } from '../../../auth/users.ts';
import { Ago, countText } from '../../components/format.tsx';
import {
  ButtonLink,
  ConfirmPanel,
  FormPanel,
  formIdFor,
  formIdFrom,
  INCOMPLETE_FORM,
  SelectField,
  TextField,
  unconfirmed,
} from '../../components/forms.tsx';
import type { Returned } from '../../components/here.ts';
import { Link, Tabs } from '../../components/links.tsx';
import { Columns, Notice, Panel, statRow } from '../../components/panels.tsx';
import type { PageServices } from '../../page-services.ts';
import { type FormContext, operatorPage, type FormRefusal, type ViewerContext } from '../../page.ts';
import { type FlashCode, idFrom, paths, redirect } from '../../paths.ts';
import { AccountBadge, accountRefusal, creditsFrom, NO_PLAN, planFrom, planOptions } from './accounts.tsx';
import { auditTable, createWhoOf } from './audit.tsx';
import { userTable } from './user.tsx';

const ENTRIES = 10;

function accountOf({ accounts }: PageServices, { params }: ViewerContext) {
  const id = idFrom(params['id']);
  return id === undefined ? undefined : accounts.findById(id);
}

/** One account, and all that can be done with it. */
export const accountPage = operatorPage({
  path: paths.operatorAccount(':id'),
  find: accountOf,
  show(services, context, account) {
    const { id, name } = account;
    const { operator, auth, plans, random } = services;
    const entries = operator.audit.list({ accountId: id, limit: ENTRIES });
    const users = auth.users.ofAccount(id);
    return {
      title: name,
      crumbs: [['Accounts', paths.operatorAccounts]],
      aside: <AccountBadge account={account} />,
      body: [
        accountTabs(id),
        attention(account, plans),
        figures(services, account, users.length, context.nowMs),
        <Columns>
          <div class="panel-stack">
            {planPanel(account, plans)}
            {namePanel(account)}
          </div>
          <div class="panel-stack">
            {creditsPanel(account, formIdFor(context, random), context.returned)}
            {suspendPanel(account)}
          </div>
        </Columns>,
        <Panel title="Users" isFlush={users.length > 0}>
          {userTable(users, true, <p>No users yet.</p>)}
        </Panel>,
        userPanel(id, context.returned?.sent?.get('user') ?? auth.users.newId()),
        <Panel
          title="Audit log"
          isFlush={entries.length > 0}
          aside={<Link to={`${paths.audit}?account=${id}`}>All entries</Link>}
        >
          {auditTable(entries, createWhoOf(services), <p>No changes in the last 400 days.</p>)}
        </Panel>,
      ],
    };
  },
  forms: {
    '/plan': ({ accounts }, { form, actor }, account) =>
      changed(account, accounts.set(account.name, { plan: { name: planFrom(form) } }, actor), 'plan-changed'),
    /** Adds once per form, however often it is sent. */
    '/credits'({ accounts }, { form, actor }, account) {
      const once = formIdFrom(form);
      if (once === undefined) return INCOMPLETE_FORM;
      const [credits, reason] = [creditsFrom(form.get('credits') ?? ''), form.get('reason')?.trim() ?? ''];
      const added = accounts.addCredits(account.name, { credits, reason, once }, actor);
      return changed(account, added, 'credits-added');
    },
    '/rename': ({ accounts }, { form, actor }, account) =>
      changed(account, accounts.rename(account.name, form.get('name')?.trim() ?? '', actor), 'saved'),
    /** Accepts the account's keys again. */
    '/resume'({ accounts }, { actor }, { id, name }) {
      accounts.resume(name, actor);
      return redirect(paths.operatorAccount(id), 'account-resumed');
    },
    '/users': addUser,
  },
});

function changed({ id }: Account, result: AdditionResult, flash: FlashCode): Response | FormRefusal {
  return result.kind === 'account' || result.kind === 'added-before'
    ? redirect(paths.operatorAccount(id), flash)
    : accountRefusal(result);
}

function planPanel({ id, plan }: Account, plans: PageServices['plans']) {
  return (
    <FormPanel title="Plan" action={`${paths.operatorAccount(id)}/plan`} button="Change plan">
      <SelectField
        name="plan"
        label="Plan"
        value={plan ?? NO_PLAN}
        options={planOptions(plans, plan)}
        hint="Credits already used are not restored. Takes effect within a second."
      />
    </FormPanel>
  );
}

function namePanel({ id, name }: Account) {
  return (
    <FormPanel title="Name" action={`${paths.operatorAccount(id)}/rename`} button="Rename">
      <TextField name="name" label="Name" value={name} isRequired maxLength={64} />
    </FormPanel>
  );
}

/** `once`: the form has an id of its own, so that it adds once however often it is sent. */
function creditsPanel({ id, creditsLeft }: Account, once: string, returned: Returned | undefined) {
  const action = `${paths.operatorAccount(id)}/credits`;
  if (creditsLeft === undefined && returned?.action !== action)
    return (
      <Panel title="Add credits">
        <p>This plan has unlimited credits.</p>
      </Panel>
    );
  return (
    <FormPanel title="Add credits" action={action} button="Add credits" hidden={{ once }}>
      <TextField
        name="credits"
        label="Credits"
        inputMode="numeric"
        isRequired
        placeholder="250,000"
        hint={creditsLeft === undefined ? undefined : `${countText(creditsLeft)} left.`}
      />
      <TextField name="reason" label="Reason" isRequired maxLength={200} hint="Recorded in the audit log." />
    </FormPanel>
  );
}

/** The form chooses the new user's id: sent twice, it leads both times to the one user and password. */
function userPanel(accountId: number, user: string) {
  const action = `${paths.operatorAccount(accountId)}/users`;
  return (
    <FormPanel title="Add user" id="add-user" action={action} button="Add user" hidden={{ user }}>
      <TextField
        name="email"
        label="Email"
        type="email"
        isRequired
        maxLength={254}
        hint="An initial password is generated and shown once. No email is sent."
      />
    </FormPanel>
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
  return statRow([
    ['Plan', plan ?? 'None', rate && `${countText(rate.rps)} calls per second`],
    ['Credits left', countText(creditsLeft, 'Unlimited'), undefined, creditsLeft === 0 && 'warning'],
    ['Calls, last hour', sum('calls'), `${sum('refused')} rejected`],
    ['Users', countText(userCount)],
    ['Created', <Ago atMs={createdAtMs} />],
  ]);
}

function suspendPanel({ id, isSuspended }: Account) {
  const path = paths.operatorAccount(id);
  if (isSuspended)
    return (
      <FormPanel title="Resume" action={`${path}/resume`} button="Resume account" kind="primary">
        <p>All API keys work again within a second.</p>
      </FormPanel>
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

export const suspendPage = operatorPage({
  path: `${paths.operatorAccount(':id')}/suspend`,
  find: accountOf,
  show: (_, __, { id, name }) => ({
    title: `Suspend ${name}`,
    crumbs: [
      ['Accounts', paths.operatorAccounts],
      [name, paths.operatorAccount(id)],
    ],
    body: (
      <ConfirmPanel
        title="Suspend"
        action={`${paths.operatorAccount(id)}/suspend`}
        phrase={name}
        button="Suspend account"
      >
        All API keys stop working within a second, at the RPC endpoint and the program API, until you resume
        the account. Users can still sign in and webhooks are still sent. You can resume it at any time.
      </ConfirmPanel>
    ),
  }),
  forms: {
    ''({ accounts }, { form, actor }, { id, name }) {
      const refusal = unconfirmed(form, name);
      if (refusal) return refusal;
      accounts.suspend(name, actor);
      return redirect(paths.operatorAccount(id), 'account-suspended');
    },
  },
});

/** A user with a first password, which the user's page shows once. */
async function addUser(
  { auth, random, oneTimeSecrets }: PageServices,
  { form, viewer, actor }: FormContext<ViewerContext>,
  account: Account,
): Promise<Response | FormRefusal> {
  const email = readEmail(form.get('email') ?? '');
  const id = form.get('user') ?? '';
  if (email === undefined) return { errors: { email: 'Enter a valid email address.' } };
  if (!/^[0-9a-f]{24}$/.test(id)) return INCOMPLETE_FORM;
  const password = makePassword(random);
  const hashed = await auth.hashing.hash(password, 'known');
  if (hashed.kind === 'busy') return { errors: { form: 'The server is busy. Please try again.' } };
  if (auth.users.byId(id) === undefined) {
    const membership = { role: 'customer', accountId: account.id } as const;
    const created = auth.users.create({ id, email, membership, passwordHash: hashed.hash }, actor);
    if (created.kind === 'email-taken') return { errors: { email: TAKEN } };
    oneTimeSecrets.put(viewer.userId, password, id);
  }
  const user = auth.users.byId(id);
  if (user?.email !== email || user.accountId !== account.id)
    return { errors: { form: 'This form was already submitted. Please reload the page.' } };
  return redirect(`${paths.user(id)}?shown=${id}`, 'user-created');
}

const TAKEN = "A user with this email already exists. You can reset the password on the user's page.";

/** @jsxImportSource preact */
import type { Account } from '../../../accounts/account-row.ts';
import { Ago, countText } from '../../components/format.tsx';
import {
  ActionPanel,
  ButtonLink,
  newFormId,
  PostForm,
  type Returned,
  SelectField,
  TextField,
} from '../../components/forms.tsx';
import { Notice } from '../../components/icons.tsx';
import { Link, Tabs } from '../../components/links.tsx';
import { Columns, Panel, Stats } from '../../components/panels.tsx';
import type { ViewerContext } from '../../context.ts';
import type { PageServices } from '../../page-services.ts';
import { AccountBadge, NO_PLAN, planOptions } from './accounts.tsx';
import { auditTable, createWhoOf } from './audit.tsx';
import { userTable } from './user.tsx';
import { idFrom, paths } from '../../paths.ts';

/** Entries of the audit log on an account's page. */
const ENTRIES = 10;

export function accountIn({ accounts }: PageServices, { params }: ViewerContext) {
  const id = idFrom(params['id']);
  return id === undefined ? undefined : accounts.findById(id);
}

/** One account, and all that can be done with it. */
export function accountPage(services: PageServices, context: ViewerContext): Response {
  const account = accountIn(services, context);
  return account === undefined ? context.notFound() : showAccount(services, context, account);
}

/** The page of an account; with `filling`, one of its forms comes back with what is wrong. */
export function showAccount(
  services: PageServices,
  context: ViewerContext,
  account: Account,
  filling?: Filling,
): Response {
  const { id, name, creditsLeft, plan } = account;
  const { operator, auth, plans, random } = services;
  const entries = operator.audit.list({ accountId: id, limit: ENTRIES });
  const users = auth.users.ofAccount(id);
  const path = paths.operatorAccount(id);
  /** What a form comes back with, if it is the one that was sent. */
  const returned = (of: Filling['of']): Returned =>
    filling?.of === of ? { errors: filling.errors, sent: filling.sent } : {};
  const [credits, user] = [returned('credits'), returned('user')];
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
            <Panel title="Plan">
              <PostForm action={`${path}/plan`} button="Change plan" {...returned('plan')}>
                <SelectField
                  name="plan"
                  label="Plan"
                  value={plan ?? NO_PLAN}
                  options={planOptions(plans, plan)}
                  hint="Credits already used are not restored. Takes effect within a second."
                />
              </PostForm>
            </Panel>
            <Panel title="Name">
              <PostForm action={`${path}/rename`} button="Rename" {...returned('name')}>
                <TextField name="name" label="Name" value={name} isRequired maxLength={64} />
              </PostForm>
            </Panel>
          </div>
          <div class="panel-stack">
            <Panel title="Add credits">
              {creditsLeft === undefined && credits.errors === undefined ? (
                <p>This plan has unlimited credits.</p>
              ) : (
                <PostForm
                  action={`${path}/credits`}
                  button="Add credits"
                  // The form has an id of its own, so that it adds once however often it is sent.
                  hidden={{ once: credits.sent?.get('once') ?? newFormId(random) }}
                  {...credits}
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
            {suspendPanel(account)}
          </div>
        </Columns>
        <Panel title="Users" isFlush={users.length > 0}>
          {userTable(users, true, <p>No users yet.</p>)}
        </Panel>
        <Panel title="Add user" id="add-user">
          <PostForm
            action={`${path}/users`}
            button="Add user"
            // The form chooses the new user's id: sent twice, it leads both times to the one user and password.
            hidden={{ user: user.sent?.get('user') ?? auth.users.newId() }}
            {...user}
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

/** The way between an operator's page of an account and what its users see. */
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
  return (
    <Stats
      stats={[
        ['Plan', plan ?? 'None', rate && `${countText(rate.rps)} calls per second`],
        ['Credits left', left, undefined, creditsLeft === 0 && 'warning'],
        ['Calls, last hour', sum('calls'), `${sum('refused')} rejected`],
        ['Users', countText(userCount)],
        ['Created', <Ago atMs={createdAtMs} />],
      ]}
    />
  );
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
        <ButtonLink to={`${path}/suspend`}>Suspend account…</ButtonLink>
      </div>
    </Panel>
  );
}

/** One of the page's forms as it was sent, with what is wrong with it. */
export type Filling = Returned & Readonly<{ of: 'plan' | 'credits' | 'name' | 'user' }>;

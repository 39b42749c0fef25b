/** @jsxImportSource preact */
import type { Plan } from '../../../../shared/config/plans.ts';
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
import { AuditTable, createWhoOf } from './audit.tsx';
import { UserTable } from './user.tsx';
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
  const { id, name } = account;
  const entries = services.operator.audit.list({ accountId: id, limit: ENTRIES });
  const users = services.auth.users.ofAccount(id);
  return context.show({
    title: name,
    crumbs: [{ label: 'Accounts', to: paths.operatorAccounts }],
    aside: <AccountBadge account={account} />,
    status: filling && 422,
    body: (
      <>
        <AccountTabs account={account} />
        <Attention account={account} services={services} />
        <AccountFigures
          account={account}
          services={services}
          nowMs={context.nowMs}
          userCount={users.length}
        />
        <Columns>
          <div class="panel-stack">
            <Panel title="Plan">
              <PlanForm account={account} plans={services.plans} filling={filling} />
            </Panel>
            <Panel title="Name">
              <NameForm account={account} filling={filling} />
            </Panel>
          </div>
          <div class="panel-stack">
            <Panel title="Add credits">
              <CreditsForm account={account} random={services.random} filling={filling} />
            </Panel>
            <SuspendPanel account={account} />
          </div>
        </Columns>
        <Panel title="Users" isFlush={users.length > 0}>
          <UserTable users={users} isRoleShown empty={<p>No users yet.</p>} />
        </Panel>
        <Panel title="Add user" id="add-user">
          <AddUserForm account={account} newId={services.auth.users.newId()} filling={filling} />
        </Panel>
        <Panel
          title="Audit log"
          isFlush={entries.length > 0}
          aside={<Link to={`${paths.audit}?account=${id}`}>All entries</Link>}
        >
          <AuditTable
            entries={entries}
            whoOf={createWhoOf(services)}
            empty={<p>No changes in the last 400 days.</p>}
          />
        </Panel>
      </>
    ),
  });
}

/** The way between an operator's page of an account and what its users see. */
function AccountTabs({ account: { id } }: Readonly<{ account: Account }>) {
  const pages = [
    ['Manage', paths.operatorAccount(id)],
    ['Overview', paths.overview(id)],
    ['Usage', paths.usage(id)],
    ['API keys', paths.keys(id)],
    ['Webhooks', paths.webhooks(id)],
    ['Deliveries', paths.deliveries(id)],
  ] as const;
  return <Tabs label="Account" tabs={pages.map(([label, to], i) => ({ label, to, isCurrent: i === 0 }))} />;
}

function Attention({ account, services }: Readonly<{ account: Account; services: PageServices }>) {
  const { plan, isSuspended, creditsLeft } = account;
  return (
    <>
      {isSuspended && <Notice tone="bad">Suspended: all API keys are rejected.</Notice>}
      {creditsLeft === 0 && (
        <Notice tone="warning">
          Out of credits: all calls are rejected with 402 until credits are added.
        </Notice>
      )}
      {plan !== undefined && !services.plans.has(plan) && (
        <Notice tone="warning">Plan {plan} is no longer in the config, so all calls are rejected.</Notice>
      )}
    </>
  );
}

type FiguresProps = Readonly<{ account: Account; services: PageServices; nowMs: number; userCount: number }>;

function AccountFigures({ account, services, nowMs, userCount }: FiguresProps) {
  const { plan, creditsLeft, createdAtMs } = account;
  const rate = plan === undefined ? undefined : services.plans.get(plan);
  const hour = services.minutes.recentMinutes(account.id, nowMs);
  const sum = (figure: 'calls' | 'refused') => hour.reduce((all, minute) => all + minute[figure], 0);
  const refused = sum('refused');
  return (
    <Stats
      stats={[
        {
          label: 'Plan',
          value: plan ?? 'None',
          note: rate ? `${countText(rate.rps)} calls per second` : undefined,
        },
        {
          label: 'Credits left',
          value: creditsLeft === undefined ? 'Unlimited' : countText(creditsLeft),
          tone: creditsLeft === 0 ? 'warning' : undefined,
        },
        {
          label: 'Calls, last hour',
          value: countText(sum('calls')),
          note: `${countText(refused)} rejected`,
        },
        { label: 'Users', value: countText(userCount) },
        { label: 'Created', value: <Ago atMs={createdAtMs} /> },
      ]}
    />
  );
}

function SuspendPanel({ account: { id, isSuspended } }: Readonly<{ account: Account }>) {
  if (isSuspended)
    return (
      <ActionPanel
        title="Resume"
        action={`${paths.operatorAccount(id)}/resume`}
        button="Resume account"
        kind="primary"
      >
        All API keys work again within a second.
      </ActionPanel>
    );
  return (
    <Panel title="Suspend" isDanger>
      <p>All API keys stop working until you resume the account. Nothing is deleted.</p>
      <div>
        <ButtonLink to={`${paths.operatorAccount(id)}/suspend`}>Suspend account…</ButtonLink>
      </div>
    </Panel>
  );
}

/** One of the page's forms as it was sent, with what is wrong with it. */
export type Filling = Returned & Readonly<{ of: 'plan' | 'credits' | 'name' | 'user' }>;

type FormProps = Readonly<{ account: Account; filling: Filling | undefined }>;

/** What a form of the page comes back with, if it is the one that was sent. */
function returned(of: Filling['of'], filling: Filling | undefined): Returned {
  return filling?.of === of ? filling : {};
}

function PlanForm({
  account: { id, plan },
  plans,
  filling,
}: FormProps & Readonly<{ plans: ReadonlyMap<string, Plan> }>) {
  return (
    <PostForm
      action={`${paths.operatorAccount(id)}/plan`}
      button="Change plan"
      {...returned('plan', filling)}
    >
      <SelectField
        name="plan"
        label="Plan"
        value={plan ?? NO_PLAN}
        options={planOptions(plans, plan)}
        hint="Credits already used are not restored. Takes effect within a second."
      />
    </PostForm>
  );
}

/** Adds credits. The form has a name of its own, so that it adds once however often it is sent. */
function CreditsForm({
  account: { id, creditsLeft },
  random,
  filling,
}: FormProps & Readonly<{ random(bytes: number): Uint8Array }>) {
  const { errors, sent } = returned('credits', filling);
  if (creditsLeft === undefined && errors === undefined) return <p>This plan has unlimited credits.</p>;
  return (
    <PostForm
      action={`${paths.operatorAccount(id)}/credits`}
      button="Add credits"
      hidden={{ once: sent?.get('once') ?? newFormId(random) }}
      {...{ errors, sent }}
    >
      <TextField
        name="credits"
        label="Credits"
        inputMode="numeric"
        isRequired
        placeholder="250,000"
        hint={creditsLeft === undefined ? undefined : `${countText(creditsLeft)} left.`}
      />
      <TextField name="reason" label="Reason" isRequired maxLength={200} hint="Recorded in the audit log." />
    </PostForm>
  );
}

function NameForm({ account: { id, name }, filling }: FormProps) {
  return (
    <PostForm action={`${paths.operatorAccount(id)}/rename`} button="Rename" {...returned('name', filling)}>
      <TextField name="name" label="Name" value={name} isRequired maxLength={64} />
    </PostForm>
  );
}

/** Adds a user with a password that is shown once. */
function AddUserForm({ account: { id }, newId, filling }: FormProps & Readonly<{ newId: string }>) {
  const { errors, sent } = returned('user', filling);
  return (
    <PostForm
      action={`${paths.operatorAccount(id)}/users`}
      button="Add user"
      // The form chooses the new user's id: sent twice, it leads both times to the one user and password.
      hidden={{ user: sent?.get('user') ?? newId }}
      {...{ errors, sent }}
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
  );
}

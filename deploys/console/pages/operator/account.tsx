/** @jsxImportSource preact */
import type { Account } from '../../../accounts/account-row.ts';
import type { AskedByViewer, Page } from '../../context.ts';
import { ButtonLink, PostForm, Submit } from '../../components/forms.tsx';
import { Link, Tabs } from '../../components/links.tsx';
import { Notice } from '../../components/icons.tsx';
import { Ago, countText } from '../../components/format.tsx';
import { Columns, Panel, Stats } from '../../components/panels.tsx';
import type { PageDeps } from '../../page-services.ts';
import { CreditsForm, type Filling, NameForm, PlanForm } from './account-forms.tsx';
import { AccountBadge } from './accounts.tsx';
import { AuditTable } from './audit-table.tsx';
import { accountPath, ACCOUNTS_PATH, AUDIT_PATH, idFrom } from '../../paths.ts';
import { AddUserForm, UserTable } from './users.tsx';
import { createWhoOf } from './who.ts';

export type AccountPageDeps = Pick<
  PageDeps,
  'accounts' | 'plans' | 'people' | 'keys' | 'minutes' | 'operator' | 'random'
>;

/** Entries of the audit log on an account's page. */
const ENTRIES = 10;

/** The account that a path names. */
export function accountIn({ accounts }: Pick<PageDeps, 'accounts'>, { params }: AskedByViewer) {
  const id = idFrom(params['id']);
  return id === undefined ? undefined : accounts.findById(id);
}

/** `GET /operator/accounts/:id`: one account, and all that can be done with it. */
export function createAccountPage(deps: AccountPageDeps): Page<AskedByViewer> {
  return function accountPage(asked) {
    const account = accountIn(deps, asked);
    return account === undefined ? asked.notFound() : showAccount(deps, asked, account);
  };
}

/** The page of an account; with `filling`, one of its forms comes back with what is wrong. */
export function showAccount(
  deps: AccountPageDeps,
  asked: AskedByViewer,
  account: Account,
  filling?: Filling,
): Response {
  const { id, name } = account;
  const entries = deps.operator.audit.list({ accountId: id, limit: ENTRIES });
  const users = deps.people.users.ofAccount(id);
  return asked.show({
    title: name,
    crumbs: [{ label: 'Accounts', to: ACCOUNTS_PATH }],
    aside: <AccountBadge account={account} />,
    status: filling && 422,
    body: (
      <>
        <AccountTabs account={account} />
        <Attention account={account} deps={deps} />
        <AccountFigures account={account} deps={deps} nowMs={asked.nowMs} userCount={users.length} />
        <Columns>
          <div class="panel-stack">
            <Panel title="Plan">
              <PlanForm account={account} plans={deps.plans} filling={filling} />
            </Panel>
            <Panel title="Name">
              <NameForm account={account} filling={filling} />
            </Panel>
          </div>
          <div class="panel-stack">
            <Panel title="Add credits">
              <CreditsForm account={account} random={deps.random} filling={filling} />
            </Panel>
            <SuspendPanel account={account} />
          </div>
        </Columns>
        <Panel title="Users" isFlush={users.length > 0}>
          <UserTable users={users} isRoleShown empty={<p>Nobody can sign in for this account yet.</p>} />
        </Panel>
        <Panel title="Add user" id="add-user">
          <AddUserForm
            action={`${accountPath(id)}/users`}
            newId={deps.people.users.newId()}
            filling={filling}
          />
        </Panel>
        <Panel
          title="Changes"
          isFlush={entries.length > 0}
          aside={<Link to={`${AUDIT_PATH}?account=${id}`}>All changes</Link>}
        >
          <AuditTable
            entries={entries}
            whoOf={createWhoOf(deps)}
            isAccountShown={false}
            empty={<p>Nothing was changed in the last 400 days.</p>}
          />
        </Panel>
      </>
    ),
  });
}

/** The way between an operator's page of an account and what its users see. */
function AccountTabs({ account: { id } }: Readonly<{ account: Account }>) {
  const own = ['overview', 'usage', 'keys', 'webhooks', 'deliveries'].map((page) => ({
    label: `${page.slice(0, 1).toUpperCase()}${page.slice(1)}`,
    to: `/accounts/${id}/${page}`,
    isCurrent: false,
  }));
  return <Tabs label="Account" tabs={[{ label: 'Manage', to: accountPath(id), isCurrent: true }, ...own]} />;
}

function Attention({ account, deps }: Readonly<{ account: Account; deps: AccountPageDeps }>) {
  const { plan, isSuspended, creditsLeft } = account;
  return (
    <>
      {isSuspended && <Notice tone="bad">Suspended: none of its keys is accepted.</Notice>}
      {creditsLeft === 0 && (
        <Notice tone="warning">Out of credits: every call is refused with 402 until some are added.</Notice>
      )}
      {plan !== undefined && !deps.plans.has(plan) && (
        <Notice tone="warning">Its plan {plan} is no longer in the config, so its calls are refused.</Notice>
      )}
    </>
  );
}

type FiguresProps = Readonly<{ account: Account; deps: AccountPageDeps; nowMs: number; userCount: number }>;

function AccountFigures({ account, deps, nowMs, userCount }: FiguresProps) {
  const { plan, creditsLeft, createdAtMs } = account;
  const rate = plan === undefined ? undefined : deps.plans.get(plan);
  const hour = deps.minutes.recentMinutes(account.id, nowMs);
  const sum = (figure: 'calls' | 'refused') => hour.reduce((all, minute) => all + minute[figure], 0);
  const refused = sum('refused');
  return (
    <Stats
      stats={[
        {
          label: 'Plan',
          value: plan ?? 'none',
          note: rate ? `${countText(rate.rps)} calls a second` : undefined,
        },
        {
          label: 'Credits left',
          value: creditsLeft === undefined ? 'no limit' : countText(creditsLeft),
          tone: creditsLeft === 0 ? 'warning' : undefined,
        },
        {
          label: 'Calls, last hour',
          value: countText(sum('calls')),
          note: refused > 0 ? `${countText(refused)} refused` : 'none refused',
        },
        { label: 'Users', value: countText(userCount) },
        { label: 'Made', value: <Ago atMs={createdAtMs} nowMs={nowMs} /> },
      ]}
    />
  );
}

function SuspendPanel({ account: { id, isSuspended } }: Readonly<{ account: Account }>) {
  if (isSuspended)
    return (
      <Panel title="Resume">
        <PostForm action={`${accountPath(id)}/resume`}>
          <p>Its keys are accepted again within a second.</p>
          <div>
            <Submit kind="primary">Resume this account</Submit>
          </div>
        </PostForm>
      </Panel>
    );
  return (
    <Panel title="Suspend" isDanger>
      <p>None of its keys is accepted until it is resumed. Nothing is deleted.</p>
      <div>
        <ButtonLink to={`${accountPath(id)}/suspend`}>Suspend this account…</ButtonLink>
      </div>
    </Panel>
  );
}

/** @jsxImportSource preact */
import type { Account } from '../../../accounts/account-row.ts';
import type { Action, AskedByViewer, Page } from '../../context.ts';
import { Badge } from '../../components/icons.tsx';
import { Empty, Panel } from '../../components/panels.tsx';
import {
  ButtonLink,
  Buttons,
  Filters,
  type FormErrors,
  PostForm,
  SelectField,
  Submit,
  TextField,
} from '../../components/forms.tsx';
import { Link, Pager, withQuery } from '../../components/links.tsx';
import { countText, Time } from '../../components/format.tsx';
import { Table } from '../../components/table.tsx';
import type { PageDeps } from '../../page-services.ts';
import { seeOther } from '../../redirect.ts';
import { accountErrors } from './account-words.ts';
import { operatorActor } from './actor.ts';
import { accountPath, ACCOUNTS_PATH, idFrom } from '../../paths.ts';
import { NO_PLAN, planOptions } from './plan-words.ts';

type Deps = Pick<PageDeps, 'accounts' | 'plans'>;

/** Accounts of one page. */
const PAGE = 50;
const NEW_PATH = `${ACCOUNTS_PATH}/new`;
const STATES = [
  { value: '', label: 'All' },
  { value: 'suspended', label: 'Suspended' },
  { value: 'out-of-credits', label: 'Out of credits' },
];

/** `GET /operator/accounts`: every account, the newest first. */
export function createAccountsPage({ accounts, plans }: Deps): Page<AskedByViewer> {
  return function accountsPage({ url, show }) {
    const { searchParams } = url;
    const [search, plan, state] = ['q', 'plan', 'state'].map((name) => searchParams.get(name) ?? '');
    const { items, next } = accounts.page({
      search: search?.trim() ?? '',
      limit: PAGE,
      before: idFrom(searchParams.get('before')) ?? Number.MAX_SAFE_INTEGER,
      plan: plan ? { name: plan === NO_PLAN ? undefined : plan } : undefined,
      isSuspended: state === 'suspended' || undefined,
      isOutOfCredits: state === 'out-of-credits' || undefined,
    });
    const isFiltered = [search, plan, state].some(Boolean);
    return show({
      title: 'Accounts',
      aside: (
        <ButtonLink to={NEW_PATH} kind="primary">
          Add account
        </ButtonLink>
      ),
      body: (
        <>
          <Filters path={ACCOUNTS_PATH} isFiltered={isFiltered}>
            <TextField name="q" label="Search" type="search" value={search} placeholder="Part of a name" />
            <SelectField
              name="plan"
              label="Plan"
              value={plan}
              options={[{ value: '', label: 'All' }, ...[...plans.keys(), NO_PLAN].map(choice)]}
            />
            <SelectField name="state" label="State" value={state} options={STATES} />
          </Filters>
          <AccountTable accounts={items} isFiltered={isFiltered} isLast={next === undefined} />
          <Pager
            first={searchParams.has('before') ? withQuery(url, { before: undefined }) : undefined}
            older={next === undefined ? undefined : withQuery(url, { before: String(next) })}
          />
        </>
      ),
    });
  };
}

const choice = (name: string) => ({ value: name, label: name });

type AccountTableProps = Readonly<{ accounts: readonly Account[]; isFiltered: boolean; isLast: boolean }>;

function AccountTable({ accounts, isFiltered, isLast }: AccountTableProps) {
  const nothing = isLast ? 'No account is like this.' : 'No account on this page is like this.';
  return (
    <Table
      caption="Accounts"
      columns={[
        {
          label: 'Account',
          cell: ({ id, name }) => <Link to={accountPath(id)}>{name}</Link>,
          isRowHead: true,
        },
        { label: 'Plan', cell: ({ plan }) => plan ?? 'none' },
        {
          label: 'Credits left',
          align: 'end',
          cell: ({ creditsLeft }) => (creditsLeft === undefined ? 'no limit' : countText(creditsLeft)),
        },
        { label: 'State', cell: (account) => <AccountBadge account={account} /> },
        { label: 'Since', cell: ({ createdAtMs }) => <Time atMs={createdAtMs} /> },
      ]}
      rows={accounts}
      keyOf={({ id }) => id}
      empty={
        <Empty title={isFiltered ? nothing : 'No accounts yet'}>
          {!isFiltered && <p>An account has keys, a plan and users of its own.</p>}
        </Empty>
      }
    />
  );
}

/** Whether an account can be used. */
export function AccountBadge({ account }: Readonly<{ account: Account }>) {
  if (account.isSuspended) return <Badge tone="bad">suspended</Badge>;
  if (account.creditsLeft === 0) return <Badge tone="warning">out of credits</Badge>;
  return <Badge tone="good">active</Badge>;
}

/** `GET /operator/accounts/new`. */
export function createNewAccountPage(deps: Deps): Page<AskedByViewer> {
  return (asked) => showNew(deps, asked, { name: '', plan: 'trial' });
}

/** `POST /operator/accounts/new`: makes an account. */
export function createAddAccount(deps: Deps): Action<AskedByViewer> {
  return function addAccount(asked) {
    const [name, plan] = [asked.form.get('name')?.trim() ?? '', asked.form.get('plan') ?? NO_PLAN];
    const result = deps.accounts.create(name, plan === NO_PLAN ? undefined : plan, operatorActor(asked));
    if (result.kind === 'account') return seeOther(accountPath(result.account.id), 'account-created');
    return showNew(deps, asked, { name, plan }, accountErrors(result, 'name'));
  };
}

type NewAccount = Readonly<{ name: string; plan: string }>;

function showNew({ plans }: Deps, { show }: AskedByViewer, { name, plan }: NewAccount, errors?: FormErrors) {
  return show({
    title: 'Add account',
    crumbs: [{ label: 'Accounts', to: ACCOUNTS_PATH }],
    status: errors && 422,
    body: (
      <Panel title="Account">
        <PostForm action={NEW_PATH} errors={errors}>
          <TextField
            name="name"
            label="Name"
            value={name}
            isRequired
            maxLength={64}
            hint="Of a company or project. It can be changed later."
            error={errors?.['name']}
          />
          <SelectField
            name="plan"
            label="Plan"
            value={plan}
            options={planOptions(plans)}
            error={errors?.['plan']}
          />
          <Buttons>
            <Submit kind="primary">Add account</Submit>
          </Buttons>
        </PostForm>
      </Panel>
    ),
  });
}

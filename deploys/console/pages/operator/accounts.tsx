/** @jsxImportSource preact */
import type { Plan } from '../../../../shared/config/plans.ts';
import type { Account } from '../../../accounts/account-row.ts';
import type { AdditionResult } from '../../../accounts/accounts.ts';
import { countText, Time } from '../../components/format.tsx';
import {
  ButtonLink,
  Filters,
  filterSelect,
  formContent,
  SelectField,
  TextField,
} from '../../components/forms.tsx';
import { Link, Pager } from '../../components/links.tsx';
import { Badge, Empty, Table } from '../../components/panels.tsx';
import { operatorPage, type FormRefusal } from '../../page.ts';
import { idFrom, paths, redirect } from '../../paths.ts';

const PAGE = 50;
const NEW_PATH = `${paths.operatorAccounts}/new`;
const STATES = [
  ['suspended', 'Suspended'],
  ['out-of-credits', 'Out of credits'],
] as const;

/** Every account, the newest first. */
export const accountListPage = operatorPage({
  path: paths.operatorAccounts,
  entry: ['Accounts', 'people'],
  show({ accounts, plans }, { url: { searchParams } }) {
    const [search = '', plan, state] = ['q', 'plan', 'state'].map((name) => searchParams.get(name) ?? '');
    const { items, next } = accounts.page({
      search: search.trim(),
      limit: PAGE,
      before: idFrom(searchParams.get('before')) ?? Number.MAX_SAFE_INTEGER,
      plan: plan ? { name: plan === NO_PLAN ? undefined : plan } : undefined,
      isSuspended: state === 'suspended' || undefined,
      isOutOfCredits: state === 'out-of-credits' || undefined,
    });
    const isFiltered = [search, plan, state].some(Boolean);
    return {
      title: 'Accounts',
      aside: <ButtonLink to={NEW_PATH} kind="primary" text="Add account" />,
      body: [
        <Filters isFiltered={isFiltered}>
          <TextField name="q" label="Search" type="search" placeholder="Part of a name" />
          {filterSelect('plan', 'Plan', [...plans.keys(), NO_PLAN])}
          {filterSelect('state', 'State', STATES)}
        </Filters>,
        accountTable(items, isFiltered, next === undefined),
        <Pager by="before" next={next} />,
      ],
    };
  },
});

function accountTable(accounts: readonly Account[], isFiltered: boolean, isLast: boolean) {
  const nothing = isLast ? 'No matching accounts' : 'No matching accounts on this page';
  return (
    <Table
      caption="Accounts"
      columns={[
        ['Account', ({ id, name }) => <Link to={paths.operatorAccount(id)}>{name}</Link>, 'head'],
        ['Plan', ({ plan }) => plan ?? 'None'],
        ['Credits left', ({ creditsLeft }) => countText(creditsLeft, 'Unlimited'), 'end'],
        ['State', (account) => <AccountBadge account={account} />],
        ['Created', ({ createdAtMs }) => <Time atMs={createdAtMs} />],
      ]}
      rows={accounts}
      empty={
        <Empty
          title={isFiltered ? nothing : 'No accounts yet'}
          text={!isFiltered && 'Each account has its own API keys, plan and users.'}
        />
      }
    />
  );
}

export function AccountBadge({ account }: Readonly<{ account: Account }>) {
  if (account.isSuspended) return <Badge tone="bad">Suspended</Badge>;
  if (account.creditsLeft === 0) return <Badge tone="warning">Out of credits</Badge>;
  return <Badge tone="good">Active</Badge>;
}

/** The form of a new account. */
export const newAccountPage = operatorPage({
  path: NEW_PATH,
  show: ({ plans }) =>
    formContent({
      title: 'Add account',
      crumbs: [['Accounts', paths.operatorAccounts]],
      panel: 'Account',
      action: NEW_PATH,
      button: 'Add account',
      children: [
        <TextField
          name="name"
          label="Name"
          isRequired
          maxLength={64}
          hint="A company or project. It can be changed later."
        />,
        <SelectField name="plan" label="Plan" value="trial" options={planOptions(plans)} />,
      ],
    }),
  forms: {
    ''({ accounts }, { form, actor }) {
      const result = accounts.create(form.get('name')?.trim() ?? '', planFrom(form), actor);
      return result.kind === 'account'
        ? redirect(paths.operatorAccount(result.account.id), 'account-created')
        : accountRefusal(result);
    },
  },
});

type AdditionRefused = Exclude<AdditionResult, { kind: 'account' | 'added-before' }>;

/** Puts the refusal of a form about an account at its field. */
export function accountRefusal(refused: AdditionRefused): FormRefusal {
  switch (refused.kind) {
    case 'unknown-plan':
      return { errors: { plan: `Plan ${refused.plan} is not in the config.` } };
    case 'no-credits': {
      const { plan } = refused;
      const credits =
        plan === undefined
          ? 'An account without an RPC plan has no credits.'
          : `Plan ${plan} has unlimited credits.`;
      return { errors: { credits } };
    }
    default:
      return { errors: ERRORS[refused.kind] };
  }
}

const ERRORS = {
  'bad-credits': { credits: 'Enter a whole number of at least 1, such as 250,000.' },
  'bad-reason': { reason: 'Use 1–200 printable characters, with no leading or trailing spaces.' },
  'bad-name': { name: 'Use 1–64 printable characters, with no leading or trailing spaces.' },
  'name-taken': { name: 'An account with this name already exists.' },
  'reserved-name': { name: 'The accounts demo and sluice-watcher cannot be renamed.' },
  'unknown-account': { form: 'The account was renamed in the meantime. Please reload the page.' },
};

/** A number of credits as people write it, its digits grouped by commas, blanks or underscores; `NaN` for anything else. */
export function creditsFrom(text: string): number {
  return /^\d+(?:[ ,_]\d{3})*$/.test(text.trim()) ? Number(text.replaceAll(/[ ,_]/g, '')) : Number.NaN;
}

/** The form's value for an account without a plan: no plan can have this name. */
export const NO_PLAN = 'none';

/** The plan of a form; `undefined` is none. */
export function planFrom(form: URLSearchParams): string | undefined {
  const plan = form.get('plan') ?? '';
  return plan === NO_PLAN ? undefined : plan;
}

/** The choices of a plan, those of the config and none; and the account's own where the config no longer has it. */
export function planOptions(plans: ReadonlyMap<string, Plan>, own?: string) {
  const gone = own !== undefined && !plans.has(own);
  return [
    ...[...plans].map(([name, plan]) => [name, `${name}, ${planText(plan)}`] as const),
    [NO_PLAN, 'None, program API only'] as const,
    ...(gone ? [[own, `${own}, no longer in the config`] as const] : []),
  ];
}

/** `5 calls per second, 250,000 credits`. */
function planText({ rps, credits }: Plan): string {
  const rate = `${countText(rps)} calls per second`;
  return credits === undefined ? rate : `${rate}, ${countText(credits)} credits`;
}

/** @jsxImportSource preact */
import { CopiedCode, ShortAddress, shortened } from '../../components/code.tsx';
import { Ago, countText, Time } from '../../components/format.tsx';
import { ButtonLink, Filters, filterSelect, TextField } from '../../components/forms.tsx';
import {
  type Column,
  Empty,
  factList,
  Live,
  Panel,
  StateBadge,
  type StateWord,
  TablePanel,
} from '../../components/panels.tsx';
import { Link, Pager } from '../../components/links.tsx';
import { accountPage } from '../../page.ts';
import { ACCOUNT, paths } from '../../paths.ts';
import type { ProgramShown, SeenDeploy } from '../../../watch/readings.ts';

type Status = NonNullable<ProgramShown['status']>;

const STATUS_WORDS: Readonly<Record<Status, StateWord>> = {
  upgradeable: ['Upgradeable', 'good'],
  frozen: ['Frozen', 'quiet'],
  other_loader: ['Other loader', 'accent'],
  missing: ['Missing', 'bad'],
};
const STATUSES = Object.keys(STATUS_WORDS) as readonly Status[]; // Object.keys forgets the keys' type
const STATUS_OPTIONS = STATUSES.map((status) => [status, STATUS_WORDS[status][0]] as const);

/** Every watched program as the last reading saw it, the newest deploy first. */
export const programListPage = accountPage({
  path: paths.programs(ACCOUNT),
  entry: ['Programs', 'cube'],
  show({ programs }, { account, nowMs, url: { searchParams } }) {
    const search = (searchParams.get('q') ?? '').trim();
    const status = STATUSES.find((known) => known === searchParams.get('status'));
    // By slot, because a slot is known before its time; what has none comes last, in the list's order.
    const rows = programs({ search, ...(status && { status }) }, nowMs).toSorted(
      (a, b) => (b.deploySlot ?? -1) - (a.deploySlot ?? -1),
    );
    return {
      title: 'Programs',
      body: [
        <Filters isFiltered={search !== '' || status !== undefined}>
          <TextField name="q" label="Search" type="search" placeholder="Name or address" />
          {filterSelect('status', 'Status', STATUS_OPTIONS)}
        </Filters>,
        <Live id="programs" everySeconds={15}>
          <TablePanel
            title={rows.length === 1 ? '1 program' : `${countText(rows.length)} programs`}
            caption="Programs"
            columns={columnsOf(account.id)}
            rows={rows}
            empty={<Empty title="No matching programs" />}
          />
        </Live>,
      ],
    };
  },
});

function columnsOf(accountId: number): readonly Column<ProgramShown>[] {
  return [
    [
      'Program',
      ({ programId, label }) => <Link to={paths.program(accountId, programId)}>{label}</Link>,
      'head',
    ],
    [
      'Address',
      ({ programId, label }) => <ShortAddress id={`program-${programId}`} address={programId} of={label} />,
    ],
    ['Status', statusBadge],
    ['Deploy slot', ({ deploySlot }) => countText(deploySlot), 'end'],
    ['Deployed', ({ deployedAtMs }) => <Ago atMs={deployedAtMs} none="–" />],
    [
      'Authority',
      ({ programId, label, authority }) =>
        authorityCell(`authority-${programId}`, authority, `the upgrade authority of ${label}`),
    ],
  ];
}

function authorityCell(id: string, address: string | null | undefined, of: string) {
  return address ? <ShortAddress id={id} address={address} of={of} /> : <span class="soft">None</span>;
}

const PAGE_ROWS = 50;

export const programPage = accountPage({
  path: paths.program(ACCOUNT, ':programId'),
  find: ({ programs }, { nowMs, params }) =>
    programs({}, nowMs).find(({ programId }) => programId === params['programId']),
  show({ history }, { account, url }, found) {
    const { programId, label } = found;
    const before = /^\d{1,15}$/.exec(url.searchParams.get('before') ?? '')?.[0];
    const after = before === undefined ? {} : { before: Number(before) };
    const deploys = history.of(programId, { ...after, limit: PAGE_ROWS });
    return {
      title: label,
      crumbs: [['Programs', paths.programs(account.id)]],
      aside: (
        <ButtonLink
          to={`${paths.webhooks(account.id)}/new?program=${programId}`}
          kind="primary"
          text="Add webhook"
        />
      ),
      body: [
        aboutPanel(account.id, found),
        deployPanel(deploys),
        <Pager by="before" next={deploys.length === PAGE_ROWS ? deploys.at(-1)?.id : undefined} />,
      ],
    };
  },
});

function aboutPanel(accountId: number, found: ProgramShown) {
  const { programId, label, deploySlot, deployedAtMs, authority } = found;
  return (
    <Panel title="About">
      {factList([
        ['Address', <CopiedCode id="program-address" text={programId} label={`Copy address of ${label}`} />],
        ['Status', statusBadge(found)],
        ['Deploy slot', countText(deploySlot, 'None')],
        [
          'Deployed',
          <>
            <Time atMs={deployedAtMs} none="Unknown" />
            <span class="soft">
              <Ago atMs={deployedAtMs} />
            </span>
          </>,
        ],
        [
          'Upgrade authority',
          authority === undefined ? (
            "None: the program can't be upgraded"
          ) : (
            <CopiedCode id="authority" text={authority} label="Copy address of the upgrade authority" />
          ),
        ],
        [
          'Deliveries',
          <Link to={`${paths.deliveries(accountId)}?program=${programId}`}>Deliveries for this program</Link>,
        ],
      ])}
    </Panel>
  );
}

function deployPanel(deploys: readonly SeenDeploy[]) {
  return (
    <TablePanel
      title="Deploy history"
      columns={[
        ['Deploy slot', ({ deploySlot }) => countText(deploySlot), 'head'],
        ['Previous slot', ({ previousSlot }) => countText(previousSlot), 'end'],
        ['Deployed', ({ deployedAtMs }) => <Time atMs={deployedAtMs} none="Unknown" />],
        ['Detected', ({ detectedAtMs }) => <Time atMs={detectedAtMs} />],
        [
          'Authority',
          ({ id, authority }) => authorityCell(`by-${id}`, authority, `the authority of deploy ${id}`),
        ],
      ]}
      rows={deploys}
      empty={<Empty title="No deploys yet" text="Deploys appear here once the program has been checked." />}
    />
  );
}

function statusBadge({ status }: ProgramShown) {
  return <StateBadge of={status === undefined ? ['Not checked yet', 'waiting'] : STATUS_WORDS[status]} />;
}

/** Names addresses by a list of programs; one that is watched no longer is shortened. */
export function labelsOf(programs: readonly ProgramShown[]): (address: string) => string {
  const labels = new Map(programs.map(({ programId, label }) => [programId, label]));
  return (address) => labels.get(address) ?? shortened(address);
}

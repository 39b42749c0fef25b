/** @jsxImportSource preact */
import type { ProgramShown } from '../../../programs/list.ts';
import type { AskedOfAccount, Page } from '../../context.ts';
import { ShortAddress } from '../../components/code.tsx';
import { Empty, Live, Panel } from '../../components/panels.tsx';
import { Filters, SelectField, TextField } from '../../components/forms.tsx';
import { Link, withQuery } from '../../components/links.tsx';
import { Ago, countText } from '../../components/format.tsx';
import { Table } from '../../components/table.tsx';
import type { WebhookPageDeps } from '../../page-services.ts';
import { STATUS_WORDS, StatusBadge } from './status-badge.tsx';

type Status = NonNullable<ProgramShown['status']>;
const STATUSES = Object.keys(STATUS_WORDS) as readonly Status[]; // Object.keys forgets the keys' type

/** Every watched program as the last reading saw it, the newest deploy first. */
export function programListPage({ programs }: WebhookPageDeps): Page<AskedOfAccount> {
  return function programList({ account, nowMs, url, show }) {
    const search = (url.searchParams.get('q') ?? '').trim();
    const status = STATUSES.find((known) => known === url.searchParams.get('status'));
    const rows = programs({ search, ...(status && { status }) }, nowMs).toSorted(byNewest);
    const path = `/accounts/${account.id}/programs`;
    return show({
      title: 'Programs',
      body: (
        <>
          <Filters path={path} isFiltered={search !== '' || status !== undefined}>
            <TextField name="q" label="Search" type="search" value={search} placeholder="Name or address" />
            <SelectField
              name="status"
              label="Status"
              value={status ?? ''}
              options={[
                { value: '', label: 'Any' },
                ...STATUSES.map((value) => ({ value, label: STATUS_WORDS[value][0] })),
              ]}
            />
          </Filters>
          <Live id="programs" from={withQuery(url, {})} everySeconds={15}>
            <Panel title={rows.length === 1 ? 'One program' : `${countText(rows.length)} programs`} isFlush>
              <ProgramTable path={path} rows={rows} nowMs={nowMs} />
            </Panel>
          </Live>
        </>
      ),
    });
  };
}

type ProgramTableProps = Readonly<{ path: string; rows: readonly ProgramShown[]; nowMs: number }>;

function ProgramTable({ path, rows, nowMs }: ProgramTableProps) {
  return (
    <Table
      caption="Programs"
      columns={[
        {
          label: 'Program',
          isRowHead: true,
          cell: ({ programId, label }) => <Link to={`${path}/${programId}`}>{label}</Link>,
        },
        {
          label: 'Address',
          cell: ({ programId, label }) => (
            <ShortAddress id={`program-${programId}`} address={programId} of={label} />
          ),
        },
        { label: 'Status', cell: ({ status }) => <StatusBadge status={status} /> },
        {
          label: 'Deploy slot',
          align: 'end',
          cell: ({ deploySlot }) => (deploySlot === undefined ? '–' : countText(deploySlot)),
        },
        {
          label: 'Deployed',
          cell: ({ deployedAtMs }) =>
            deployedAtMs === undefined ? '–' : <Ago atMs={deployedAtMs} nowMs={nowMs} />,
        },
        {
          label: 'Authority',
          cell: ({ programId, label, authority }) =>
            authority === undefined ? (
              <span class="soft">none</span>
            ) : (
              <ShortAddress
                id={`authority-${programId}`}
                address={authority}
                of={`the upgrade authority of ${label}`}
              />
            ),
        },
      ]}
      rows={rows}
      keyOf={({ programId }) => programId}
      empty={<Empty title="No program fits" />}
    />
  );
}

/** By slot, because a slot is known before its time; what has none comes last, in the list's order. */
function byNewest(a: ProgramShown, b: ProgramShown): number {
  return (b.deploySlot ?? -1) - (a.deploySlot ?? -1);
}

/** @jsxImportSource preact */
import type { KeyRow } from '../../../accounts/key-row.ts';
import type { Part } from '../../../usage/report.ts';
import { Empty, Panel } from '../../components/panels.tsx';
import { Link } from '../../components/links.tsx';
import { Ago, countText } from '../../components/format.tsx';
import { Table } from '../../components/table.tsx';
import { KeyBadge } from '../keys/key-texts.tsx';

const ROWS = 5;

/** The methods of the last 24 hours that were called the most. */
export function MethodsPanel({
  accountId,
  methods,
}: Readonly<{ accountId: number; methods: readonly Part[] }>) {
  return (
    <Panel
      title="Methods, 24 hours"
      aside={<Link to={`/accounts/${accountId}/usage`}>All usage</Link>}
      isFlush
    >
      <Table
        caption="Methods called most in 24 hours"
        columns={[
          { label: 'Method', cell: ({ name }) => <code>{name}</code>, isRowHead: true },
          { label: 'Requests', cell: ({ counts }) => countText(counts.calls), align: 'end' },
          {
            label: 'Credits',
            cell: ({ counts }) => countText(counts.credits - counts.refunded),
            align: 'end',
          },
        ]}
        rows={methods.slice(0, ROWS)}
        keyOf={({ name }) => name}
        empty={<Empty title="Nothing was called in 24 hours." />}
      />
    </Panel>
  );
}

type KeysProps = Readonly<{
  accountId: number;
  /** The newest first. */
  keys: readonly KeyRow[];
  used: readonly Part[];
  nowMs: number;
}>;

/** The keys that work, the last used first. */
export function KeysPanel({ accountId, keys, used, nowMs }: KeysProps) {
  const calls = new Map(used.map(({ name, counts }) => [name, counts.calls]));
  const working = keys
    .filter(({ state }) => state === 'active' || state === 'expiring')
    .toSorted((a, b) => (b.lastUsedAtMs ?? 0) - (a.lastUsedAtMs ?? 0));
  return (
    <Panel title="Keys" aside={<Link to={`/accounts/${accountId}/keys`}>All keys</Link>} isFlush>
      <Table
        caption="Keys used last"
        columns={[
          {
            label: 'Key',
            cell: ({ id, name, state }) => (
              <>
                <Link to={`/accounts/${accountId}/keys/${id}`}>{name}</Link>{' '}
                {state === 'expiring' && <KeyBadge state={state} />}
              </>
            ),
            isRowHead: true,
          },
          {
            label: 'Requests, 24 hours',
            cell: ({ id }) => countText(calls.get(id) ?? 0),
            align: 'end',
          },
          {
            label: 'Last used',
            cell: ({ lastUsedAtMs }) =>
              lastUsedAtMs === undefined ? 'never' : <Ago atMs={lastUsedAtMs} nowMs={nowMs} />,
          },
        ]}
        rows={working.slice(0, ROWS)}
        keyOf={({ id }) => id}
        empty={
          <Empty title="No key works.">
            <Link to={`/accounts/${accountId}/keys/new`}>Create a key</Link>
          </Empty>
        }
      />
    </Panel>
  );
}

/** @jsxImportSource preact */
import type { ComponentChildren } from 'preact';
import type { Detail, Entry } from '../../../audit/audit.ts';
import { utcText } from '../../page/instant.ts';
import { Link } from '../../page/link.tsx';
import { countText } from '../../page/number.ts';
import { Table } from '../../page/table.tsx';
import { Time } from '../../page/time.tsx';
import { accountPath, AUDIT_PATH, userPath } from './paths.ts';
import type { WhoOf } from './who.ts';

type AuditTableProps = Readonly<{
  entries: readonly Entry[];
  whoOf: WhoOf;
  isAccountShown: boolean;
  /** The name of an account; needed where accounts are shown. */
  accountName?: (accountId: number) => string | undefined;
  empty: ComponentChildren;
}>;

/** Changes with who made them and when. */
export function AuditTable({ entries, whoOf, isAccountShown, accountName, empty }: AuditTableProps) {
  const account = {
    label: 'Account',
    cell: ({ accountId }: Entry) =>
      accountId === null ? (
        'none'
      ) : (
        <Link to={accountPath(accountId)}>{accountName?.(accountId) ?? accountId}</Link>
      ),
  };
  return (
    <Table
      caption="Changes"
      columns={[
        { label: 'When', cell: ({ atMs }) => <Time atMs={atMs} />, isRowHead: true },
        { label: 'Who', cell: (entry) => <WhoCell entry={entry} whoOf={whoOf} /> },
        { label: 'What', cell: ({ action }) => wordsOf(action) },
        ...(isAccountShown ? [account] : []),
        { label: 'Of', cell: (entry) => <Subject entry={entry} /> },
        { label: 'Detail', cell: ({ detail }) => <span class="detail">{detailText(detail)}</span> },
      ]}
      rows={entries}
      keyOf={({ id }) => id}
      empty={empty}
    />
  );
}

/** `account.credits.add` as `account: credits add`; readable and still what it is filtered by. */
export function wordsOf(action: string): string {
  const [noun = action, ...verb] = action.split('.');
  return verb.length === 0 ? noun : `${noun}: ${verb.join(' ').replaceAll('-', ' ')}`;
}

function WhoCell({ entry, whoOf }: Readonly<{ entry: Entry; whoOf: WhoOf }>) {
  const { text, note, to } = whoOf(entry);
  const actor = entry.actorId ?? 'command-line';
  return (
    <span class="who">
      {to === undefined ? text : <Link to={to}>{text}</Link>}{' '}
      <Link
        to={`${AUDIT_PATH}?actor=${encodeURIComponent(actor)}`}
        class="soft"
        label={`All changes by ${text}`}
      >
        {note ?? 'all'}
      </Link>
    </span>
  );
}

/** What was changed, with the way to it where it has a page. */
function Subject({ entry: { action, subject, accountId } }: Readonly<{ entry: Entry }>) {
  const noun = action.split('.', 1)[0];
  if (noun === 'account') return <>{`account ${subject}`}</>;
  if (noun === 'user')
    return (
      <Link to={userPath(subject)}>
        <code>{subject.slice(0, 8)}</code>
      </Link>
    );
  if (noun === 'webhook' && accountId !== null)
    return (
      <Link to={`/accounts/${accountId}/webhooks/${encodeURIComponent(subject)}`}>
        <code>{subject.slice(0, 12)}</code>
      </Link>
    );
  return <code>{subject.length > 16 ? `${subject.slice(0, 16)}…` : subject}</code>;
}

/** `from trial, to pro`; instants, whose names end so, in UTC. */
export function detailText(detail: Detail): string {
  return Object.entries(detail)
    .map(([name, value]) => {
      const isInstant = /(?:_ms|Ms)$/.test(name) && typeof value === 'number';
      const words = name.replace(/(?:_ms|Ms)$/, '').replaceAll(/_|(?=[A-Z])/g, ' ');
      const label = words.toLowerCase();
      return `${label} ${isInstant ? `${utcText(value)} UTC` : textOf(value)}`;
    })
    .join(', ');
}

function textOf(value: Detail[string]): string {
  if (value === null) return 'none';
  if (typeof value === 'number') return countText(value);
  return typeof value === 'object' ? value.join(' ') : String(value);
}

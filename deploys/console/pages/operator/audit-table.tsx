/** @jsxImportSource preact */
import type { ComponentChildren } from 'preact';
import type { Detail, Entry } from '../../../audit/audit.ts';
import { countText, Time, utcText } from '../../components/format.tsx';
import { Link } from '../../components/links.tsx';
import { Table } from '../../components/table.tsx';
import { accountPath, userPath } from '../../paths.ts';
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
        { label: 'What', cell: (entry) => <WhatCell entry={entry} /> },
        ...(isAccountShown ? [account] : []),
        {
          label: 'Detail',
          cell: ({ detail }) => {
            const text = detailText(detail);
            return text === '' ? null : <span class="detail">{text}</span>;
          },
        },
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
  return (
    <span>
      {to === undefined ? text : <Link to={to}>{text}</Link>}
      {note !== undefined && <span class="soft"> {note}</span>}
    </span>
  );
}

/** The action and what it was done to, with the way there where that has a page; an account stands in its own column. */
function WhatCell({ entry: { action, subject, accountId } }: Readonly<{ entry: Entry }>) {
  const noun = action.split('.', 1)[0];
  const short = <code>{subject.length > SHOWN ? `${subject.slice(0, SHOWN)}…` : subject}</code>;
  const to = pathOf(noun, subject, accountId);
  return (
    <span>
      {wordsOf(action)} {noun === 'account' ? null : to === undefined ? short : <Link to={to}>{short}</Link>}
    </span>
  );
}

/** Characters of an id: enough to tell two of them apart. */
const SHOWN = 8;

function pathOf(noun: string | undefined, subject: string, accountId: number | null): string | undefined {
  if (noun === 'user') return userPath(subject);
  if (accountId === null) return undefined;
  if (noun === 'webhook') return `/accounts/${accountId}/webhooks/${encodeURIComponent(subject)}`;
  return noun === 'key' ? `/accounts/${accountId}/keys` : undefined;
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

/** @jsxImportSource preact */
import type { ComponentChildren } from 'preact';
import type { Counts, Part } from '../../../usage/report.ts';
import { Empty } from '../../components/panels.tsx';
import { bytesText, countText, shareText, WithinText } from '../../components/format.tsx';
import { Table } from '../../components/table.tsx';

type Props = Readonly<{
  parts: readonly Part[];
  total: Counts;
  /** What the parts are: "Method". */
  head: string;
  cellOf(name: string): ComponentChildren;
}>;

/** Rows that are shown; a file has them all. */
const ROWS = 100;

/** Usage in sums, the most used first. */
export function UsageTable({ parts, total, head, cellOf }: Props) {
  const shown = parts.slice(0, ROWS);
  return (
    <>
      <Table
        caption={`Usage by ${head.toLowerCase()}`}
        columns={[
          { label: head, cell: ({ name }) => cellOf(name), isRowHead: true },
          { label: 'Requests', cell: ({ counts }) => countText(counts.calls), align: 'end' },
          {
            label: 'Share',
            cell: ({ counts }) => shareText(total.calls === 0 ? 0 : counts.calls / total.calls),
            align: 'end',
          },
          {
            label: 'Credits',
            cell: ({ counts }) => countText(counts.credits - counts.refunded),
            align: 'end',
          },
          { label: 'Errors', cell: ({ counts }) => countText(counts.errors), align: 'end' },
          { label: 'Refused', cell: ({ counts }) => countText(counts.refused), align: 'end' },
          { label: 'Sent', cell: ({ counts }) => bytesText(counts.bytesOut), align: 'end' },
          {
            label: 'p50',
            cell: ({ counts }) => <WithinText counts={counts} quantile={0.5} />,
            align: 'end',
          },
          {
            label: 'p95',
            cell: ({ counts }) => <WithinText counts={counts} quantile={0.95} />,
            align: 'end',
          },
        ]}
        rows={shown}
        keyOf={({ name }) => name}
        empty={<Empty title="Nothing was used in this time." />}
      />
      {parts.length > ROWS && (
        <p class="soft">{`${countText(parts.length - ROWS)} more are in the CSV file.`}</p>
      )}
    </>
  );
}

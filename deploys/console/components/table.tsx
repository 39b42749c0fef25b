/** @jsxImportSource preact */
import type { ComponentChildren } from 'preact';
import { Panel, type PanelProps } from './panels.tsx';

/** One column. A `head` names its rows to readers of screens, and heads the card on phones; numbers stand at the `end`. */
export type Column<Row> = readonly [
  label: string,
  cell: (row: Row) => ComponentChildren,
  kind?: 'head' | 'end' | undefined,
];

type TableProps<Row> = Readonly<{
  /** What the table lists; read out, because the page has a heading right above. */
  caption: string;
  /** `false`: a column that is not there this time. */
  columns: readonly (Column<Row> | false)[];
  rows: readonly Row[];
  keyOf: (row: Row) => string | number;
  /** Stands in place of a table without rows. */
  empty: ComponentChildren;
}>;

/** A dense table; on phones each row is a card whose lines carry the columns' labels. */
export function Table<Row>({ caption, columns, rows, keyOf, empty }: TableProps<Row>) {
  if (rows.length === 0) return <>{empty}</>;
  const shown = columns.filter((column) => column !== false);
  return (
    <div class="table-frame">
      <table class="table" role="table">
        <caption class="hidden">{caption}</caption>
        <thead role="rowgroup">
          <tr role="row">
            {shown.map(([label, , kind]) => (
              <th
                key={label}
                scope="col"
                role="columnheader"
                class={kind === 'end' ? 'align-end' : undefined}
              >
                {label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {rows.map((row) => (
            <tr key={keyOf(row)} role="row">
              {shown.map((column) => (
                <Cell key={column[0]} column={column} row={row} />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

type TablePanelProps<Row> = Omit<TableProps<Row>, 'caption'> &
  Pick<PanelProps, 'title' | 'id' | 'aside'> &
  Readonly<{ caption?: string }>;

/** A panel that is a table. */
export function TablePanel<Row>({ title, caption = title, id, aside, ...table }: TablePanelProps<Row>) {
  return (
    <Panel title={title} id={id} aside={aside} isFlush>
      <Table caption={caption} {...table} />
    </Panel>
  );
}

/** The roles are explicit because a table that is laid out as cards loses them in some browsers. */
function Cell<Row>({ column, row }: Readonly<{ column: Column<Row>; row: Row }>) {
  const [label, cell, kind] = column;
  if (kind === 'head')
    return (
      <th scope="row" role="rowheader" class="row-head">
        {cell(row)}
      </th>
    );
  return (
    <td role="cell" class={kind && 'align-end'} data-label={label}>
      {cell(row)}
    </td>
  );
}

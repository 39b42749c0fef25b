/** @jsxImportSource preact */
import type { ComponentChildren } from 'preact';

/** One column. Numbers stand at the right, in digits of one width. */
export type Column<Row> = Readonly<{
  label: string;
  cell: (row: Row) => ComponentChildren;
  align?: 'end' | undefined;
  /** Its cells name their rows to readers of screens, and head the card on phones. */
  isRowHead?: boolean | undefined;
  /** The label is there for readers of screens only: a column of buttons. */
  isLabelHidden?: boolean | undefined;
}>;

type TableProps<Row> = Readonly<{
  /** What the table lists; read out, and shown only if the page has no heading right above. */
  caption: string;
  isCaptionShown?: boolean | undefined;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  keyOf: (row: Row) => string | number;
  /** Stands in place of a table without rows. */
  empty: ComponentChildren;
}>;

/** A dense table; on phones each row is a card whose lines carry the columns' labels. */
export function Table<Row>({ caption, isCaptionShown, columns, rows, keyOf, empty }: TableProps<Row>) {
  if (rows.length === 0) return <>{empty}</>;
  return (
    <div class="table-frame">
      <table class="table" role="table">
        <caption class={isCaptionShown ? undefined : 'hidden'}>{caption}</caption>
        <thead role="rowgroup">
          <tr role="row">
            {columns.map(({ label, align, isLabelHidden }) => (
              <th key={label} scope="col" role="columnheader" class={align && 'align-end'}>
                {isLabelHidden ? <span class="hidden">{label}</span> : label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {rows.map((row) => (
            <tr key={keyOf(row)} role="row">
              {columns.map((column) => (
                <Cell key={column.label} column={column} row={row} />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The roles are said out loud because a table that is laid out as cards loses them in some browsers. */
function Cell<Row>({ column, row }: Readonly<{ column: Column<Row>; row: Row }>) {
  const { label, cell, align, isRowHead, isLabelHidden } = column;
  if (isRowHead)
    return (
      <th scope="row" role="rowheader" class="row-head">
        {cell(row)}
      </th>
    );
  return (
    <td role="cell" class={align && 'align-end'} data-label={isLabelHidden ? undefined : label}>
      {cell(row)}
    </td>
  );
}

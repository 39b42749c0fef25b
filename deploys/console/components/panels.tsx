/** @jsxImportSource preact */
import type { ComponentChildren } from 'preact';
import { ownPath } from '../paths.ts';
import type { Tone } from './icons.tsx';

type PanelProps = Readonly<{
  title: string;
  id?: string | undefined;
  /** Beside the title: a button, a badge, tabs. */
  aside?: ComponentChildren | undefined;
  /** Its content reaches the edges, as a table does. */
  isFlush?: boolean | undefined;
  /** What it does cannot be undone. */
  isDanger?: boolean | undefined;
  children: ComponentChildren;
}>;

/** A part of a page under its own heading. */
export function Panel({ title, id, aside, isFlush, isDanger, children }: PanelProps) {
  const classes = ['panel', isFlush && 'panel-flush', isDanger && 'panel-danger'].filter(Boolean).join(' ');
  return (
    <section class={classes} id={id}>
      <div class="panel-head">
        <h2>{title}</h2>
        {aside && <div class="panel-aside">{aside}</div>}
      </div>
      <div class="panel-body">{children}</div>
    </section>
  );
}

/** Panels side by side where there is room. */
export function Columns({ children }: Readonly<{ children: ComponentChildren }>) {
  return <div class="columns">{children}</div>;
}

/** In place of an empty list: what would be here, and how to get it. */
export function Empty({ title, children }: Readonly<{ title: string; children?: ComponentChildren }>) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  );
}

/** A name and what it is; `false`: there is nothing to say. */
export type Fact = readonly [label: string, value: ComponentChildren] | false | undefined;

/** What is known of a thing, line by line. */
export function Facts({ facts }: Readonly<{ facts: readonly Fact[] }>) {
  return (
    <dl class="facts">
      {facts.map(
        (fact) =>
          fact && (
            <div key={fact[0]}>
              <dt>{fact[0]}</dt>
              <dd>{fact[1]}</dd>
            </div>
          ),
      )}
    </dl>
  );
}

/** One number worth a look. The note is a smaller line below: a unit, a comparison, a sparkline. */
export type Stat = readonly [
  label: string,
  value: ComponentChildren,
  note?: ComponentChildren,
  tone?: Tone | false | undefined,
];

/** A row of numbers at the head of a page. */
export function Stats({ stats, id }: Readonly<{ stats: readonly Stat[]; id?: string | undefined }>) {
  return (
    <dl class="stats" id={id}>
      {stats.map(([label, value, note, tone]) => (
        <div key={label} class={tone ? `tone-${tone}` : undefined}>
          <dt>{label}</dt>
          <dd class="stat-value">{value}</dd>
          {note !== undefined && <dd class="stat-note">{note}</dd>}
        </div>
      ))}
    </dl>
  );
}

type LiveProps = Readonly<{
  /** Unique on the page, and the same in every rendering of it. */
  id: string;
  /** The page's own address with its query. The whole page is fetched and this part taken from it. */
  from: string;
  everySeconds?: number | undefined;
  /** Nothing can change any more: the refreshing part is replaced by this one, which does not refresh. */
  isOver?: boolean | undefined;
  children: ComponentChildren;
}>;

/** A part of a page that keeps itself up to date. It waits while the page is hidden or the part is in use. */
export function Live({ id, from, everySeconds = 5, isOver, children }: LiveProps) {
  if (isOver) return <div id={id}>{children}</div>;
  return (
    <div
      id={id}
      data-live
      hx-get={ownPath(from)}
      hx-trigger={`every ${everySeconds}s`}
      hx-select={`#${id}`}
      hx-swap="outerHTML"
    >
      {children}
    </div>
  );
}

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

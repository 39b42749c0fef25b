/** @jsxImportSource preact */
import type { ComponentChildren } from 'preact';
import { useContext } from 'preact/hooks';
import { ownPath } from '../paths.ts';
import { Here } from './here.ts';
import { withQuery } from './links.tsx';

type PanelProps = Readonly<{
  /** Without it the panel has no head. */
  title?: string | undefined;
  id?: string | undefined;
  /** Beside the title: a button, a badge, tabs. */
  aside?: ComponentChildren | undefined;
  /** Its content reaches the edges, as a table does. */
  isFlush?: boolean | undefined;
  /** It cannot be undone. */
  isDanger?: boolean | undefined;
  children: ComponentChildren;
}>;

/** A part of a page under its own heading. */
export function Panel({ title, id, aside, isFlush, isDanger, children }: PanelProps) {
  const classes = ['panel', isFlush && 'panel-flush', isDanger && 'panel-danger'].filter(Boolean).join(' ');
  return (
    <section class={classes} id={id}>
      {title !== undefined && (
        <div class="panel-head">
          <h2>{title}</h2>
          {aside && <div class="panel-aside">{aside}</div>}
        </div>
      )}
      <div class="panel-body">{children}</div>
    </section>
  );
}

/** Panels side by side where there is room. */
export function Columns({ children }: Readonly<{ children: ComponentChildren }>) {
  return <div class="columns">{children}</div>;
}

type EmptyProps = Readonly<{ title: string; text?: string | false; children?: ComponentChildren }>;

/** In place of an empty list: what would be here, and how to get it. */
export function Empty({ title, text, children }: EmptyProps) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {text && <p>{text}</p>}
      {children}
    </div>
  );
}

/** A name and what it is; `false`: there is nothing to say. */
export type Fact = readonly [label: string, value: ComponentChildren] | false | undefined;

/** Shows facts about a thing, line by line. */
export function factList(facts: readonly Fact[]) {
  return (
    <dl class="facts">
      {facts.map(
        (fact) =>
          fact && (
            <div>
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
export function statRow(stats: readonly Stat[], id?: string) {
  return (
    <dl class="stats" id={id}>
      {stats.map(([label, value, note, tone]) => (
        <div class={tone ? `tone-${tone}` : undefined}>
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
  everySeconds?: number | undefined;
  /** Nothing can change any more: the refreshing part is replaced by this one, which does not refresh. */
  isOver?: boolean | undefined;
  children: ComponentChildren;
}>;

/**
 * A part of a page that keeps itself up to date: the whole page is fetched and this part taken from it. It waits while
 * the page is hidden or the part is in use.
 */
export function Live({ id, everySeconds = 5, isOver, children }: LiveProps) {
  const { url } = useContext(Here);
  if (isOver) return <div id={id}>{children}</div>;
  return (
    <div
      id={id}
      data-live
      hx-get={ownPath(withQuery(url, {}))}
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
  /** The name of the table; read out, because the page has a heading right above. */
  caption: string;
  /** `false`: a column that is not there this time. */
  columns: readonly (Column<Row> | false)[];
  rows: readonly Row[];
  /** Stands in place of a table without rows. */
  empty?: ComponentChildren;
}>;

/**
 * A dense table; on phones each row is a card whose lines carry the columns' labels. The roles are explicit because a
 * table that is laid out as cards loses them in some browsers.
 */
export function Table<Row>({ caption, columns, rows, empty = null }: TableProps<Row>) {
  if (rows.length === 0) return <>{empty}</>;
  const shown = columns.filter((column) => column !== false);
  return (
    <div class="table-frame">
      <table class="table" role="table">
        <caption class="hidden">{caption}</caption>
        <thead role="rowgroup">
          <tr role="row">
            {shown.map(([label, , kind]) => (
              <th scope="col" role="columnheader" class={kind === 'end' ? 'align-end' : undefined}>
                {label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {rows.map((row) => (
            <tr role="row">
              {shown.map(([label, cell, kind]) =>
                kind === 'head' ? (
                  <th scope="row" role="rowheader" class="row-head">
                    {cell(row)}
                  </th>
                ) : (
                  <td role="cell" class={kind && 'align-end'} data-label={label}>
                    {cell(row)}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

type TablePanelProps<Row> = Omit<TableProps<Row>, 'caption'> &
  Pick<PanelProps, 'id' | 'aside'> &
  Readonly<{ title: string; caption?: string }>;

/** A panel that is a table. */
export function TablePanel<Row>({ title, caption = title, id, aside, ...table }: TablePanelProps<Row>) {
  return (
    <Panel title={title} id={id} aside={aside} isFlush>
      <Table caption={caption} {...table} />
    </Panel>
  );
}

/** The meaning of a colour; every use also has a word or a shape. */
export type Tone = 'good' | 'bad' | 'warning' | 'waiting' | 'quiet' | 'accent';

const PATHS = {
  gauge: 'M3 13a5.5 5.5 0 1 1 10 0M8 10l2.5-3',
  bars: 'M3 13V8M8 13V3M13 13V6',
  key: 'M9.5 6.5a3 3 0 1 0-3 3 3 3 0 0 0 3-3Zm-.9 2.1L13 13m-2-2 1.5-1.5',
  cube: 'm8 2 5 2.8v6L8 14l-5-3.2v-6L8 2Zm0 6 5-3M8 8 3 5m5 3v6',
  hook: 'M6 9.5 8.2 6a2.5 2.5 0 1 1 2.6-.4M10 6.8l2 3.2a2.4 2.4 0 1 1-2.4 3.2M9 11.5H5.2a2.4 2.4 0 1 1-1.8-3',
  send: 'M14 2 7.5 8.5M14 2 9.8 14l-2.3-5.5L2 6.2 14 2Z',
  code: 'M5.5 4.5 2 8l3.5 3.5m5-7L14 8l-3.5 3.5',
  people: 'M8 8.5a2.8 2.8 0 1 0 0-5.5 2.8 2.8 0 0 0 0 5.5ZM2.8 14c.5-2.3 2.6-3.5 5.2-3.5s4.7 1.2 5.2 3.5',
  server: 'M3 3h10v4H3V3Zm0 6h10v4H3V9Zm2-4h.01M5 11h.01',
  list: 'M5.5 4H13M5.5 8H13M5.5 12H13M3 4h.01M3 8h.01M3 12h.01',
  pulse: 'M2 8.5h3l1.5-5 3 9 1.5-4h3',
  sliders:
    'M2 5h6m4 0h2M2 11h2m4 0h6M10 6.8a1.8 1.8 0 1 0 0-3.6 1.8 1.8 0 0 0 0 3.6Zm-4 6a1.8 1.8 0 1 0 0-3.6 1.8 1.8 0 0 0 0 3.6Z',
  out: 'M6 3H3v10h3m1-5h6.5m0 0L11 5.5M13.5 8 11 10.5',
  sun: 'M8 10.8a2.8 2.8 0 1 0 0-5.6 2.8 2.8 0 0 0 0 5.6ZM8 1.8v1.4m0 9.6v1.4M1.8 8h1.4m9.6 0h1.4M3.6 3.6l1 1m6.8 6.8 1 1m0-8.8-1 1m-6.8 6.8-1 1',
  moon: 'M13 9.6A5.5 5.5 0 0 1 6.4 3 5.3 5.3 0 1 0 13 9.6Z',
  check: 'm3.5 8.5 3 3 6-7',
  cross: 'm4 4 8 8m0-8-8 8',
  alert: 'M8 2.5 14.5 13.5h-13L8 2.5Zm0 4v3.2m0 1.8h.01',
  pause: 'M5.5 3.5v9m5-9v9',
  clock: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12Zm0-9.2V8l2.2 1.6',
  dot: 'M8 9.5a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3Z',
  info: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12Zm0-6.5V11m0-6h.01',
  copy: 'M5.5 5.5v-3h8v8h-3m-8-5h8v8h-8v-8Z',
} as const;

/** The icons that there are, 16 units square, drawn in the text's colour. */
export type IconName = keyof typeof PATHS;

/** A small drawing beside a word; hidden from screen readers. */
export function Icon({ name }: Readonly<{ name: IconName }>) {
  return (
    <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
      <path
        d={PATHS[name]}
        fill="none"
        stroke="currentColor"
        stroke-width="1.5"
        stroke-linecap="round"
        stroke-linejoin="round"
      />
    </svg>
  );
}

const SHAPES: Readonly<Record<Tone, IconName>> = {
  good: 'check',
  bad: 'cross',
  warning: 'alert',
  waiting: 'clock',
  quiet: 'dot',
  accent: 'info',
};

type BadgeProps = Readonly<{ tone: Tone; icon?: IconName; children: ComponentChildren }>;

/** A state in a word or two, with a shape and a colour. */
export function Badge({ tone, icon = SHAPES[tone], children }: BadgeProps) {
  return (
    <span class={`badge tone-${tone}`}>
      <Icon name={icon} />
      {children}
    </span>
  );
}

/** A state's label and tone. */
export type StateWord = readonly [text: string, tone: Tone];

/** A badge from a state's label and tone. */
export function StateBadge({ of: [text, tone] }: Readonly<{ of: StateWord }>) {
  return <Badge tone={tone}>{text}</Badge>;
}

type NoticeProps = Readonly<{ tone: Tone; children: ComponentChildren }>;

/** A highlighted sentence, with a shape beside its colour. */
export function Notice({ tone, children }: NoticeProps) {
  return (
    <div class={`notice tone-${tone}`}>
      <Icon name={SHAPES[tone]} />
      <div>{children}</div>
    </div>
  );
}

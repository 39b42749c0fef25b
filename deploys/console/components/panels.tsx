/** @jsxImportSource preact */
import type { ComponentChildren } from 'preact';
import type { Tone } from './icons.tsx';
import { ownPath } from '../paths.ts';

export type PanelProps = Readonly<{
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

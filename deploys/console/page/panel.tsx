/** @jsxImportSource preact */
import type { ComponentChildren } from 'preact';

type PanelProps = Readonly<{
  title: string;
  /** Where a link on this page can lead to it. */
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

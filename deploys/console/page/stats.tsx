/** @jsxImportSource preact */
import type { ComponentChildren } from 'preact';
import type { Tone } from './tone.ts';

/** One number worth a look, with what it means. */
export type Stat = Readonly<{
  label: string;
  value: ComponentChildren;
  /** A smaller line below: a unit, a comparison, a sparkline. */
  note?: ComponentChildren | undefined;
  tone?: Tone | undefined;
}>;

/** A row of numbers at the head of a page. */
export function Stats({ stats, id }: Readonly<{ stats: readonly Stat[]; id?: string | undefined }>) {
  return (
    <dl class="stats" id={id}>
      {stats.map(({ label, value, note, tone }) => (
        <div key={label} class={tone && `tone-${tone}`}>
          <dt>{label}</dt>
          <dd class="stat-value">{value}</dd>
          {note !== undefined && <dd class="stat-note">{note}</dd>}
        </div>
      ))}
    </dl>
  );
}

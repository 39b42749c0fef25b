/** @jsxImportSource preact */
import type { ComponentChildren } from 'preact';

/** A name and what it is. */
export type Fact = Readonly<{ label: string; value: ComponentChildren }>;

/** What is known of a thing, line by line. */
export function Facts({ facts }: Readonly<{ facts: readonly Fact[] }>) {
  return (
    <dl class="facts">
      {facts.map(({ label, value }) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

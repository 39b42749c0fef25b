import { median, ratios, spread } from '../statistics.ts';
import type { Row } from './rounds.ts';
import type { Scenario } from './scenarios.ts';

/** A figure of the tables: its heading, its digits, and whether its ratio to the base is shown. */
type Column = Readonly<{ figure: string; heading: string; digits: number; ratio: boolean }>;

const column = (figure: string, heading: string, digits = 0, ratio = false): Column => ({
  figure,
  heading,
  digits,
  ratio,
});

/** What the table of each kind of load shows, in order. */
const COLUMNS = {
  calls: [
    column('cpuUs', 'CPU µs/call', 1, true),
    column('callsPerSecond', 'calls/s'),
    column('p50Ms', 'p50 ms', 2),
    column('p99Ms', 'p99 ms', 2),
    column('p999Ms', 'p99.9 ms', 2),
    column('rssMb', 'RSS MB'),
    column('busy', 'busy', 2),
    column('delayed', 'delayed', 2),
  ],
  scan: [
    column('mbPerSecond', 'MB/s', 0, true),
    column('cpuPerGb', 'CPU s/GB', 2, true),
    column('rssMb', 'RSS MB'),
    column('busy', 'busy', 2),
    column('delayed', 'delayed', 2),
  ],
  beside: [
    column('p50Ms', 'p50 ms', 2),
    column('p99Ms', 'p99 ms', 2, true),
    column('p999Ms', 'p99.9 ms', 2),
    column('mbPerSecond', 'MB/s'),
    column('rssMb', 'RSS MB'),
    column('delayed', 'delayed', 2),
  ],
} satisfies Record<string, readonly Column[]>;

/**
 * The table of a scenario in Markdown: medians, and ratios to `base` in the same round with their least and most. `base`
 * is a subject, or `own` for each subject's first variant; where it was not timed it is the first subject.
 */
export function markdownOf(scenario: Scenario, rows: readonly Row[], base: string): string {
  const columns = COLUMNS[scenario.variants[0]?.load.kind ?? 'calls'];
  const head = columns.flatMap(({ heading, ratio }) => (ratio ? [heading, 'ratio'] : [heading]));
  const lines = rows.map((row) => {
    const other = baseOf(base, rows, row);
    const cells = columns.flatMap(({ figure, digits, ratio }) => {
      const shown = fixed(median(figuresOf(row, figure)), digits);
      return ratio ? [shown, ratioTo(other, row, figure)] : [shown];
    });
    return [nameOf(row), ...cells];
  });
  const baseName = base === 'own' ? scenario.variants[0]?.label : baseNameOf(base, rows);
  const table = [['', ...head], ['---', ...head.map(() => '---:')], ...lines];
  return `### ${scenario.title}\n\n${table.map((cells) => `| ${cells.join(' | ')} |`).join('\n')}\n\nRatios are to ${baseName}, by round: median (least-most).\n`;
}

/** The ratios of a figure of `row` to that of `base`, round by round; empty where there are none. */
function ratioTo(base: Row | undefined, row: Row, figure: string): string {
  if (base === undefined || base === row) return '';
  const found = ratios(figuresOf(row, figure), figuresOf(base, figure)).filter(Number.isFinite);
  return found.length === 0 ? '' : `×${spread(found, 2).replace('(', '[').replace(')', ']')}`;
}

function baseOf(base: string, rows: readonly Row[], row: Row): Row | undefined {
  if (base === 'own') return rows.find(({ subject }) => subject === row.subject);
  const name = baseNameOf(base, rows);
  return rows.find(({ subject, variant }) => subject === name && variant === row.variant);
}

function baseNameOf(base: string, rows: readonly Row[]): string | undefined {
  const names = rows.map(({ subject }) => subject);
  return names.includes(base) ? base : names.find((name) => name !== 'direct');
}

function nameOf({ subject, variant }: Row): string {
  return variant === '' ? subject : `${subject}, ${variant}`;
}

function figuresOf({ rounds }: Row, figure: string): readonly number[] {
  return rounds.map((figures) => figures[figure] ?? Number.NaN);
}

function fixed(value: number, digits: number): string {
  return Number.isFinite(value) ? value.toFixed(digits) : '';
}

/** The figures of a run as they are kept: to four digits, which is more than any of them is good for. */
export function keptOf(rows: readonly Row[]): unknown {
  return rows.map(({ subject, variant, rounds }) => ({
    subject,
    variant,
    figures: Object.fromEntries(
      Object.keys(rounds[0] ?? {})
        .map(
          (figure) =>
            [
              figure,
              rounds.map((figures) => Number((figures[figure] ?? Number.NaN).toPrecision(4))),
            ] as const,
        )
        .filter(([, values]) => values.every(Number.isFinite)),
    ),
  }));
}

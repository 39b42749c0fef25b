import { type Result, shown } from './result.ts';
import { tableOf } from './table.ts';

/** Two results side by side, or why they cannot be. */
export type Comparison =
  Readonly<{ kind: 'ratios'; text: string }> | Readonly<{ kind: 'unlike'; sentences: readonly string[] }>;

/** Percentiles beyond what a hundred answers can show are left out. */
const PERCENTILES = [
  ['p50', 1],
  ['p90', 10],
  ['p99', 100],
  ['p999', 1_000],
] as const;

/** Ratios of B to A. Only what was measured alike is compared: one command with the same settings. */
export function comparisonOf(a: Result, b: Result): Comparison {
  const sentences = differences(a, b);
  if (sentences.length > 0) return { kind: 'unlike', sentences };
  const rows = [['', 'A', 'B', 'B to A', '']];
  const add = (name: string, of: number, to: number, better: 'more' | 'less' | undefined) => {
    const isNone = of === 0 || !Number.isFinite(to / of);
    const isBetter = better === 'less' ? to < of : to > of;
    const verdict = better === undefined || isNone || to === of ? '' : isBetter ? 'better' : 'worse';
    rows.push([name, shown(of), shown(to), isNone ? '-' : `x${(to / of).toFixed(2)}`, verdict]);
  };
  for (const { name, value, unit, better } of a.figures) {
    const other = b.figures.find((figure) => figure.name === name);
    if (other !== undefined) add(unit === '' ? name : `${name}, ${unit}`, value, other.value, better);
  }
  for (const timing of a.timings) {
    const other = b.timings.find(({ name }) => name === timing.name);
    if (other === undefined) continue;
    for (const [percentile, countMin] of PERCENTILES)
      if (Math.min(timing.count, other.count) >= countMin)
        add(`${timing.name} ${percentile}, ms`, timing[percentile], other[percentile], 'less');
  }
  const heading = [
    `${a.command}: A ${a.endpoint} at ${a.at}, ${shown(a.seconds)} s`,
    `${' '.repeat(a.command.length)}  B ${b.endpoint} at ${b.at}, ${shown(b.seconds)} s`,
  ];
  const notes = [
    ...(a.machine === b.machine ? [] : [`A was measured on ${a.machine}, B on ${b.machine}.`]),
    ...(['A', 'B'] as const).flatMap((name) => warningsOf(name, name === 'A' ? a : b)),
  ];
  return { kind: 'ratios', text: [heading.join('\n'), tableOf(rows), ...notes].join('\n\n') };
}

function differences(a: Result, b: Result): readonly string[] {
  if (a.command !== b.command) return [`A is of ${a.command}, B of ${b.command}.`];
  const names = new Set([...Object.keys(a.settings), ...Object.keys(b.settings)]);
  return [...names]
    .filter((name) => a.settings[name] !== b.settings[name])
    .map((name) => `${name}: ${a.settings[name] ?? 'none'} in A, ${b.settings[name] ?? 'none'} in B.`);
}

function warningsOf(name: string, { stopped, failures }: Result): readonly string[] {
  return [
    ...(stopped ? [`${name} was stopped before its end.`] : []),
    ...failures.map((failure) => `${name} failed: ${failure}`),
  ];
}

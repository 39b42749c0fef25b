/** @jsxImportSource preact */
import type { Measure } from '../../../usage/usage-grid.ts';
import { startsOf, type UsageView } from '../../../usage/usage-view.ts';
import type { Hours } from '../../../usage/read-usage.ts';
import type { Unit } from '../../../usage/report.ts';
import { Chart } from '../../components/charts.tsx';

type Props = Readonly<{
  view: UsageView;
  hours: Hours;
  unit: Unit;
  measure: Measure;
  title: string;
  /** How a part is called. */
  labelOf(name: string): string;
}>;

const UNITS: Readonly<Record<Measure, string>> = {
  calls: 'requests',
  credits: 'credits',
  errors: 'errors',
  refused: 'refused requests',
};

/** Usage over time, the parts that were used the most upon one another. */
export function UsageChart({ view, hours, unit, measure, title, labelOf }: Props) {
  const starts = startsOf(hours, unit);
  const sums = new Map<string, Map<number, number>>([...view.names, ''].map((name) => [name, new Map()]));
  for (const cell of view.cells) {
    const byPeriod = sums.get(cell.name);
    byPeriod?.set(cell.at, (byPeriod.get(cell.at) ?? 0) + cell[measure]);
  }
  const names = view.parts.length > view.names.length ? [...view.names, ''] : view.names;
  return (
    <Chart
      id="usage"
      title={title}
      kind="stacked"
      unit={`${UNITS[measure]} per ${unit}`}
      timesMs={starts.map(({ atMs }) => atMs)}
      series={names.map((name) => ({
        label: name === '' ? 'Others' : labelOf(name),
        values: starts.map(({ at }) => sums.get(name)?.get(at) ?? 0),
        ...(name === '' && { tone: 'quiet' as const }), // the union's member, not any string
      }))}
    />
  );
}

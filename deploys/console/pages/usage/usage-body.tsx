/** @jsxImportSource preact */
import type { Hours } from '../../../usage/read-usage.ts';
import type { UsageView } from '../../../usage/usage-view.ts';
import { Choices, Link, withQuery } from '../../components/links.tsx';
import { Panel } from '../../components/panels.tsx';
import type { AskedUsage } from './asked-usage.ts';
import { PERIODS } from './period.ts';
import { UsageChart } from './usage-chart.tsx';
import { UsageTable } from './usage-table.tsx';

type Props = Readonly<{
  view: UsageView;
  asked: AskedUsage;
  hours: Hours;
  url: URL;
  keyName(id: string): string;
}>;

const MEASURE_LABELS = {
  calls: 'Requests',
  credits: 'Credits',
  errors: 'Errors',
  refused: 'Refused',
} as const;

/** Usage as a chart and as a table; each row leads to what it is made of. */
export function UsageBody({ view, asked: { period, by, measure }, hours, url, keyName }: Props) {
  const { unit, label } = PERIODS[period];
  const title = `${MEASURE_LABELS[measure]} by ${by}`;
  const within = (name: string) =>
    by === 'method' ? { method: name, by: 'key' } : { key: name, by: 'method' };
  return (
    <>
      <Panel
        title={`${title}, ${label}`}
        aside={
          <>
            <Choices
              label="What is shown"
              choices={Object.entries(MEASURE_LABELS).map(([name, text]) => ({
                label: text,
                to: withQuery(url, { show: name }),
                isCurrent: name === measure,
              }))}
            />
            <Choices
              label="By what"
              choices={(['method', 'key'] as const).map((name) => ({
                label: `by ${name}`,
                to: withQuery(url, { by: name }),
                isCurrent: name === by,
              }))}
            />
          </>
        }
      >
        <UsageChart
          view={view}
          hours={hours}
          unit={unit}
          measure={measure}
          title={title}
          labelOf={(name) => shortened(by === 'key' ? keyName(name) : name)}
        />
      </Panel>
      <UsageTable
        parts={view.parts}
        total={view.total}
        head={by === 'method' ? 'Method' : 'Key'}
        cellOf={(name) => (
          <Link to={withQuery(url, within(name))}>
            {by === 'method' ? <code>{name}</code> : keyName(name)}
          </Link>
        )}
      />
      <p class="soft">
        p50 and p95: half and 95 of 100 answers began within this time for sure. Times are in UTC, and the{' '}
        {unit} that is now is not over yet.
      </p>
    </>
  );
}

/** What fits into a line of the chart's legend on a phone. */
const LEGEND_CHARACTERS = 32;

/** The ends of a long name: the last of a key's name are those of the key. */
function shortened(name: string): string {
  if (name.length <= LEGEND_CHARACTERS) return name;
  return `${name.slice(0, LEGEND_CHARACTERS - 9)}…${name.slice(-8)}`;
}

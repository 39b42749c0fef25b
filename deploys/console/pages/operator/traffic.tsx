/** @jsxImportSource preact */
import type { ComponentChildren } from 'preact';
import { MinuteChart } from '../../components/charts.tsx';
import { countText, shareText, Time } from '../../components/format.tsx';
import { Badge, type Column, Empty, Live, Panel, statRow, TablePanel } from '../../components/panels.tsx';
import { Choices, Link, Tabs, views } from '../../components/links.tsx';
import { operatorPage } from '../../page.ts';
import { paths } from '../../paths.ts';
import { HOUR_MS, lastHours } from '../../../usage/calendar.ts';
import type { Minute } from '../../../usage/minutes.ts';
import type { Totals } from '../../../usage/traffic.ts';

const FIGURES = [
  ['calls', 'By calls'],
  ['credits', 'By credits'],
  ['refused', 'By rejections'],
] as const;
const HOURS = [
  ['', 'This hour'],
  ['24', 'Last 24 hours'],
] as const;
/** Methods that have a row; the others are few calls each. */
const METHODS_SHOWN = 40;

export const trafficPage = operatorPage({
  path: paths.traffic,
  entry: ['Traffic', 'bars'],
  async show({ operator, minutes, accounts }, { url, nowMs }) {
    const hours = url.searchParams.get('hours') === '24' ? 24 : 1;
    const by = FIGURES.find(([figure]) => figure === url.searchParams.get('by'))?.[0] ?? 'calls';
    const { atMs, total, byMethod, byPlan, top } = await operator.readTraffic(hours);
    const methodsLeft = byMethod.length - METHODS_SHOWN;
    const nameOf = (id: number) => accounts.findById(id)?.name ?? `Account ${id} (deleted)`;
    const methods = byMethod.slice(0, METHODS_SHOWN).map(({ method, done }) => ({ name: method, done }));
    const plans = byPlan.map(({ plan, done }) => ({ name: plan ?? 'None, or account deleted', done }));
    const used = top[by].map(({ accountId, done }) => ({
      name: nameOf(accountId),
      to: paths.operatorAccount(accountId),
      done,
    }));
    return {
      title: 'Traffic',
      aside: <Badge tone="waiting">Live</Badge>,
      body: [
        <Tabs label="Period" tabs={views(url, 'hours', HOURS, hours === 24 ? '24' : '')} />,
        <Live id="figures" everySeconds={10}>
          {figures(total, lastHours(hours, atMs).fromHour * HOUR_MS)}
        </Live>,
        <Live id="minutes" everySeconds={10}>
          {lastHourPanel(minutes.recentTotals(nowMs), minutes.sinceMs())}
        </Live>,
        partPanel('By method', 'Method', total, methods, {
          aside: methodsLeft > 0 && <span>{countText(methodsLeft)} more not shown</span>,
        }),
        partPanel('By plan', 'Plan', total, plans),
        partPanel('Top accounts', 'Account', total, used, {
          aside: <Choices label="Order" tabs={views(url, 'by', FIGURES, by, '#top')} />,
          id: 'top',
        }),
      ],
    };
  },
});

function lastHourPanel(rows: readonly Minute[], sinceMs: number | undefined) {
  return (
    <Panel title="Last hour, by minute">
      <MinuteChart
        id="traffic-minutes"
        title="Calls, rejections and errors by minute"
        kind="line"
        unit="calls per minute"
        minutes={rows}
        sinceMs={sinceMs}
        series={[
          { label: 'Calls', of: ({ calls }) => calls },
          { label: 'Rejected', of: ({ refused }) => refused, tone: 'warning' },
          { label: 'Errors', of: ({ errors }) => errors, tone: 'bad' },
        ]}
      />
    </Panel>
  );
}

function figures(total: Totals, fromMs: number) {
  return statRow([
    [
      'Calls',
      countText(total.calls),
      <>
        since <Time atMs={fromMs} />
      </>,
    ],
    ['Credits', countText(total.credits), 'net of refunds'],
    ['Rejected', countText(total.refused), partText(total.refused, total.calls + total.refused)],
    ['Errors', countText(total.errors), partText(total.errors, total.calls)],
  ]);
}

function partText(part: number, all: number): string {
  return `${all === 0 ? '0%' : shareText(part / all)} of ${countText(all)}`;
}

type TrafficPart = Readonly<{ name: string; to?: string | undefined; done: Totals }>;

function partPanel(
  title: string,
  label: string,
  total: Totals,
  parts: readonly TrafficPart[],
  head: Readonly<{ aside?: ComponentChildren; id?: string }> = {},
) {
  const number = (name: string, figure: keyof Totals): Column<TrafficPart> => [
    name,
    ({ done }) => countText(done[figure]),
    'end',
  ];
  return (
    <TablePanel
      title={title}
      {...head}
      caption={`Traffic by ${label.toLowerCase()}`}
      columns={[
        [label, ({ name, to }) => (to === undefined ? name : <Link to={to}>{name}</Link>), 'head'],
        number('Calls', 'calls'),
        ['Share', ({ done }) => (total.calls === 0 ? '–' : shareText(done.calls / total.calls)), 'end'],
        number('Credits', 'credits'),
        number('Rejected', 'refused'),
        number('Errors', 'errors'),
      ]}
      rows={parts}
      empty={<Empty title="No calls in this period" />}
    />
  );
}

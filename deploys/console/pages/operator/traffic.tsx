/** @jsxImportSource preact */
import type { ComponentChildren } from 'preact';
import { MinuteChart } from '../../components/charts.tsx';
import { countText, shareText, Time } from '../../components/format.tsx';
import { Badge, type Column, Empty, Live, Panel, statRow, TablePanel } from '../../components/panels.tsx';
import { Choices, Link, Tabs, withQuery } from '../../components/links.tsx';
import type { ViewerContext } from '../../context.ts';
import type { PageServices } from '../../page-services.ts';
import { paths } from '../../paths.ts';
import { HOUR_MS, lastHours } from '../../../usage/calendar.ts';
import type { Minute } from '../../../usage/minutes.ts';
import type { Done } from '../../../usage/traffic.ts';

type Figure = 'calls' | 'credits' | 'refused';

const FIGURES: readonly Figure[] = ['calls', 'credits', 'refused'];
/** Methods that have a row; the others are few calls each. */
const METHODS_SHOWN = 40;

export async function trafficPage(
  { operator, minutes, accounts }: PageServices,
  { url, nowMs, show }: ViewerContext,
): Promise<Response> {
  const hours = url.searchParams.get('hours') === '24' ? 24 : 1;
  const by = FIGURES.find((figure) => figure === url.searchParams.get('by')) ?? 'calls';
  const { atMs, total, byMethod, byPlan, top } = await operator.readTraffic(hours);
  const methodsLeft = byMethod.length - METHODS_SHOWN;
  const nameOf = (id: number) => accounts.findById(id)?.name ?? `Account ${id} (deleted)`;
  const fromMs = lastHours(hours, atMs).fromHour * HOUR_MS;
  return show({
    title: 'Traffic',
    aside: <Badge tone="waiting">Live</Badge>,
    body: (
      <>
        <Tabs
          label="Period"
          tabs={[
            ['This hour', withQuery(url, { hours: undefined }), hours === 1],
            ['Last 24 hours', withQuery(url, { hours: '24' }), hours === 24],
          ]}
        />
        <Live id="figures" from={withQuery(url, {})} everySeconds={10}>
          {figures(total, fromMs)}
        </Live>
        <Live id="minutes" from={withQuery(url, {})} everySeconds={10}>
          {lastHourPanel(minutes.recentTotals(nowMs), minutes.sinceMs())}
        </Live>
        {partPanel(
          'By method',
          'Method',
          total,
          byMethod.slice(0, METHODS_SHOWN).map(({ method, done }) => ({ name: method, done })),
          methodsLeft > 0 && <span>{countText(methodsLeft)} more not shown</span>,
        )}
        {partPanel(
          'By plan',
          'Plan',
          total,
          byPlan.map(({ plan, done }) => ({ name: plan ?? 'None, or account deleted', done })),
        )}
        {partPanel(
          'Top accounts',
          'Account',
          total,
          top[by].map(({ accountId, done }) => ({
            name: nameOf(accountId),
            to: paths.operatorAccount(accountId),
            done,
          })),
          <Choices
            label="Order"
            tabs={FIGURES.map((figure) => [
              `By ${figure === 'refused' ? 'rejections' : figure}`,
              `${withQuery(url, { by: figure })}#top`,
              figure === by,
            ])}
          />,
          'top',
        )}
      </>
    ),
  });
}

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

function figures(total: Done, fromMs: number) {
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

type Part = Readonly<{ name: string; to?: string | undefined; done: Done }>;

function partPanel(
  title: string,
  label: string,
  total: Done,
  parts: readonly Part[],
  aside?: ComponentChildren,
  id?: string,
) {
  const number = (name: string, figure: keyof Done): Column<Part> => [
    name,
    ({ done }) => countText(done[figure]),
    'end',
  ];
  return (
    <TablePanel
      title={title}
      id={id}
      aside={aside}
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

/** @jsxImportSource preact */
import type { ComponentChildren } from 'preact';
import { MinuteChart } from '../../components/charts.tsx';
import { countText, shareText, Time } from '../../components/format.tsx';
import { Badge } from '../../components/icons.tsx';
import { Choices, Link, Tabs, withQuery } from '../../components/links.tsx';
import { Empty, Live, Panel, Stats } from '../../components/panels.tsx';
import { type Column, Table } from '../../components/table.tsx';
import type { ViewerContext } from '../../context.ts';
import type { PageServices } from '../../page-services.ts';
import { paths } from '../../paths.ts';
import { HOUR_MS } from '../../../usage/calendar.ts';
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
  const fromMs = (Math.floor(atMs / HOUR_MS) + 1 - hours) * HOUR_MS;
  return show({
    title: 'Traffic',
    aside: <Badge tone="waiting">Live</Badge>,
    body: (
      <>
        <Tabs
          label="Period"
          tabs={[
            { label: 'This hour', to: withQuery(url, { hours: undefined }), isCurrent: hours === 1 },
            { label: 'Last 24 hours', to: withQuery(url, { hours: '24' }), isCurrent: hours === 24 },
          ]}
        />
        <Live id="figures" from={withQuery(url, {})} everySeconds={10}>
          <Figures total={total} fromMs={fromMs} />
        </Live>
        <Live id="minutes" from={withQuery(url, {})} everySeconds={10}>
          <Panel title="Last hour, by minute">
            <LastHour rows={minutes.recentTotals(nowMs)} sinceMs={minutes.sinceMs()} />
          </Panel>
        </Live>
        <PartPanel
          title="By method"
          label="Method"
          total={total}
          parts={byMethod.slice(0, METHODS_SHOWN).map(({ method, done }) => ({ name: method, done }))}
          aside={methodsLeft > 0 && <span>{countText(methodsLeft)} more not shown</span>}
        />
        <PartPanel
          title="By plan"
          label="Plan"
          total={total}
          parts={byPlan.map(({ plan, done }) => ({ name: plan ?? 'None, or account deleted', done }))}
        />
        <PartPanel
          title="Top accounts"
          id="top"
          label="Account"
          total={total}
          parts={top[by].map(({ accountId, done }) => ({
            name: nameOf(accountId),
            to: paths.operatorAccount(accountId),
            done,
          }))}
          aside={
            <Choices
              label="Order"
              choices={FIGURES.map((figure) => ({
                label: `By ${figure === 'refused' ? 'rejections' : figure}`,
                to: `${withQuery(url, { by: figure })}#top`,
                isCurrent: figure === by,
              }))}
            />
          }
        />
      </>
    ),
  });
}

function LastHour({ rows, sinceMs }: Readonly<{ rows: readonly Minute[]; sinceMs: number | undefined }>) {
  return (
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
  );
}

function Figures({ total, fromMs }: Readonly<{ total: Done; fromMs: number }>) {
  const { calls, credits, refused, errors } = total;
  return (
    <Stats
      stats={[
        {
          label: 'Calls',
          value: countText(calls),
          note: (
            <>
              since <Time atMs={fromMs} />
            </>
          ),
        },
        { label: 'Credits', value: countText(credits), note: 'net of refunds' },
        { label: 'Rejected', value: countText(refused), note: partText(refused, calls + refused) },
        { label: 'Errors', value: countText(errors), note: partText(errors, calls) },
      ]}
    />
  );
}

function partText(part: number, all: number): string {
  return `${all === 0 ? '0%' : shareText(part / all)} of ${countText(all)}`;
}

type Part = Readonly<{ name: string; to?: string | undefined; done: Done }>;

type PartPanelProps = Readonly<{
  title: string;
  id?: string;
  /** What the parts are. */
  label: string;
  parts: readonly Part[];
  total: Done;
  aside?: ComponentChildren;
}>;

function PartPanel({ title, id, label, parts, total, aside }: PartPanelProps) {
  const number = (name: string, figure: keyof Done): Column<Part> => [
    name,
    ({ done }) => countText(done[figure]),
    'end',
  ];
  return (
    <Panel title={title} id={id} isFlush aside={aside}>
      <Table
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
        keyOf={({ name }) => name}
        empty={<Empty title="No calls in this period" />}
      />
    </Panel>
  );
}

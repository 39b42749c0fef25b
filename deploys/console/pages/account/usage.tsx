/** @jsxImportSource preact */
import {
  DAY_MS,
  HOUR_MS,
  type Hours,
  lastHours,
  monthOf,
  UNITS,
  type Unit,
} from '../../../usage/calendar.ts';
import { CSV_HEAD, csvLine, type Used } from '../../../usage/read-usage.ts';
import { type Counts, type Dimension, type Measure, MEASURES } from '../../../usage/report.ts';
import { type Reader, startsOf, type UsageView } from '../../../usage/usage-view.ts';
import { Chart } from '../../components/charts.tsx';
import { boundText, bytesText, countText, shareText } from '../../components/format.tsx';
import { ButtonLink } from '../../components/forms.tsx';
import { Empty, Notice, Panel, statRow, Table } from '../../components/panels.tsx';
import { Choices, Link, Tabs, views, withQuery } from '../../components/links.tsx';
import { accountPage, type Content } from '../../page.ts';
import { ACCOUNT, paths } from '../../paths.ts';

/** The periods of usage, each with its unit; all end now. */
const PERIODS = {
  '24h': { label: '24 hours', unit: 'hour', days: 1 },
  '7d': { label: '7 days', unit: 'hour', days: 7 },
  '30d': { label: '30 days', unit: 'day', days: 30 },
  '90d': { label: '90 days', unit: 'day', days: 90 },
  '12m': { label: '12 months', unit: 'month', days: 365 },
} as const satisfies Readonly<Record<string, Readonly<{ label: string; unit: Unit; days: number }>>>;

type Period = keyof typeof PERIODS;
const PERIOD_NAMES = Object.keys(PERIODS) as readonly Period[]; // Object.keys forgets them

/** Its hours, from where the first of its hours, days or months begins up to and with the hour that is now. */
function hoursOf(period: Period, nowMs: number): Hours {
  const { toHour } = lastHours(1, nowMs);
  if (period === '12m') return { fromHour: UNITS.month.startMs(monthOf(nowMs).month - 11) / HOUR_MS, toHour };
  if (PERIODS[period].unit === 'hour') return lastHours(24 * PERIODS[period].days, nowMs);
  return { fromHour: 24 * (Math.floor(nowMs / DAY_MS) - PERIODS[period].days + 1), toHour };
}

type UsagePageQuery = Readonly<{
  period: Period;
  by: Dimension;
  measure: Measure;
  /** Of one key or one method alone. */
  keyId: string | undefined;
  method: string | undefined;
}>;

const TEXT_CHARACTERS_MAX = 128;

/** Reads the query; what is not understood is as if it were not there. */
function usageQueryOf({ searchParams }: URL): UsagePageQuery {
  const keyId = textFrom(searchParams.get('key'));
  const method = textFrom(searchParams.get('method'));
  const by = searchParams.get('by');
  return {
    period: PERIOD_NAMES.find((name) => name === searchParams.get('period')) ?? '7d',
    by: by === 'method' || by === 'key' ? by : method === undefined ? 'method' : 'key',
    measure: MEASURES.find((name) => name === searchParams.get('show')) ?? 'calls',
    keyId,
    method,
  };
}

function textFrom(text: string | null): string | undefined {
  return text === null || text === '' ? undefined : text.slice(0, TEXT_CHARACTERS_MAX);
}

const NAMED = 6;

/** Shows the usage of an account, by method or by key, over hours, days or months. */
export const usagePage = accountPage({
  path: paths.usage(ACCOUNT),
  entry: ['Usage', 'bars'],
  async show({ keys, readUsageView }, { request, account, viewer, url, nowMs }) {
    const query = usageQueryOf(url);
    const { period, by, keyId, method } = query;
    const { unit } = PERIODS[period];
    const hours = hoursOf(period, nowMs);
    const whose = { accountId: account.id, ...(keyId && { keyId }), ...(method && { method }) };
    const selection = { whose, hours, unit, by, named: NAMED };
    const reading = await readUsageView(selection, viewer.userId, request.signal);
    if (reading.kind === 'busy') return busy();
    const { view } = reading;
    const keyName = (id: string) => {
      const row = keys.find(id, account.id);
      return row === undefined ? id : `${row.name} (…${row.last4})`;
    };
    const shown = { view, query, hours, url, keyName };
    const isUsed = view.total.calls + view.total.refused > 0;
    const periods = PERIOD_NAMES.map((name) => [name, PERIODS[name].label] as const);
    return {
      title: 'Usage',
      aside: isUsed && <ButtonLink to={csvPath(url)} text="Download CSV" />,
      body: [
        <Tabs label="Period" tabs={views(url, 'period', periods, period)} />,
        narrowedBy(shown),
        isUsed ? (
          <>
            {statRow([
              ['Requests', countText(view.total.calls)],
              ['Credits', countText(view.total.credits - view.total.refunded)],
              ['Errors', countText(view.total.errors), errorNote(view.total)],
              ['Rejected', countText(view.total.refused), refusedNote(view.total)],
              ['Data sent', bytesText(view.total.bytesOut)],
            ])}
            {chartPanel(shown)}
            {usageTable(shown)}
            <p class="soft">
              p50/p95: upper bounds on time to first byte. Times are in UTC; the current {unit} is incomplete.
            </p>
          </>
        ) : (
          <Empty title="No usage in this period">
            <Link to={paths.quickStart(account.id)}>See how to make your first call</Link>
          </Empty>
        ),
      ],
    };
  },
});

/** The same as a file, which has neither a metric nor groups. */
function csvPath(url: URL): string {
  const query = withQuery(url, { by: undefined, show: undefined }).slice(url.pathname.length);
  return `${url.pathname}.csv${query}`;
}

type ShownUsage = Readonly<{
  view: UsageView;
  query: UsagePageQuery;
  hours: Hours;
  url: URL;
  keyName(id: string): string;
}>;

/** Shows the filters of the page, and the way back. */
function narrowedBy({ query: { keyId, method }, url, keyName }: ShownUsage) {
  if (keyId === undefined && method === undefined) return null;
  const to = withQuery(url, { key: undefined, method: undefined, by: undefined });
  return (
    <p>
      Filtered by {keyId !== undefined && keyName(keyId)}
      {keyId !== undefined && method !== undefined && ', '}
      {method !== undefined && <code>{method}</code>} · <Link to={to}>Clear</Link>
    </p>
  );
}

export function errorNote({ calls, errors }: Counts): string | undefined {
  return calls === 0 ? undefined : `${shareText(errors / calls)} of requests`;
}

export function refusedNote({ calls, refused }: Counts): string | undefined {
  return calls + refused === 0 ? undefined : `${shareText(refused / (calls + refused))} of all requests`;
}

const MEASURE_LABELS = {
  calls: 'Requests',
  credits: 'Credits',
  errors: 'Errors',
  refused: 'Rejected',
} as const;

const DIMENSIONS = [
  ['method', 'By method'],
  ['key', 'By key'],
] as const;

/** Usage over time, the parts that were used the most upon one another. */
function chartPanel({ view, query: { period, by, measure }, hours, url, keyName }: ShownUsage) {
  const { unit, label } = PERIODS[period];
  const title = `${MEASURE_LABELS[measure]} by ${by}`;
  const starts = startsOf(hours, unit);
  const sums = new Map<string, Map<number, number>>([...view.names, ''].map((name) => [name, new Map()]));
  for (const cell of view.cells) {
    const byPeriod = sums.get(cell.name);
    byPeriod?.set(cell.at, (byPeriod.get(cell.at) ?? 0) + cell[measure]);
  }
  const names = view.parts.length > view.names.length ? [...view.names, ''] : view.names;
  return (
    <Panel
      title={`${title}, ${label}`}
      aside={
        <>
          <Choices label="Metric" tabs={views(url, 'show', Object.entries(MEASURE_LABELS), measure)} />
          <Choices label="Group by" tabs={views(url, 'by', DIMENSIONS, by)} />
        </>
      }
    >
      <Chart
        id="usage"
        title={title}
        kind="stacked"
        unit={`${MEASURE_LABELS[measure]} per ${unit}`}
        timesMs={starts.map(({ atMs }) => atMs)}
        series={names.map((name) => ({
          label: name === '' ? 'Others' : shortened(by === 'key' ? keyName(name) : name),
          values: starts.map(({ at }) => sums.get(name)?.get(at) ?? 0),
          ...(name === '' && { tone: 'quiet' as const }), // the union's member, not any string
        }))}
      />
    </Panel>
  );
}

/** Characters that fit into a line of the chart's legend on a phone. */
const LEGEND_CHARACTERS = 32;

/** The ends of a long name: the last of a key's name are those of the key. */
function shortened(name: string): string {
  if (name.length <= LEGEND_CHARACTERS) return name;
  return `${name.slice(0, LEGEND_CHARACTERS - 9)}…${name.slice(-8)}`;
}

const ROWS = 100;

function usageTable({ view: { parts, total }, query: { by }, url, keyName }: ShownUsage) {
  const isByMethod = by === 'method';
  const within = (name: string) => (isByMethod ? { method: name, by: 'key' } : { key: name, by: 'method' });
  return (
    <>
      <Table
        caption={`Usage by ${by}`}
        columns={[
          [
            isByMethod ? 'Method' : 'Key',
            ({ name }) => (
              <Link to={withQuery(url, within(name))}>
                {isByMethod ? <code>{name}</code> : keyName(name)}
              </Link>
            ),
            'head',
          ],
          ['Requests', ({ counts }) => countText(counts.calls), 'end'],
          ['Share', ({ counts }) => shareText(total.calls === 0 ? 0 : counts.calls / total.calls), 'end'],
          ['Credits', ({ counts }) => countText(counts.credits - counts.refunded), 'end'],
          ['Errors', ({ counts }) => countText(counts.errors), 'end'],
          ['Rejected', ({ counts }) => countText(counts.refused), 'end'],
          ['Data sent', ({ counts }) => bytesText(counts.bytesOut), 'end'],
          ['p50', ({ counts }) => boundText(counts, 0.5), 'end'],
          ['p95', ({ counts }) => boundText(counts, 0.95), 'end'],
        ]}
        rows={parts.slice(0, ROWS)}
        empty={<Empty title="No usage in this period" />}
      />
      {parts.length > ROWS && <p class="soft">{`${countText(parts.length - ROWS)} more in the CSV file.`}</p>}
    </>
  );
}

/** The response while a user's other windows read usage. */
const busy = (): Content => ({
  title: 'Usage',
  status: 503,
  retryAfterSeconds: 2,
  body: <Notice tone="warning">Usage is open in too many windows. Reload this page in a moment.</Notice>,
});

/** The rows behind the page of usage, in the columns of `sluice usage --format csv`. */
export const usageFile = accountPage({
  path: `${paths.usage(ACCOUNT)}.csv`,
  show({ readUsed, turns }, { account, viewer, url, nowMs, request }) {
    const { period, keyId, method } = usageQueryOf(url);
    const hours = hoursOf(period, nowMs);
    const isWanted = (used: Used) =>
      (keyId === undefined || used.key_id === keyId) && (method === undefined || used.method === method);
    const lines = linesOf(readUsed(hours, account.id), isWanted, account.name);
    const dayOf = (hour: number) => UNITS.day.text(UNITS.day.of(hour));
    const file = `usage-${dayOf(hours.fromHour)}-to-${dayOf(hours.toHour - 1)}.csv`;
    const headers = {
      'content-type': 'text/csv; charset=utf-8',
      'content-disposition': `attachment; filename="${file}"`,
    };
    if (request.method === 'HEAD') return new Response(null, { headers });
    const reader = turns.enter(viewer.userId);
    if (reader === undefined) return busy();
    return new Response(streamed(lines, reader, request.signal), { headers });
  },
});

function* linesOf(
  pages: Iterable<readonly Used[]>,
  isWanted: (used: Used) => boolean,
  account: string,
): Generator<string> {
  yield CSV_HEAD;
  for (const page of pages)
    yield page
      .filter(isWanted)
      .map((used) => csvLine(used, account))
      .join('');
}

/** One part at a time, as the caller takes them. */
function streamed(lines: Generator<string>, reader: Reader, signal: AbortSignal): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let isOver = false;
  const end = () => {
    if (!isOver) reader.leave();
    isOver = true;
  };
  if (signal.aborted) end();
  else signal.addEventListener('abort', end, { once: true });
  return new ReadableStream({
    async pull(controller) {
      try {
        for (;;) {
          await reader.turn(signal);
          const { done, value } = isOver ? { done: true, value: '' } : lines.next();
          if (done) {
            end();
            return controller.close();
          }
          if (value === '') continue;
          controller.enqueue(encoder.encode(value));
          return;
        }
      } catch (error) {
        end();
        throw error;
      }
    },
    cancel() {
      end();
      lines.return(undefined);
    },
  });
}

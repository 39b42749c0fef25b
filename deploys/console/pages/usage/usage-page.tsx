/** @jsxImportSource preact */
import type { Counts } from '../../../usage/report.ts';
import type { AskedOfAccount, Page } from '../../asked.ts';
import type { PageDeps } from '../../page-deps.ts';
import { Empty } from '../../page/empty.tsx';
import { ButtonLink } from '../../page/form.tsx';
import { Link } from '../../page/link.tsx';
import { bytesText, countText, shareText } from '../../page/number.ts';
import { withQuery } from '../../page/pager.tsx';
import { Panel } from '../../page/panel.tsx';
import { Stats } from '../../page/stats.tsx';
import { Tabs } from '../../page/tabs.tsx';
import { type AskedUsage, askedUsage } from './asked-usage.ts';
import { hoursOf, PERIOD_NAMES, PERIODS } from './period.ts';
import { UsageChart } from './usage-chart.tsx';
import { UsageTable } from './usage-table.tsx';
import { Choices } from './choices.tsx';

/** Parts that have a colour of their own in the chart. */
const NAMED = 6;

const MEASURE_LABELS = {
  calls: 'Requests',
  credits: 'Credits',
  errors: 'Errors',
  refused: 'Refused',
} as const;

/** `/usage`: what an account used, by method or by key, over hours, days or months. */
export function createUsagePage({
  keys,
  readUsageView,
}: Pick<PageDeps, 'keys' | 'readUsageView'>): Page<AskedOfAccount> {
  return async function usagePage({ request, account, url, nowMs, show }) {
    const asked = askedUsage(url);
    const { period, by, measure, keyId, method } = asked;
    const { unit, label } = PERIODS[period];
    const hours = hoursOf(period, nowMs);
    const whose = { accountId: account.id, ...(keyId && { keyId }), ...(method && { method }) };
    const view = await readUsageView({ whose, hours, unit, by, named: NAMED }, request.signal);
    const keyName = (id: string) => {
      const row = keys.find(id, account.id);
      return row === undefined ? id : `${row.name} (…${row.last4})`;
    };
    const labelOf = (name: string) => (by === 'key' ? keyName(name) : name);
    const csv = withQuery(url, { by: undefined, show: undefined }).replace(
      url.pathname,
      `${url.pathname}.csv`,
    );
    const isUsed = view.total.calls + view.total.refused > 0;
    return show({
      title: 'Usage',
      aside: isUsed && <ButtonLink to={csv}>Download CSV</ButtonLink>,
      body: (
        <>
          <Tabs
            label="Period"
            tabs={PERIOD_NAMES.map((name) => ({
              label: PERIODS[name].label,
              to: withQuery(url, { period: name }),
              isCurrent: name === period,
            }))}
          />
          <Narrowed asked={asked} url={url} keyName={keyName} />
          <Totals total={view.total} />
          {isUsed ? (
            <>
              <Panel
                title={`${MEASURE_LABELS[measure]} by ${by}, ${label}`}
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
                  title={`${MEASURE_LABELS[measure]} by ${by}`}
                  labelOf={labelOf}
                />
              </Panel>
              <UsageTable
                parts={view.parts}
                total={view.total}
                head={by === 'method' ? 'Method' : 'Key'}
                cellOf={(name) => (
                  <Link
                    to={withQuery(
                      url,
                      by === 'method' ? { method: name, by: 'key' } : { key: name, by: 'method' },
                    )}
                  >
                    {by === 'method' ? <code>{name}</code> : keyName(name)}
                  </Link>
                )}
              />
              <p class="soft">
                p50 and p95 are how soon half and 95 of 100 answers began, as a bound that holds. Times are in
                UTC; the {unit} that is now is not over yet.
              </p>
            </>
          ) : (
            <Empty title="Nothing was used in this time.">
              <Link to={`/accounts/${account.id}/quick-start`}>See how to make the first call</Link>
            </Empty>
          )}
        </>
      ),
    });
  };
}

type NarrowedProps = Readonly<{ asked: AskedUsage; url: URL; keyName(id: string): string }>;

/** What the page is narrowed to, and the way back. */
function Narrowed({ asked: { keyId, method }, url, keyName }: NarrowedProps) {
  if (keyId === undefined && method === undefined) return null;
  return (
    <p>
      Of{keyId !== undefined && <> the key {keyName(keyId)}</>}
      {keyId !== undefined && method !== undefined && ' and'}
      {method !== undefined && (
        <>
          {' '}
          the method <code>{method}</code>
        </>
      )}{' '}
      alone. <Link to={withQuery(url, { key: undefined, method: undefined, by: undefined })}>Show all</Link>
    </p>
  );
}

function Totals({ total }: Readonly<{ total: Counts }>) {
  const { calls, credits, refunded, errors, refused, bytesOut } = total;
  return (
    <Stats
      stats={[
        { label: 'Requests', value: countText(calls) },
        { label: 'Credits', value: countText(credits - refunded) },
        {
          label: 'Errors',
          value: countText(errors),
          note: calls === 0 ? undefined : `${shareText(errors / calls)} of requests`,
        },
        {
          label: 'Refused',
          value: countText(refused),
          note: calls + refused === 0 ? undefined : `${shareText(refused / (calls + refused))} of all`,
        },
        { label: 'Sent', value: bytesText(bytesOut) },
      ]}
    />
  );
}

/** @jsxImportSource preact */
import type { AskedOfAccount, Page } from '../../context.ts';
import type { PageDeps } from '../../page-services.ts';
import { Empty } from '../../components/panels.tsx';
import { ButtonLink } from '../../components/forms.tsx';
import { Link, Tabs, withQuery } from '../../components/links.tsx';
import { type AskedUsage, askedUsage } from './asked-usage.ts';
import { showBusy } from './busy.tsx';
import { hoursOf, PERIOD_NAMES, PERIODS } from './period.ts';
import { UsageBody } from './usage-body.tsx';
import { UsageTotals } from './usage-totals.tsx';

/** Parts that have a colour of their own in the chart. */
const NAMED = 6;

/** `/usage`: what an account used, by method or by key, over hours, days or months. */
export function createUsagePage({
  keys,
  readUsageView,
}: Pick<PageDeps, 'keys' | 'readUsageView'>): Page<AskedOfAccount> {
  return async function usagePage(page) {
    const { request, account, viewer, url, nowMs, show } = page;
    const asked = askedUsage(url);
    const { period, by, keyId, method } = asked;
    const { unit } = PERIODS[period];
    const hours = hoursOf(period, nowMs);
    const whose = { accountId: account.id, ...(keyId && { keyId }), ...(method && { method }) };
    const wish = { whose, hours, unit, by, named: NAMED };
    const reading = await readUsageView(wish, viewer.userId, request.signal);
    if (reading.kind === 'busy') return showBusy(page);
    const { view } = reading;
    const keyName = (id: string) => {
      const row = keys.find(id, account.id);
      return row === undefined ? id : `${row.name} (…${row.last4})`;
    };
    const isUsed = view.total.calls + view.total.refused > 0;
    return show({
      title: 'Usage',
      aside: isUsed && <ButtonLink to={csvPath(url)}>Download CSV</ButtonLink>,
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
          {isUsed ? (
            <>
              <UsageTotals total={view.total} />
              <UsageBody view={view} asked={asked} hours={hours} url={url} keyName={keyName} />
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

/** The same as a file: what is drawn and how it is told apart does not matter there. */
function csvPath(url: URL): string {
  const query = withQuery(url, { by: undefined, show: undefined }).slice(url.pathname.length);
  return `${url.pathname}.csv${query}`;
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

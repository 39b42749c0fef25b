/** @jsxImportSource preact */
import { HOUR_MS } from '../../../usage/calendar.ts';
import { forecastOf } from '../../../usage/forecast.ts';
import type { AskedOfAccount, Page, PageAccount } from '../../context.ts';
import type { PageDeps } from '../../page-services.ts';
import { Badge, Notice } from '../../components/icons.tsx';
import { ButtonLink } from '../../components/forms.tsx';
import { Link } from '../../components/links.tsx';
import { Columns, Live } from '../../components/panels.tsx';
import { type Attention, attentionOf } from './attention.ts';
import { AccountStats } from './account-stats.tsx';
import { LastHour } from './last-hour.tsx';
import { KeysPanel, MethodsPanel } from './panels.tsx';

export type OverviewDeps = Pick<PageDeps, 'accounts' | 'keys' | 'plans' | 'usage' | 'minutes' | 'webhooksOf'>;

/** Keys that are looked at for the page; an account rarely has more that work. */
const KEYS = 100;

/** `/overview`: how an account stands, and what it does just now. */
export function createOverviewPage(deps: OverviewDeps): Page<AskedOfAccount> {
  const { accounts, keys, plans, usage, minutes, webhooksOf } = deps;

  return function overviewPage({ account: { id }, account: pageAccount, url, nowMs, show, notFound }) {
    const account = accounts.findById(id);
    if (account === undefined) return notFound();
    const plan = account.plan === undefined ? undefined : plans.get(account.plan);
    const { creditsLeft, createdAtMs } = account;
    const forecast =
      creditsLeft === undefined
        ? undefined
        : forecastOf(usage, { accountId: id, creditsLeft, createdAtMs }, nowMs);
    const toHour = Math.floor(nowMs / HOUR_MS) + 1;
    const hours = { fromHour: toHour - 24, toHour };
    const newest = keys.page({ accountId: id, limit: KEYS }).items;
    const standing = { account, plan, forecast, keys: newest, webhooks: webhooksOf(id) };
    return show({
      title: 'Overview',
      aside: (
        <>
          <Badge tone="quiet" icon="gauge">
            {account.plan === undefined ? 'Program API alone' : `Plan ${account.plan}`}
          </Badge>
          <ButtonLink to={`/accounts/${id}/quick-start`}>Quick start</ButtonLink>
        </>
      ),
      body: (
        <Live id="overview" from={url.pathname} everySeconds={5}>
          <div class="panel-stack">
            <AttentionList found={attentionOf(standing, nowMs)} account={pageAccount} />
            <AccountStats
              account={account}
              plan={plan}
              forecast={forecast}
              day={usage.sum({ accountId: id }, hours)}
            />
            <LastHour
              minutes={minutes.recentMinutes(id, nowMs)}
              sinceMs={minutes.sinceMs()}
              plan={plan}
              nowMs={nowMs}
            />
            <Columns>
              <MethodsPanel accountId={id} methods={usage.byMethod({ accountId: id }, hours)} />
              <KeysPanel
                accountId={id}
                keys={newest}
                used={usage.byKey({ accountId: id }, hours)}
                nowMs={nowMs}
              />
            </Columns>
          </div>
        </Live>
      ),
    });
  };
}

function AttentionList({
  found,
  account: { id },
}: Readonly<{ found: readonly Attention[]; account: PageAccount }>) {
  if (found.length === 0) return null;
  return (
    <section class="notices" aria-label="What needs attention">
      {found.map(({ tone, sentence, link }) => (
        <Notice key={sentence} tone={tone}>
          {sentence} {link && <Link to={`/accounts/${id}/${link.page}`}>{link.label}</Link>}
        </Notice>
      ))}
    </section>
  );
}

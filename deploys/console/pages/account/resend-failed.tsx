/** @jsxImportSource preact */
import { HOUR_MS } from '../../../usage/calendar.ts';
import { countText, Time } from '../../components/format.tsx';
import { PostForm } from '../../components/forms.tsx';
import { Link, Tabs, views } from '../../components/links.tsx';
import { Notice, Panel } from '../../components/panels.tsx';
import { accountPage } from '../../page.ts';
import { ACCOUNT, paths, redirect } from '../../paths.ts';
import { SPANS } from './deliveries.tsx';
import { crumbsTo, refusalOf, webhookIn } from './webhooks.tsx';

const SINCE = [['1h', 'Last hour', HOUR_MS], ...SPANS] as const;

/** Sends every delivery of a webhook once more that failed since an instant; how many these are, and since when. */
export const resendFailedPage = accountPage({
  path: `${paths.webhook(ACCOUNT, ':webhookId')}/resend-failed`,
  find: webhookIn,
  show({ webhooks }, { account, nowMs, url, returned }, webhook) {
    const wanted = url.searchParams.get('since');
    const [chosen, , spanMs] = SINCE.find(([value]) => value === wanted) ?? SINCE[1];
    const sinceMs = nowMs - spanMs;
    const count = webhooks.failedSince(account.id, webhook.id, sinceMs);
    const path = paths.webhook(account.id, webhook.id);
    return {
      title: 'Retry failed deliveries',
      crumbs: crumbsTo(account.id, webhook),
      body: (
        <Panel title="Failed deliveries">
          <Tabs label="Since" tabs={views(url, 'since', SINCE, chosen)} />
          <p>
            {count === 0 ? (
              'No failed deliveries to retry'
            ) : (
              <strong>{`${countText(count)} failed ${count === 1 ? 'delivery' : 'deliveries'}`}</strong>
            )}{' '}
            since <Time atMs={sinceMs} />.
            {count > 0 && ' Each is attempted once more, with the same ID and payload.'}
          </p>
          {returned && <Notice tone="bad">{returned.notice}</Notice>}
          {!returned && webhook.pausedAtMs !== null && (
            <Notice tone="warning">The webhook is paused. Resume it first.</Notice>
          )}
          {count > 0 ? (
            <PostForm
              action={`${path}/resend-failed`}
              button={count === 1 ? 'Retry' : `Retry all ${countText(count)}`}
              kind="primary"
              beside={<Link to={path}>Cancel</Link>}
              hidden={{ since: sinceMs }}
            />
          ) : (
            <Link to={path}>Back to webhook</Link>
          )}
        </Panel>
      ),
    };
  },
  forms: {
    ''({ webhooks }, { account, form, by }, { id }) {
      const since = form.get('since') ?? '';
      if (!/^\d{1,15}$/.test(since)) return undefined;
      const resent = webhooks.resendAllFailed(by, id, Number(since));
      return resent.kind === 'due'
        ? redirect(`${paths.deliveries(account.id)}?webhook=${id}`, 'deliveries-resent')
        : refusalOf(resent);
    },
  },
});

/** @jsxImportSource preact */
import { unreachable } from '../../../../shared/brand.ts';
import type { AskedOfAccount } from '../../context.ts';
import { byOf } from '../../by.ts';
import { Buttons, PostForm, Submit } from '../../components/forms.tsx';
import { Link, Tabs } from '../../components/links.tsx';
import { Notice } from '../../components/icons.tsx';
import { countText, Time } from '../../components/format.tsx';
import { Panel } from '../../components/panels.tsx';
import type { Answers } from '../../router.ts';
import { seeOther } from '../../redirect.ts';
import { deliveriesPath, webhookPath, webhooksPath } from '../../paths.ts';
import type { WebhookPageDeps } from '../../page-services.ts';
import { showWebhook } from './one.tsx';
import { hostOf } from './shown-webhook.tsx';

const HOUR_MS = 3_600_000;
const SPANS = [
  ['1h', 'Last hour', HOUR_MS],
  ['24h', 'Last 24 hours', 24 * HOUR_MS],
  ['7d', 'Last 7 days', 7 * 24 * HOUR_MS],
  ['30d', 'Last 30 days', 30 * 24 * HOUR_MS],
] as const;
const BY_DEFAULT = SPANS[1];

/** Sends every delivery of a webhook once more that failed since an instant: how many that are, and then the doing. */
export function resendFailedPage(deps: WebhookPageDeps): Answers<AskedOfAccount> {
  return {
    get: (asked) => showChoice(deps, asked),
    post: (asked) => {
      const { account, form, params, notFound } = asked;
      const id = params['webhookId'] ?? '';
      const since = form.get('since') ?? '';
      if (!/^\d{1,15}$/.test(since)) return notFound();
      const resent = deps.webhooks.resendAllFailed(byOf(asked), id, Number(since));
      switch (resent.kind) {
        case 'due':
          return seeOther(deliveriesPath(account, { webhook: id }), 'deliveries-resent');
        case 'webhook-paused':
          return showWebhook(deps, asked, id, { refusal: resent });
        case 'no-webhook':
          return notFound();
        default:
          return unreachable(resent);
      }
    },
  };
}

function showChoice(deps: WebhookPageDeps, { account, nowMs, params, url, show, notFound }: AskedOfAccount) {
  const id = params['webhookId'] ?? '';
  const webhook = deps.webhooks.find(account.id, id);
  if (webhook === undefined) return notFound();
  const wanted = url.searchParams.get('since');
  const [chosen, , spanMs] = SPANS.find(([name]) => name === wanted) ?? BY_DEFAULT;
  const sinceMs = nowMs - spanMs;
  const count = deps.webhooks.failedSince(account.id, id, sinceMs);
  const path = webhookPath(account, id);
  return show({
    title: 'Resend what failed',
    crumbs: [
      { label: 'Webhooks', to: webhooksPath(account) },
      { label: hostOf(webhook), to: path },
    ],
    body: (
      <Panel title="Failed deliveries">
        <Tabs
          label="Since"
          tabs={SPANS.map(([name, label]) => ({
            label,
            to: `${path}/resend-failed?since=${name}`,
            isCurrent: name === chosen,
          }))}
        />
        <p>
          <strong>{count === 1 ? 'One delivery' : `${countText(count)} deliveries`}</strong> made since{' '}
          <Time atMs={sinceMs} /> failed and can be sent again. Each is attempted once more, with the same id
          and body.
        </p>
        {webhook.pausedAtMs !== null && (
          <Notice tone="warning">The webhook is paused. Resume it first.</Notice>
        )}
        {count > 0 ? (
          <PostForm action={`${path}/resend-failed`} label="Resend">
            <Buttons>
              <Submit kind="primary">{count === 1 ? 'Resend it' : `Resend all ${countText(count)}`}</Submit>
              <Link to={path}>Cancel</Link>
            </Buttons>
            <input type="hidden" name="since" value={sinceMs} />
          </PostForm>
        ) : (
          <Link to={path}>Back to the webhook</Link>
        )}
      </Panel>
    ),
  });
}

/** @jsxImportSource preact */
import type { WebhookDay } from '../../../webhooks/webhook-health.ts';
import type { Webhook } from '../../../webhooks/webhook.ts';
import type { AskedOfAccount, Page } from '../../context.ts';
import { Empty, Live, Panel } from '../../components/panels.tsx';
import { ButtonLink } from '../../components/forms.tsx';
import { Link, Pager, withQuery } from '../../components/links.tsx';
import { Ago, shareText } from '../../components/format.tsx';
import { Table } from '../../components/table.tsx';
import { AttemptOutcome } from '../deliveries/outcome.tsx';
import type { WebhookPageDeps } from '../../page-services.ts';
import { labelsOf } from '../programs/labels.ts';
import { FailureLine, failureShare } from './failure-line.tsx';
import { webhookPath, webhooksPath } from '../../paths.ts';
import { programsText, WebhookState, WebhookUrl } from './shown-webhook.tsx';

type Shown = Readonly<{ webhook: Webhook; health: WebhookDay }>;

/** Webhooks on one page: how each fares is counted from up to a thousand deliveries. */
const PAGE_ROWS = 20;

/** Every webhook of the account with how it fares. */
export function webhookListPage(deps: WebhookPageDeps): Page<AskedOfAccount> {
  return function webhookList({ account, nowMs, url, show }) {
    const path = webhooksPath(account);
    const labelOf = labelsOf(deps.programs({}, nowMs));
    const { webhooks, older, isFirst } = pageOf(deps.webhooks.list(account.id), url);
    const rows = webhooks.map((webhook) => ({ webhook, health: deps.dayOf(webhook.id, nowMs) }));
    return show({
      title: 'Webhooks',
      aside: rows.length > 0 && (
        <ButtonLink to={`${path}/new`} kind="primary">
          Add webhook
        </ButtonLink>
      ),
      body: (
        <Live id="webhooks" from={withQuery(url, {})} everySeconds={10}>
          <Panel title="Every webhook" isFlush>
            <Table
              caption="Webhooks"
              columns={[
                { label: 'URL', isRowHead: true, cell: ({ webhook }) => <Name {...{ account, webhook }} /> },
                { label: 'State', cell: ({ webhook }) => <WebhookState {...{ webhook, nowMs }} /> },
                { label: 'Programs', cell: ({ webhook }) => programsText(webhook, labelOf) },
                { label: 'Last delivery', cell: ({ health }) => <Last {...{ health, nowMs }} /> },
                { label: 'Deliveries, 24 h', cell: ({ health }) => <Day health={health} /> },
              ]}
              rows={rows}
              keyOf={({ webhook }: Shown) => webhook.id}
              empty={<NoWebhooks path={path} />}
            />
          </Panel>
          <Pager first={isFirst ? undefined : path} older={older} />
        </Live>
      ),
    });
  };
}

/** The webhooks of one page, the newest first, behind the one that the address names. */
function pageOf(all: readonly Webhook[], url: URL) {
  const newest = all.toReversed();
  const after = newest.findIndex(({ id }) => id === url.searchParams.get('after'));
  const webhooks = newest.slice(after + 1, after + 1 + PAGE_ROWS);
  const last = webhooks.at(-1);
  const isMore = after + 1 + PAGE_ROWS < newest.length;
  return {
    webhooks,
    isFirst: after === -1,
    older: isMore && last !== undefined ? withQuery(url, { after: last.id }) : undefined,
  };
}

function Name({ account, webhook }: Readonly<{ account: AskedOfAccount['account']; webhook: Webhook }>) {
  return (
    <span class="lines">
      <Link to={webhookPath(account, webhook.id)} class="url-link">
        <WebhookUrl url={webhook.url} />
      </Link>
      {webhook.description !== '' && <span class="soft">{webhook.description}</span>}
    </span>
  );
}

function Last({ health: { last }, nowMs }: Readonly<{ health: WebhookDay; nowMs: number }>) {
  if (last === undefined) return <span class="soft">none yet</span>;
  return (
    <span class="badges">
      <AttemptOutcome state={last.state} status={last.status} error={last.error} />
      <Ago atMs={last.atMs} nowMs={nowMs} />
    </span>
  );
}

function Day({ health }: Readonly<{ health: WebhookDay }>) {
  const share = failureShare(health.day);
  return (
    <span class="badges">
      <FailureLine health={health} />
      <span class="soft">{share === undefined ? 'none settled' : `${shareText(share)} failed`}</span>
    </span>
  );
}

function NoWebhooks({ path }: Readonly<{ path: string }>) {
  return (
    <Empty title="No webhooks yet">
      <p>A webhook tells your own service when a watched program is deployed.</p>
      <ButtonLink to={`${path}/new`} kind="primary">
        Add webhook
      </ButtonLink>
    </Empty>
  );
}

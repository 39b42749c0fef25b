/** @jsxImportSource preact */
import type { WebhookHealth } from '../../../webhooks/webhook-health.ts';
import type { Webhook } from '../../../webhooks/webhook.ts';
import type { AskedOfAccount, Page } from '../../asked.ts';
import { Empty } from '../../page/empty.tsx';
import { ButtonLink } from '../../page/form.tsx';
import { Link } from '../../page/link.tsx';
import { Live } from '../../page/live.tsx';
import { shareText } from '../../page/number.ts';
import { Panel } from '../../page/panel.tsx';
import { Table } from '../../page/table.tsx';
import { Ago } from '../../page/time.tsx';
import { AttemptOutcome } from '../deliveries/outcome.tsx';
import type { WebhookPageDeps } from '../webhook-page-deps.ts';
import { labelsOf } from '../programs/labels.ts';
import { FailureLine, failureShare } from './failure-line.tsx';
import { webhookPath, webhooksPath } from './paths.ts';
import { programsText, WebhookState, WebhookUrl } from './shown-webhook.tsx';

type Shown = Readonly<{ webhook: Webhook; health: WebhookHealth }>;

/** Every webhook of the account with how it fares. */
export function webhookListPage(deps: WebhookPageDeps): Page<AskedOfAccount> {
  return function webhookList({ account, nowMs, url, show }) {
    const path = webhooksPath(account);
    const labelOf = labelsOf(deps.programs({}, nowMs));
    const rows = deps.webhooks
      .list(account.id)
      .map((webhook) => ({ webhook, health: deps.healthOf(webhook.id, nowMs) }));
    return show({
      title: 'Webhooks',
      aside: rows.length > 0 && (
        <ButtonLink to={`${path}/new`} kind="primary">
          Add webhook
        </ButtonLink>
      ),
      body: (
        <Live id="webhooks" from={url.pathname} everySeconds={10}>
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
        </Live>
      ),
    });
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

function Last({ health: { last }, nowMs }: Readonly<{ health: WebhookHealth; nowMs: number }>) {
  if (last === undefined) return <span class="soft">none yet</span>;
  return (
    <span class="badges">
      <AttemptOutcome state={last.state} status={last.status} error={last.error} />
      <Ago atMs={last.atMs} nowMs={nowMs} />
    </span>
  );
}

function Day({ health }: Readonly<{ health: WebhookHealth }>) {
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
      <p>A webhook is told within a minute or two when a program that you watch is deployed.</p>
      <ButtonLink to={`${path}/new`} kind="primary">
        Add webhook
      </ButtonLink>
    </Empty>
  );
}

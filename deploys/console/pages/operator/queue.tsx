/** @jsxImportSource preact */
import { Ago, countText, Time } from '../../components/format.tsx';
import { Badge, Notice } from '../../components/icons.tsx';
import { cursorFrom, Link, Pager, withQuery } from '../../components/links.tsx';
import { Columns, Empty, Live, Stats } from '../../components/panels.tsx';
import { TablePanel } from '../../components/table.tsx';
import type { ViewerContext } from '../../context.ts';
import type { PageServices } from '../../page-services.ts';
import { errorText, STATE_WORDS } from '../account/attempt.tsx';
import { paths } from '../../paths.ts';
import type { Health } from '../../../health/health.ts';
import { COUNT_MAX, type QueueState, type Reason, type WrongAttempt } from '../../../outbox/list.ts';
import type { FailingWebhook } from '../../../webhooks/webhook-health.ts';
import { DAY_MS } from '../../../usage/calendar.ts';

const FAILING_SHOWN = 25;
const WRONG_SHOWN = 25;
/** A delivery that is due for longer is blocked by something. */
const LATE_MS = 60_000;

/** Pending deliveries, and the endpoints that fail. */
export function queuePage(
  { operator, accounts }: PageServices,
  { url, nowMs, show }: ViewerContext,
): Response {
  const { queue, failing, deliveries } = operator;
  const nameOf = (accountId: number) => accounts.findById(accountId)?.name ?? String(accountId);
  const here = withQuery(url, {});
  const after = cursorFrom(url.searchParams.get('after'));
  const found = failing(FAILING_SHOWN + 1, after && { failingSinceMs: after.atMs, id: after.id });
  const shown = found.slice(0, FAILING_SHOWN);
  const last = found.length > FAILING_SHOWN ? shown.at(-1) : undefined;
  const sinceMs = nowMs - DAY_MS;
  return show({
    title: 'Queue',
    aside: <Badge tone="waiting">Live</Badge>,
    body: (
      <>
        <Live id="queue" from={here}>
          <div class="panel-stack">
            <Trouble health={deliveries()} />
            <Figures state={queue.state(nowMs)} nowMs={nowMs} />
          </div>
        </Live>
        <Columns>
          <HostPanel hosts={queue.failingHosts()} />
          <div class="panel-stack">
            <ReasonPanel title="Failure reasons, last 24 h" reasons={queue.reasons('failed', sinceMs)} />
            <ReasonPanel title="Block reasons, last 24 h" reasons={queue.reasons('blocked', sinceMs)} />
          </div>
        </Columns>
        <FailingPanel webhooks={shown} nameOf={nameOf} />
        <Pager url={url} by="after" next={last && `${last.failingSinceMs}.${last.id}`} />
        <Live id="attempts" from={here}>
          <AttemptPanel attempts={queue.wrongAttempts(WRONG_SHOWN)} nameOf={nameOf} />
        </Live>
      </>
    ),
  });
}

function Trouble({ health }: Readonly<{ health: Health | undefined }>) {
  if (health === undefined) return <Notice tone="warning">Deliveries are not sent by this process.</Notice>;
  return health.isWell ? null : <Notice tone="bad">{health.sentence}</Notice>;
}

function Figures({ state, nowMs }: Readonly<{ state: QueueState; nowMs: number }>) {
  const { due, oldestDueAtMs, later, nextDueAtMs, inFlight, eventsWaiting } = state;
  const isLate = oldestDueAtMs !== undefined && nowMs - oldestDueAtMs > LATE_MS;
  return (
    <Stats
      stats={[
        { label: 'Ready', value: manyText(due), tone: isLate ? 'warning' : undefined },
        {
          label: 'Oldest pending',
          value: <Ago atMs={oldestDueAtMs} none="None" />,
          tone: isLate ? 'warning' : undefined,
        },
        { label: 'In flight', value: manyText(inFlight) },
        {
          label: 'Scheduled',
          value: manyText(later),
          note: nextDueAtMs && (
            <>
              next <Ago atMs={nextDueAtMs} />
            </>
          ),
        },
        {
          label: 'Awaiting block time',
          value: manyText(eventsWaiting),
          note: 'deploys, sent once known',
        },
      ]}
    />
  );
}

function manyText(count: number): string {
  return count >= COUNT_MAX ? `${countText(COUNT_MAX)}+` : countText(count);
}

type HostPanelProps = Readonly<{
  hosts: readonly Readonly<{ host: string; webhooks: number; sinceMs: number }>[];
}>;

function HostPanel({ hosts }: HostPanelProps) {
  return (
    <TablePanel
      title="Failing endpoints by host"
      columns={[
        ['Host', ({ host }) => host, 'head'],
        ['Webhooks', ({ webhooks }) => countText(webhooks), 'end'],
        ['Failing since', ({ sinceMs }) => <Ago atMs={sinceMs} />, 'end'],
      ]}
      rows={hosts}
      keyOf={({ host }) => host}
      empty={<Empty title="All endpoints are healthy" />}
    />
  );
}

function ReasonPanel({ title, reasons }: Readonly<{ title: string; reasons: readonly Reason[] }>) {
  return (
    <TablePanel
      title={title}
      columns={[
        ['Reason', ({ reason }) => errorText(reason), 'head'],
        ['Attempts', ({ attempts }) => countText(attempts), 'end'],
        ['Last', ({ lastAtMs }) => <Ago atMs={lastAtMs} />, 'end'],
      ]}
      rows={reasons}
      keyOf={({ reason }) => reason}
      empty={<Empty title="None" />}
    />
  );
}

type Named = Readonly<{ nameOf: (accountId: number) => string }>;

function FailingPanel({ webhooks, nameOf }: Named & Readonly<{ webhooks: readonly FailingWebhook[] }>) {
  if (webhooks.length === 0) return null;
  return (
    <TablePanel
      title="Failing webhooks, longest first"
      caption="Failing webhooks"
      columns={[
        [
          'Endpoint',
          ({ id, accountId, host }) => <Link to={paths.webhook(accountId, id)}>{host}</Link>,
          'head',
        ],
        [
          'Account',
          ({ accountId }) => <Link to={paths.operatorAccount(accountId)}>{nameOf(accountId)}</Link>,
        ],
        ['Failing since', ({ failingSinceMs }) => <Time atMs={failingSinceMs} />],
        ['Consecutive failures', ({ consecutiveFailures }) => countText(consecutiveFailures), 'end'],
        ['Last success', ({ lastSuccessAtMs }) => <Ago atMs={lastSuccessAtMs} none="Never" />],
        [
          'State',
          ({ isPaused }) =>
            isPaused ? <Badge tone="quiet">Paused</Badge> : <Badge tone="bad">Failing</Badge>,
        ],
      ]}
      rows={webhooks}
      keyOf={({ id }) => id}
      empty={null}
    />
  );
}

function AttemptPanel({ attempts, nameOf }: Named & Readonly<{ attempts: readonly WrongAttempt[] }>) {
  return (
    <TablePanel
      title="Recent failures"
      columns={[
        [
          'Attempt',
          ({ accountId, deliveryId, startedAtMs }) => (
            <Link to={paths.delivery(accountId, deliveryId)}>
              <Time atMs={startedAtMs} />
            </Link>
          ),
          'head',
        ],
        [
          'Endpoint',
          ({ accountId, webhookId, host }) => <Link to={paths.webhook(accountId, webhookId)}>{host}</Link>,
        ],
        [
          'Account',
          ({ accountId }) => <Link to={paths.operatorAccount(accountId)}>{nameOf(accountId)}</Link>,
        ],
        ['Number', ({ number }) => (number === null ? 'Manual' : `${number} of 6`)],
        ['Reason', ({ error }) => errorText(error ?? 'unknown')],
        [
          'Delivery',
          ({ state, deliveryState }) => (
            <Badge tone={deliveryState === 'failed' ? 'bad' : state === 'blocked' ? 'warning' : 'quiet'}>
              {STATE_WORDS[deliveryState][0]}
            </Badge>
          ),
        ],
      ]}
      rows={attempts}
      keyOf={({ deliveryId, n }) => `${deliveryId} ${n}`}
      empty={<Empty title="No failed attempts" />}
    />
  );
}

/** @jsxImportSource preact */
import { Ago, countText, Time } from '../../components/format.tsx';
import {
  Badge,
  type Column,
  Columns,
  Empty,
  Live,
  Notice,
  statRow,
  TablePanel,
} from '../../components/panels.tsx';
import { cursorFrom, Link, Pager } from '../../components/links.tsx';
import { operatorPage } from '../../page.ts';
import { errorText, STATE_WORDS } from '../account/deliveries.tsx';
import { paths } from '../../paths.ts';
import { COUNT_MAX, type QueueState, type Reason, type WrongAttempt } from '../../../outbox/list.ts';
import type { FailingWebhook } from '../../../webhooks/webhook-health.ts';
import { DAY_MS } from '../../../usage/calendar.ts';

const FAILING_SHOWN = 25;
const WRONG_SHOWN = 25;
/** A delivery that is due for longer is blocked by something. */
const LATE_MS = 60_000;

/** Pending deliveries, and the endpoints that fail. */
export const queuePage = operatorPage({
  path: paths.queue,
  entry: ['Queue', 'send'],
  show({ operator, accounts }, { url, nowMs }) {
    const { queue, failing } = operator;
    const health = operator.deliveries();
    const nameOf = (accountId: number) => accounts.findById(accountId)?.name ?? String(accountId);
    const after = cursorFrom(url.searchParams.get('after'));
    const found = failing(FAILING_SHOWN + 1, after && { failingSinceMs: after.atMs, id: after.id });
    const shown = found.slice(0, FAILING_SHOWN);
    const last = found.length > FAILING_SHOWN ? shown.at(-1) : undefined;
    return {
      title: 'Queue',
      aside: <Badge tone="waiting">Live</Badge>,
      body: [
        <Live id="queue">
          <div class="panel-stack">
            {!health.isWell && <Notice tone="bad">{health.sentence}</Notice>}
            {figures(queue.state(nowMs), nowMs)}
          </div>
        </Live>,
        <Columns>
          <TablePanel
            title="Failing endpoints by host"
            columns={[
              ['Host', ({ host }) => host, 'head'],
              ['Webhooks', ({ webhooks }) => countText(webhooks), 'end'],
              ['Failing since', ({ sinceMs }) => <Ago atMs={sinceMs} />, 'end'],
            ]}
            rows={queue.failingHosts()}
            empty={<Empty title="All endpoints are healthy" />}
          />
          <div class="panel-stack">
            {reasonPanel('Failure reasons, last 24 h', queue.reasons('failed', nowMs - DAY_MS))}
            {reasonPanel('Block reasons, last 24 h', queue.reasons('blocked', nowMs - DAY_MS))}
          </div>
        </Columns>,
        shown.length > 0 && failingPanel(shown, nameOf),
        <Pager by="after" next={last && `${last.failingSinceMs}.${last.id}`} />,
        <Live id="attempts">{attemptPanel(queue.wrongAttempts(WRONG_SHOWN), nameOf)}</Live>,
      ],
    };
  },
});

function figures(state: QueueState, nowMs: number) {
  const { due, oldestDueAtMs, later, nextDueAtMs, inFlight, eventsWaiting } = state;
  const tone = oldestDueAtMs !== undefined && nowMs - oldestDueAtMs > LATE_MS && 'warning';
  return statRow([
    ['Ready', manyText(due), undefined, tone],
    ['Oldest pending', <Ago atMs={oldestDueAtMs} none="None" />, undefined, tone],
    ['In flight', manyText(inFlight)],
    [
      'Scheduled',
      manyText(later),
      nextDueAtMs && (
        <>
          next <Ago atMs={nextDueAtMs} />
        </>
      ),
    ],
    ['Awaiting block time', manyText(eventsWaiting), 'deploys, sent once known'],
  ]);
}

function manyText(count: number): string {
  return count >= COUNT_MAX ? `${countText(COUNT_MAX)}+` : countText(count);
}

function reasonPanel(title: string, reasons: readonly Reason[]) {
  return (
    <TablePanel
      title={title}
      columns={[
        ['Reason', ({ reason }) => errorText(reason), 'head'],
        ['Attempts', ({ attempts }) => countText(attempts), 'end'],
        ['Last', ({ lastAtMs }) => <Ago atMs={lastAtMs} />, 'end'],
      ]}
      rows={reasons}
      empty={<Empty title="None" />}
    />
  );
}

type NameOf = (accountId: number) => string;
type OfWebhook = Readonly<{ accountId: number; host: string }>;

const endpointLink = ({ accountId, host }: OfWebhook, id: string) => (
  <Link to={paths.webhook(accountId, id)}>{host}</Link>
);
const accountColumn = (nameOf: NameOf): Column<OfWebhook> => [
  'Account',
  ({ accountId }) => <Link to={paths.operatorAccount(accountId)}>{nameOf(accountId)}</Link>,
];

function failingPanel(webhooks: readonly FailingWebhook[], nameOf: NameOf) {
  return (
    <TablePanel
      title="Failing webhooks, longest first"
      caption="Failing webhooks"
      columns={[
        ['Endpoint', (webhook) => endpointLink(webhook, webhook.id), 'head'],
        accountColumn(nameOf),
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
    />
  );
}

function attemptPanel(attempts: readonly WrongAttempt[], nameOf: NameOf) {
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
        ['Endpoint', (attempt) => endpointLink(attempt, attempt.webhookId)],
        accountColumn(nameOf),
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
      empty={<Empty title="No failed attempts" />}
    />
  );
}

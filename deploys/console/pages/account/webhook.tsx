/** @jsxImportSource preact */
import { Ago, countText, latencyText, shareText, Time } from '../../components/format.tsx';
import {
  ButtonLink,
  ConfirmPanel,
  FormPanel,
  PostForm,
  RadioFields,
  Submit,
  unconfirmed,
} from '../../components/forms.tsx';
import { Columns, factList, Notice, Panel, type Stat, statRow } from '../../components/panels.tsx';
import { Link } from '../../components/links.tsx';
import type { Delivery } from '../../../outbox/list.ts';
import type { PageServices } from '../../page-services.ts';
import { type AccountContext, accountPage } from '../../page.ts';
import { attemptText, deliveryTable, responseBody, wordOf } from './deliveries.tsx';
import { labelsOf } from './programs.tsx';
import { secretContent } from './webhook-secret.tsx';
import {
  failureLine,
  failureShare,
  hostOf,
  refusalOf,
  webhookIn,
  WebhookState,
  WebhookUrl,
} from './webhooks.tsx';
import { ACCOUNT, type FlashCode, ownPath, paths, redirect } from '../../paths.ts';
import type { Takeover } from '../../../webhooks/change.ts';
import type { DeliveryCounts, WebhookHealth } from '../../../webhooks/webhook-health.ts';
import type { Webhook } from '../../../webhooks/webhook.ts';

const RECENT = 8;

/** One webhook: its health, its settings and its forms. */
export const webhookPage = accountPage({
  path: paths.webhook(ACCOUNT, ':webhookId'),
  find: webhookIn,
  show(services, { account, nowMs, url, returned }, webhook) {
    const { id } = webhook;
    const path = paths.webhook(account.id, id);
    const recent = services.deliveries.page(account.id, { webhookId: id, limit: RECENT });
    const test = services.webhooks.delivery(account.id, id, url.searchParams.get('test') ?? '');
    const host = hostOf(webhook);
    return {
      title: host,
      crumbs: [['Webhooks', paths.webhooks(account.id)]],
      aside: buttons(webhook, path),
      body: [
        returned?.notice === undefined ? (
          testResult(path, account.id, test, nowMs)
        ) : (
          <div id="test-result" role="alert">
            <Notice tone="bad">{returned.notice}</Notice>
          </div>
        ),
        failingNotice(services, webhook),
        stats(services.healthOf(id, nowMs)),
        <Columns>
          {aboutPanel(webhook, labelsOf(services.programs({}, nowMs)))}
          {secretPanel(webhook, path)}
        </Columns>,
        <Panel
          title="Recent deliveries"
          id={PARTS_OF_TEST.recent}
          isFlush
          aside={
            <>
              <Link to={`${path}/resend-failed`}>Retry failed</Link>
              <Link to={`${paths.deliveries(account.id)}?webhook=${id}`}>All deliveries</Link>
            </>
          }
        >
          {deliveryTable(account.id, recent.rows, 'No deliveries yet', true)}
        </Panel>,
        <ConfirmPanel title="Delete webhook" action={`${path}/delete`} phrase={host} button="Delete webhook">
          Pending deliveries are cancelled and its history is hidden. This cannot be undone.
        </ConfirmPanel>,
      ],
    };
  },
  forms: {
    '/pause': changing('pause', 'webhook-paused'),
    '/resume': changing('resume', 'webhook-resumed'),
    '/rotation/switch': changing('switchNow', 'rotation-completed'),
    '/rotation/cancel': changing('cancelRotation', 'rotation-cancelled'),
    /** Creates a new secret and shows it once. */
    '/rotation'({ webhooks }, { account, form, by }, { id }) {
      const takeover = TAKEOVERS.find(({ value }) => value === form.get('takes-over'))?.value ?? '24h';
      const seen = form.get('seen') ?? '';
      const rotated = webhooks.rotate(by, id, takeover, /^\d{1,15}$/.test(seen) ? Number(seen) : 0);
      return rotated.kind === 'rotated'
        ? secretContent(account.id, { ...rotated, title: 'New signing secret' })
        : refusalOf(rotated);
    },
    /** Sends a test. A page with JavaScript stays where it is; without, the delivery's page shows how it ends. */
    '/test'({ webhooks }, { account, request, by }, { id }) {
      const isPart = request.headers.get('hx-request') === 'true';
      const tested = webhooks.sendTest(by, id);
      if (tested.kind === 'queued')
        return isPart
          ? redirect(`${paths.webhook(account.id, id)}?test=${tested.deliveryId}`)
          : redirect(paths.delivery(account.id, tested.deliveryId), 'test-queued');
      const refusal = refusalOf(tested);
      return isPart && refusal ? { notice: refusal.notice, status: 200 } : refusal;
    },
    '/delete'({ webhooks }, { account, form, by }, webhook) {
      const refusal = unconfirmed(form, hostOf(webhook));
      if (refusal) return refusal;
      webhooks.remove(by, webhook.id);
      return redirect(paths.webhooks(account.id), 'webhook-deleted');
    },
  },
});

/** A change without fields, with its message. */
function changing(change: 'pause' | 'resume' | 'switchNow' | 'cancelRotation', flash: FlashCode) {
  return ({ webhooks }: PageServices, { account, by }: AccountContext, { id }: Webhook) => {
    const result = webhooks[change](by, id);
    return result.kind === 'no-webhook' || result.kind === 'no-rotation'
      ? refusalOf(result)
      : redirect(paths.webhook(account.id, id), flash);
  };
}

function buttons({ pausedAtMs }: Webhook, path: string) {
  const isPaused = pausedAtMs !== null;
  return (
    <>
      {!isPaused && testForm(path)}
      <PostForm
        action={`${path}/${isPaused ? 'resume' : 'pause'}`}
        button={isPaused ? 'Resume' : 'Pause'}
        isInline
      />
      <ButtonLink to={`${path}/edit`} text="Edit" />
    </>
  );
}

function failingNotice({ deliveries }: PageServices, webhook: Webhook) {
  const { failingSinceMs, consecutiveFailures } = webhook;
  if (failingSinceMs === null || webhook.pausedAtMs !== null) return null;
  const { lastError, nextTryAtMs } = deliveries.trouble(webhook.id);
  return (
    <Notice tone="bad">
      <p>
        <strong>
          Failing since <Time atMs={failingSinceMs} />
        </strong>
        , {consecutiveFailures === 1 ? '1 failed attempt' : `${consecutiveFailures} failed attempts`}
        {lastError !== undefined && `; last error: ${wordOf(lastError)}`}.{' '}
        {nextTryAtMs === undefined ? (
          'No retries are scheduled.'
        ) : (
          <>
            Next attempt <Ago atMs={nextTryAtMs} />.
          </>
        )}
      </p>
    </Notice>
  );
}

type LabelOf = ReturnType<typeof labelsOf>;

function aboutPanel(webhook: Webhook, labelOf: LabelOf) {
  const { programs, description, lastSuccessAtMs } = webhook;
  return (
    <Panel title="About" id={PARTS_OF_TEST.about}>
      {factList([
        ['State', <WebhookState webhook={webhook} />],
        ['URL', <WebhookUrl url={webhook.url} />],
        description !== '' && ['Description', description],
        ['Programs', programs === null ? 'All watched programs' : programNames(programs.map(labelOf))],
        ['Last success', <Time atMs={lastSuccessAtMs} none="None yet" />],
        ['Created', <Time atMs={webhook.createdAtMs} />],
        ['ID', <code>{webhook.id}</code>],
      ])}
    </Panel>
  );
}

const NAMES_SHOWN = 6;

function programNames(names: readonly string[]) {
  if (names.length <= NAMES_SHOWN) return <>{names.join(', ')}</>;
  return (
    <details id="programs-of-webhook">
      <summary>{names.length} programs</summary>
      {names.join(', ')}
    </details>
  );
}

const WEBHOOK_STATS_ID = 'webhook-stats';

function stats(health: WebhookHealth) {
  const { day, week, latency } = health;
  return statRow(
    [
      ['Delivered, 24 h', countText(day.delivered), failureLine(health)],
      failedStat('Failed, 24 h', day),
      ['Delivered, 7 d', countText(week.delivered), `${countText(week.waiting)} pending`],
      failedStat('Failed, 7 d', week),
      [
        'Response time, 7 d',
        latency === undefined ? '–' : latencyText(latency.p50Ms),
        latency === undefined ? 'No responses' : `median; 95th percentile ${latencyText(latency.p95Ms)}`,
      ],
    ],
    WEBHOOK_STATS_ID,
  );
}

function failedStat(label: string, counts: DeliveryCounts): Stat {
  const share = failureShare(counts);
  const note = share === undefined ? 'None completed' : `${shareText(share)} of completed deliveries`;
  return [label, countText(counts.failed), note, counts.failed > 0 && 'bad'];
}

const IN_TIME = 'Replace the secret in your endpoint before then.';
/** Every choice, the calmest first. */
const TAKEOVERS: readonly Readonly<{ value: Takeover; label: string; hint: string }>[] = [
  { value: '24h', label: 'In 24 hours', hint: IN_TIME },
  { value: '1h', label: 'In 1 hour', hint: IN_TIME },
  {
    value: 'now',
    label: 'Immediately',
    hint: 'If the secret has leaked. Deliveries that your endpoint rejects in the meantime are retried.',
  },
];

/** The secret of a webhook: a new one in stages, and what can be done while one waits. */
function secretPanel({ nextSecretAtMs, updatedAtMs }: Webhook, path: string) {
  if (nextSecretAtMs !== null)
    return (
      <Panel title="Signing secret" id="secret-panel">
        <p>
          The new secret becomes active at <Time atMs={nextSecretAtMs} />, <Ago atMs={nextSecretAtMs} />.
          Until then, both signatures are sent, the new one in <code>X-Service-Signature-Next</code>.
        </p>
        <div class="buttons">
          <PostForm action={`${path}/rotation/switch`} button="Activate now" isInline />
          <PostForm action={`${path}/rotation/cancel`} button="Cancel rotation" isInline />
        </div>
      </Panel>
    );
  return (
    <FormPanel
      title="Signing secret"
      id="secret-panel"
      action={`${path}/rotation`}
      button="Rotate secret"
      hidden={{ seen: updatedAtMs }}
    >
      <RadioFields name="takes-over" legend="New secret becomes active" value="24h" options={TAKEOVERS} />
    </FormPanel>
  );
}

/** How long the page waits for the attempt of a test; an attempt takes 13 s at most. */
const WAITED_MS = 13_000;

/** The parts of the page that show deliveries: every refresh of the test result updates them too. */
const PARTS_OF_TEST = { about: 'webhook-about', recent: 'webhook-recent' } as const;
const COMES_ALONG = [WEBHOOK_STATS_ID, ...Object.values(PARTS_OF_TEST)].map((id) => `#${id}`).join(',');

/** A second press is dropped; the button is not disabled, because keyboard users would lose the focus. */
function testForm(path: string) {
  return (
    <form
      method="post"
      action={ownPath(`${path}/test`)}
      hx-post={ownPath(`${path}/test`)}
      hx-target="#test-result"
      hx-select="#test-result"
      hx-swap="outerHTML"
      hx-sync="this:drop"
    >
      <Submit>Send test</Submit>
    </form>
  );
}

/** The result of a test; until it has one, refreshed every second. */
function testResult(path: string, accountId: number, delivery: Delivery | undefined, nowMs: number) {
  if (delivery === undefined) return <div id="test-result" />;
  const attempt = delivery.tries.at(-1);
  const link = <Link to={paths.delivery(accountId, delivery.id)}>View delivery</Link>;
  if (attempt !== undefined && attempt.endedAtMs !== null)
    return (
      <div id="test-result" role="status">
        <Notice tone={attempt.state === 'succeeded' ? 'good' : 'bad'}>
          <p>
            <strong>Test: {attemptText(attempt)}</strong> in{' '}
            {latencyText(attempt.endedAtMs - attempt.startedAtMs)}. {link}
          </p>
        </Notice>
        {attempt.answerBody !== null && attempt.answerBody.length > 0 && responseBody('test-answer', attempt)}
      </div>
    );
  const isOver = nowMs - delivery.createdAtMs > WAITED_MS;
  const polling = {
    'hx-get': ownPath(`${path}?test=${delivery.id}`),
    'hx-trigger': 'load delay:1s',
    'hx-select': '#test-result',
    'hx-select-oob': COMES_ALONG,
    'hx-swap': 'outerHTML',
  };
  return (
    <div id="test-result" role="status" {...(isOver ? {} : polling)}>
      <Notice tone="waiting">
        <p>
          {isOver ? 'The test is still queued. ' : 'Test sent. Waiting up to 13 seconds for the response… '}
          {link}
        </p>
      </Notice>
    </div>
  );
}

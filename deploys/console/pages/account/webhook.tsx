/** @jsxImportSource preact */
import { Ago, countText, latencyText, shareText, Time } from '../../components/format.tsx';
import {
  ButtonLink,
  ConfirmPanel,
  type FormErrors,
  PostForm,
  RadioFields,
  Submit,
} from '../../components/forms.tsx';
import { Notice } from '../../components/icons.tsx';
import { Link } from '../../components/links.tsx';
import { Columns, Facts, Panel, type Stat, Stats } from '../../components/panels.tsx';
import type { Delivery } from '../../../outbox/list.ts';
import type { AccountContext, PageAccount } from '../../context.ts';
import type { WebhookServices } from '../../page-services.ts';
import { ResponseBody, attemptText, wordOf } from './attempt.tsx';
import { DeliveryTable } from './deliveries.tsx';
import { labelsOf } from './programs.tsx';
import {
  FailureLine,
  failureShare,
  hostOf,
  type PageRefusal,
  refusalStatus,
  refusalText,
  WebhookState,
  WebhookUrl,
} from './webhooks.tsx';
import { ownPath, paths } from '../../paths.ts';
import type { Takeover } from '../../../webhooks/change.ts';
import type { DeliveryCounts, WebhookHealth } from '../../../webhooks/webhook-health.ts';
import type { Webhook } from '../../../webhooks/webhook.ts';

const RECENT = 8;

/** What a form on the page outcome; `status` instead of the refusal's own. */
type FormOutcome = Readonly<{ refusal?: PageRefusal; deleteErrors?: FormErrors; status?: number }>;

export function webhookIdIn({ params }: AccountContext): string {
  return params['webhookId'] ?? '';
}

/**
 * One webhook: its health, its settings and every action on it; also the response to a form on it that was rejected.
 */
export function webhookPage(
  services: WebhookServices,
  context: AccountContext,
  outcome: FormOutcome = {},
): Response {
  const id = webhookIdIn(context);
  const { account, nowMs, url, show, notFound } = context;
  const webhook = services.webhooks.find(account.id, id);
  if (webhook === undefined) return notFound();
  const path = paths.webhook(account.id, id);
  const health = services.healthOf(id, nowMs);
  const { refusal, deleteErrors } = outcome;
  const status = outcome.status ?? (refusal ? refusalStatus(refusal) : deleteErrors && 422);
  const test = services.webhooks.delivery(account.id, id, url.searchParams.get('test') ?? '');
  const host = hostOf(webhook);
  return show({
    title: host,
    status,
    crumbs: [{ label: 'Webhooks', to: paths.webhooks(account.id) }],
    aside: <HeadButtons webhook={webhook} path={path} />,
    body: (
      <>
        {refusal === undefined ? (
          <TestResult path={path} account={account} delivery={test} nowMs={nowMs} />
        ) : (
          <div id="test-result" role="alert">
            <Notice tone="bad">{refusalText(refusal)}</Notice>
          </div>
        )}
        <Failing services={services} webhook={webhook} />
        <WebhookStats health={health} />
        <Columns>
          <About webhook={webhook} labelOf={labelsOf(services.programs({}, nowMs))} />
          <SecretPanel webhook={webhook} path={path} />
        </Columns>
        <Recent services={services} context={context} webhook={webhook} />
        <ConfirmPanel
          title="Delete webhook"
          action={`${path}/delete`}
          phrase={host}
          button="Delete webhook"
          errors={deleteErrors}
        >
          Pending deliveries are cancelled and its history is hidden. This cannot be undone.
        </ConfirmPanel>
      </>
    ),
  });
}

function HeadButtons({ webhook, path }: Readonly<{ webhook: Webhook; path: string }>) {
  const isPaused = webhook.pausedAtMs !== null;
  return (
    <>
      {!isPaused && <TestForm path={path} />}
      <PostForm
        action={`${path}/${isPaused ? 'resume' : 'pause'}`}
        button={isPaused ? 'Resume' : 'Pause'}
        isInline
      />
      <ButtonLink to={`${path}/edit`}>Edit</ButtonLink>
    </>
  );
}

function Failing({ services, webhook }: Readonly<{ services: WebhookServices; webhook: Webhook }>) {
  const { failingSinceMs, consecutiveFailures } = webhook;
  if (failingSinceMs === null || webhook.pausedAtMs !== null) return null;
  const { lastError, nextTryAtMs } = services.deliveries.trouble(webhook.id);
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

type AboutProps = Readonly<{ webhook: Webhook; labelOf: (address: string) => string }>;

function About({ webhook, labelOf }: AboutProps) {
  const { programs, description, lastSuccessAtMs } = webhook;
  return (
    <Panel title="About" id={PARTS_OF_TEST.about}>
      <Facts
        facts={[
          ['State', <WebhookState webhook={webhook} />],
          ['URL', <WebhookUrl url={webhook.url} />],
          description !== '' && ['Description', description],
          [
            'Programs',
            programs === null ? 'All watched programs' : <ProgramNames {...{ programs, labelOf }} />,
          ],
          ['Last success', <Time atMs={lastSuccessAtMs} none="None yet" />],
          ['Created', <Time atMs={webhook.createdAtMs} />],
          ['ID', <code>{webhook.id}</code>],
        ]}
      />
    </Panel>
  );
}

/** Names shown before the rest is folded away. */
const NAMES_SHOWN = 6;

function ProgramNames({
  programs,
  labelOf,
}: Readonly<{ programs: readonly string[]; labelOf: AboutProps['labelOf'] }>) {
  const names = programs.map(labelOf);
  if (names.length <= NAMES_SHOWN) return <>{names.join(', ')}</>;
  return (
    <details id="programs-of-webhook">
      <summary>{names.length} programs</summary>
      {names.join(', ')}
    </details>
  );
}

function Recent({
  services,
  context,
  webhook,
}: Readonly<{ services: WebhookServices; context: AccountContext; webhook: Webhook }>) {
  const { account } = context;
  const { rows } = services.deliveries.page(account.id, { webhookId: webhook.id, limit: RECENT });
  return (
    <Panel
      title="Recent deliveries"
      id={PARTS_OF_TEST.recent}
      isFlush
      aside={
        <>
          <Link to={`${paths.webhook(account.id, webhook.id)}/resend-failed`}>Retry failed</Link>
          <Link to={`${paths.deliveries(account.id)}?webhook=${webhook.id}`}>All deliveries</Link>
        </>
      }
    >
      <DeliveryTable account={account} rows={rows} isOfOneWebhook empty="No deliveries yet" />
    </Panel>
  );
}

/** Where the numbers stand in a page. */
const WEBHOOK_STATS_ID = 'webhook-stats';

function WebhookStats({ health }: Readonly<{ health: WebhookHealth }>) {
  const { day, week, latency } = health;
  return (
    <Stats
      id={WEBHOOK_STATS_ID}
      stats={[
        { label: 'Delivered, 24 h', value: countText(day.delivered), note: <FailureLine health={health} /> },
        failedStat('Failed, 24 h', day),
        {
          label: 'Delivered, 7 d',
          value: countText(week.delivered),
          note: `${countText(week.waiting)} pending`,
        },
        failedStat('Failed, 7 d', week),
        {
          label: 'Response time, 7 d',
          value: latency === undefined ? '–' : latencyText(latency.p50Ms),
          note:
            latency === undefined ? 'No responses' : `median; 95th percentile ${latencyText(latency.p95Ms)}`,
        },
      ]}
    />
  );
}

function failedStat(label: string, counts: DeliveryCounts): Stat {
  const share = failureShare(counts);
  return {
    label,
    value: countText(counts.failed),
    note: share === undefined ? 'None completed' : `${shareText(share)} of completed deliveries`,
    ...(counts.failed > 0 && { tone: 'bad' as const }), // the union's member, not any string
  };
}

/** Every choice, the calmest first. */
export const TAKEOVER_NAMES: readonly Takeover[] = ['24h', '1h', 'now'];
const CHOICES: Readonly<Record<Takeover, readonly [label: string, hint: string]>> = {
  '24h': ['In 24 hours', 'Replace the secret in your endpoint before then.'],
  '1h': ['In 1 hour', 'Replace the secret in your endpoint before then.'],
  now: [
    'Immediately',
    'If the secret has leaked. Deliveries that your endpoint rejects in the meantime are retried.',
  ],
};

/** The secret of a webhook: a new one in stages, and what can be done while one waits. */
function SecretPanel({ webhook, path }: Readonly<{ webhook: Webhook; path: string }>) {
  const { nextSecretAtMs } = webhook;
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
    <Panel title="Signing secret" id="secret-panel">
      <PostForm action={`${path}/rotation`} button="Rotate secret" hidden={{ seen: webhook.updatedAtMs }}>
        <RadioFields
          name="takes-over"
          legend="New secret becomes active"
          value="24h"
          options={TAKEOVER_NAMES.map((value) => ({
            value,
            label: CHOICES[value][0],
            hint: CHOICES[value][1],
          }))}
        />
      </PostForm>
    </Panel>
  );
}

/** How long the page waits for the attempt of a test; an attempt takes 13 s at most. */
const WAITED_MS = 13_000;

/** The parts of the page that show deliveries: every refresh of the test result updates them too. */
const PARTS_OF_TEST = { about: 'webhook-about', recent: 'webhook-recent' } as const;
const COMES_ALONG = [WEBHOOK_STATS_ID, ...Object.values(PARTS_OF_TEST)].map((id) => `#${id}`).join(',');

/**
 * The button that sends a test; with JavaScript its result comes into `TestResult` beside it. A second press meanwhile
 * is dropped; the button is not disabled, because keyboard users would lose the focus.
 */
function TestForm({ path }: Readonly<{ path: string }>) {
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

type ResultProps = Readonly<{
  path: string;
  account: PageAccount;
  delivery: Delivery | undefined;
  nowMs: number;
}>;

/** The result of a test; until it has one, refreshed every second. */
function TestResult({ path, account, delivery, nowMs }: ResultProps) {
  if (delivery === undefined) return <div id="test-result" />;
  const attempt = delivery.tries.at(-1);
  const link = <Link to={paths.delivery(account.id, delivery.id)}>View delivery</Link>;
  if (attempt !== undefined && attempt.endedAtMs !== null)
    return (
      <div id="test-result" role="status">
        <Notice tone={attempt.state === 'succeeded' ? 'good' : 'bad'}>
          <p>
            <strong>Test: {attemptText(attempt)}</strong> in{' '}
            {latencyText(attempt.endedAtMs - attempt.startedAtMs)}. {link}
          </p>
        </Notice>
        {attempt.answerBody !== null && attempt.answerBody.length > 0 && (
          <ResponseBody id="test-answer" attempt={attempt} />
        )}
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

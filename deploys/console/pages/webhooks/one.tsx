/** @jsxImportSource preact */
import type { Webhook } from '../../../webhooks/webhook.ts';
import type { AskedOfAccount, Page } from '../../context.ts';
import { ButtonLink, ConfirmForm, type FormErrors, PostForm, Submit } from '../../components/forms.tsx';
import { Columns, Facts, Panel } from '../../components/panels.tsx';
import { Link } from '../../components/links.tsx';
import { Notice } from '../../components/icons.tsx';
import { Ago, Time } from '../../components/format.tsx';
import { DeliveryTable } from '../deliveries/delivery-table.tsx';
import { wordOf } from '../deliveries/outcome.tsx';
import { deliveriesPath, webhookPath, webhooksPath } from '../../paths.ts';
import { labelsOf } from '../programs/labels.ts';
import type { WebhookPageDeps } from '../../page-services.ts';
import { type PageRefusal, refusalStatus, refusalText } from './refusal-text.ts';
import { SecretPanel } from './secret-panel.tsx';
import { hostOf, WebhookState, WebhookUrl } from './shown-webhook.tsx';
import { PARTS_OF_TEST, TestForm, TestResult } from './test-panel.tsx';
import { WebhookStats } from './webhook-stats.tsx';

const RECENT = 8;

/** What a form on the page said; `status` instead of the refusal's own. */
type Said = Readonly<{ refusal?: PageRefusal; deleteErrors?: FormErrors; status?: number }>;

/** One webhook: how it fares, what it sends, and everything that can be done with it. */
export function webhookPage(deps: WebhookPageDeps): Page<AskedOfAccount> {
  return (asked) => showWebhook(deps, asked, asked.params['webhookId'] ?? '');
}

/** The page of a webhook, also in answer to a form on it that could not be done. */
export function showWebhook(
  deps: WebhookPageDeps,
  asked: AskedOfAccount,
  id: string,
  said: Said = {},
): Response {
  const { account, nowMs, url, show, notFound } = asked;
  const webhook = deps.webhooks.find(account.id, id);
  if (webhook === undefined) return notFound();
  const path = webhookPath(account, id);
  const health = deps.healthOf(id, nowMs);
  const { refusal, deleteErrors, status = statusOf(said) } = said;
  const test = deps.webhooks.delivery(account.id, id, url.searchParams.get('test') ?? '');
  const host = hostOf(webhook);
  return show({
    title: host,
    status,
    crumbs: [{ label: 'Webhooks', to: webhooksPath(account) }],
    aside: <Buttons webhook={webhook} path={path} />,
    body: (
      <>
        {refusal === undefined ? (
          <TestResult path={path} account={account} delivery={test} nowMs={nowMs} />
        ) : (
          <div id="test-result" role="alert">
            <Notice tone="bad">{refusalText(refusal)}</Notice>
          </div>
        )}
        <Failing deps={deps} webhook={webhook} nowMs={nowMs} />
        <WebhookStats health={health} />
        <Columns>
          <About webhook={webhook} nowMs={nowMs} labelOf={labelsOf(deps.programs({}, nowMs))} />
          <SecretPanel webhook={webhook} path={path} nowMs={nowMs} />
        </Columns>
        <Recent deps={deps} asked={asked} webhook={webhook} />
        <Panel title="Delete this webhook" isDanger>
          <ConfirmForm
            action={`${path}/delete`}
            phrase={host}
            button="Delete this webhook"
            errors={deleteErrors}
          >
            <p>
              What waits to be sent is cancelled, and its deliveries are shown no longer. This cannot be
              undone.
            </p>
          </ConfirmForm>
        </Panel>
      </>
    ),
  });
}

function statusOf({ refusal, deleteErrors }: Said): number {
  if (refusal !== undefined) return refusalStatus(refusal);
  return deleteErrors === undefined ? 200 : 422;
}

function Buttons({ webhook, path }: Readonly<{ webhook: Webhook; path: string }>) {
  const isPaused = webhook.pausedAtMs !== null;
  return (
    <>
      {!isPaused && <TestForm path={path} />}
      <PostForm action={`${path}/${isPaused ? 'resume' : 'pause'}`} isInline>
        <Submit>{isPaused ? 'Resume' : 'Pause'}</Submit>
      </PostForm>
      <ButtonLink to={`${path}/edit`}>Edit</ButtonLink>
    </>
  );
}

type FailingProps = Readonly<{
  deps: WebhookPageDeps;
  webhook: Webhook;
  nowMs: number;
}>;

function Failing({ deps, webhook, nowMs }: FailingProps) {
  const { failingSinceMs, consecutiveFailures } = webhook;
  if (failingSinceMs === null || webhook.pausedAtMs !== null) return null;
  const { lastError, nextTryAtMs } = deps.deliveries.trouble(webhook.id);
  return (
    <Notice tone="bad">
      <p>
        <strong>
          Failing since <Time atMs={failingSinceMs} />
        </strong>
        , {consecutiveFailures === 1 ? 'one attempt' : `${consecutiveFailures} attempts`} in a row
        {lastError !== undefined && `; last error: ${wordOf(lastError)}`}.{' '}
        {nextTryAtMs === undefined ? (
          'Nothing waits to be tried again.'
        ) : (
          <>
            The next try is <Ago atMs={nextTryAtMs} nowMs={nowMs} />.
          </>
        )}
      </p>
    </Notice>
  );
}

type AboutProps = Readonly<{ webhook: Webhook; nowMs: number; labelOf: (address: string) => string }>;

function About({ webhook, nowMs, labelOf }: AboutProps) {
  const { programs, description, lastSuccessAtMs } = webhook;
  return (
    <Panel title="About" id={PARTS_OF_TEST.about}>
      <Facts
        facts={[
          { label: 'State', value: <WebhookState webhook={webhook} nowMs={nowMs} /> },
          { label: 'URL', value: <WebhookUrl url={webhook.url} /> },
          ...(description === '' ? [] : [{ label: 'Description', value: description }]),
          {
            label: 'Programs',
            value: programs === null ? 'all watched programs' : <ProgramNames {...{ programs, labelOf }} />,
          },
          {
            label: 'Last success',
            value: lastSuccessAtMs === null ? 'none yet' : <Time atMs={lastSuccessAtMs} />,
          },
          { label: 'Created', value: <Time atMs={webhook.createdAtMs} /> },
          { label: 'Id', value: <code>{webhook.id}</code> },
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
  deps,
  asked,
  webhook,
}: Readonly<{ deps: WebhookPageDeps; asked: AskedOfAccount; webhook: Webhook }>) {
  const { account, nowMs } = asked;
  const { rows } = deps.deliveries.page(account.id, { webhookId: webhook.id, limit: RECENT });
  return (
    <Panel
      title="Recent deliveries"
      id={PARTS_OF_TEST.recent}
      isFlush
      aside={
        <>
          <Link to={`${webhookPath(account, webhook.id)}/resend-failed`}>Resend failed</Link>
          <Link to={deliveriesPath(account, { webhook: webhook.id })}>All deliveries</Link>
        </>
      }
    >
      <DeliveryTable
        account={account}
        rows={rows}
        nowMs={nowMs}
        isOfOneWebhook
        empty="Nothing was sent yet"
      />
    </Panel>
  );
}

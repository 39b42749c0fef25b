/** @jsxImportSource preact */
import { readFileSync } from 'node:fs';
import { unreachable } from '../../../../shared/brand.ts';
import type { Secret } from '../../../../shared/secret.ts';
import { CodeBlock, SecretBox } from '../../components/code.tsx';
import { countText, Time } from '../../components/format.tsx';
import { ButtonLink, confirmErrors, PostForm } from '../../components/forms.tsx';
import { Notice } from '../../components/icons.tsx';
import { Link, Tabs } from '../../components/links.tsx';
import { Panel } from '../../components/panels.tsx';
import { type AccountContext, type AccountForm, byOf } from '../../context.ts';
import type { WebhookServices } from '../../page-services.ts';
import { SPANS } from './deliveries.tsx';
import { TAKEOVER_NAMES, webhookIdIn, webhookPage } from './webhook.tsx';
import { hostOf } from './webhooks.tsx';
import { paths } from '../../paths.ts';
import { type FlashCode, redirect } from '../../redirect.ts';
import { HOUR_MS } from '../../../usage/calendar.ts';
import type { Settled, Toggled } from '../../../webhooks/change.ts';
import type { Webhook } from '../../../webhooks/webhook.ts';

/** Skips events until the webhook is resumed. */
export function pauseWebhook({ webhooks }: WebhookServices, context: AccountForm): Response {
  return toggled(context, webhooks.pause(byOf(context), webhookIdIn(context)));
}

/** Sends the webhook's events again. */
export function resumeWebhook({ webhooks }: WebhookServices, context: AccountForm): Response {
  return toggled(context, webhooks.resume(byOf(context), webhookIdIn(context)));
}

function toggled(context: AccountForm, { kind }: Toggled): Response {
  if (kind === 'no-webhook') return context.notFound();
  return redirect(paths.webhook(context.account.id, webhookIdIn(context)), `webhook-${kind}`);
}

export function deleteWebhook(services: WebhookServices, context: AccountForm): Response {
  const { account, form, notFound } = context;
  const id = webhookIdIn(context);
  const webhook = services.webhooks.find(account.id, id);
  if (webhook === undefined) return notFound();
  const host = hostOf(webhook);
  const deleteErrors = confirmErrors(form, host);
  if (deleteErrors) return webhookPage(services, context, { deleteErrors });
  services.webhooks.remove(byOf(context), id);
  return redirect(paths.webhooks(account.id), 'webhook-deleted');
}

/** Sends a test. A page with JavaScript stays where it is; without, the delivery's page shows how it ends. */
export function sendTest(services: WebhookServices, context: AccountForm): Response {
  const { account, request } = context;
  const id = webhookIdIn(context);
  const isPart = request.headers.get('hx-request') === 'true';
  const tested = services.webhooks.sendTest(byOf(context), id);
  switch (tested.kind) {
    case 'queued':
      return isPart
        ? redirect(`${paths.webhook(account.id, id)}?test=${tested.deliveryId}`)
        : redirect(paths.delivery(account.id, tested.deliveryId), 'test-queued');
    case 'webhook-paused':
    case 'over-rate':
      return webhookPage(services, context, { refusal: tested, ...(isPart && { status: 200 }) });
    case 'no-webhook':
      return context.notFound();
    default:
      return unreachable(tested);
  }
}

const SINCE = [{ value: '1h', label: 'Last hour', ms: HOUR_MS }, ...SPANS] as const;

/** Sends every delivery of a webhook once more that failed since an instant. */
export function resendFailed(services: WebhookServices, context: AccountForm): Response {
  const { account, form, notFound } = context;
  const id = webhookIdIn(context);
  const since = form.get('since') ?? '';
  if (!/^\d{1,15}$/.test(since)) return notFound();
  const resent = services.webhooks.resendAllFailed(byOf(context), id, Number(since));
  switch (resent.kind) {
    case 'due':
      return redirect(`${paths.deliveries(account.id)}?webhook=${id}`, 'deliveries-resent');
    case 'webhook-paused':
      return webhookPage(services, context, { refusal: resent });
    case 'no-webhook':
      return notFound();
    default:
      return unreachable(resent);
  }
}

/** How many deliveries that are, and since when. */
export function resendFailedPage(services: WebhookServices, context: AccountContext): Response {
  const { account, nowMs, url, show, notFound } = context;
  const id = webhookIdIn(context);
  const webhook = services.webhooks.find(account.id, id);
  if (webhook === undefined) return notFound();
  const wanted = url.searchParams.get('since');
  const chosen = SINCE.find(({ value }) => value === wanted) ?? SINCE[1];
  const sinceMs = nowMs - chosen.ms;
  const count = services.webhooks.failedSince(account.id, id, sinceMs);
  const path = paths.webhook(account.id, id);
  return show({
    title: 'Retry failed deliveries',
    crumbs: [
      { label: 'Webhooks', to: paths.webhooks(account.id) },
      { label: hostOf(webhook), to: path },
    ],
    body: (
      <Panel title="Failed deliveries">
        <Tabs
          label="Since"
          tabs={SINCE.map(({ value, label }) => ({
            label,
            to: `${path}/resend-failed?since=${value}`,
            isCurrent: value === chosen.value,
          }))}
        />
        <p>
          {count === 0 ? (
            'No failed deliveries to retry'
          ) : (
            <strong>{`${countText(count)} failed ${count === 1 ? 'delivery' : 'deliveries'}`}</strong>
          )}{' '}
          since <Time atMs={sinceMs} />.
          {count > 0 && ' Each is attempted once more, with the same ID and payload.'}
        </p>
        {webhook.pausedAtMs !== null && (
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
  });
}

/** Creates a new secret and shows it once. */
export function rotateSecret(services: WebhookServices, context: AccountForm): Response {
  const { form } = context;
  const id = webhookIdIn(context);
  const takeover = TAKEOVER_NAMES.find((name) => name === form.get('takes-over')) ?? '24h';
  const seen = form.get('seen') ?? '';
  const seenAtMs = /^\d{1,15}$/.test(seen) ? Number(seen) : 0;
  const rotated = services.webhooks.rotate(byOf(context), id, takeover, seenAtMs);
  switch (rotated.kind) {
    case 'rotated':
      return showSecret(context, { ...rotated, title: 'New signing secret' });
    case 'no-webhook':
      return context.notFound();
    case 'rotation-pending':
    case 'changed-meanwhile':
      return webhookPage(services, context, { refusal: rotated });
    default:
      return unreachable(rotated);
  }
}

export function completeRotation(services: WebhookServices, context: AccountForm): Response {
  const settled = services.webhooks.switchNow(byOf(context), webhookIdIn(context));
  return rotationSettled(services, context, settled, 'rotation-completed');
}

export function cancelRotation(services: WebhookServices, context: AccountForm): Response {
  const settled = services.webhooks.cancelRotation(byOf(context), webhookIdIn(context));
  return rotationSettled(services, context, settled, 'rotation-cancelled');
}

function rotationSettled(
  services: WebhookServices,
  context: AccountForm,
  settled: Settled,
  flash: FlashCode,
): Response {
  switch (settled.kind) {
    case 'settled':
      return redirect(paths.webhook(context.account.id, webhookIdIn(context)), flash);
    case 'no-webhook':
      return context.notFound();
    case 'no-rotation':
      return webhookPage(services, context, { refusal: settled });
    default:
      return unreachable(settled);
  }
}

type Made = Readonly<{ webhook: Webhook; secret: Secret; title: string }>;

/** The one page with a webhook's secret: the response to the form that created it, which no cache keeps. */
export function showSecret({ account, show }: AccountContext, { webhook, secret, title }: Made): Response {
  const { nextSecretAtMs } = webhook;
  return show({
    title,
    crumbs: [
      { label: 'Webhooks', to: paths.webhooks(account.id) },
      { label: hostOf(webhook), to: paths.webhook(account.id, webhook.id) },
    ],
    body: (
      <>
        <SecretBox
          name="signing secret"
          secret={secret.reveal()}
          kept="It is stored encrypted and can't be shown again. You can rotate it at any time."
        />
        {nextSecretAtMs !== null && (
          <p>
            It becomes active at <Time atMs={nextSecretAtMs} />. Until then, its signature is sent in{' '}
            <code>X-Service-Signature-Next</code>, alongside the signature of the old secret.
          </p>
        )}
        <div class="buttons">
          <ButtonLink to={paths.webhook(account.id, webhook.id)} kind="primary">
            I have saved it
          </ButtonLink>
        </div>
        <Panel title="Verify signatures">
          <p>
            Verify the signature over the raw bytes of the body before parsing it. Use the entire secret,
            including its prefix.
          </p>
          {VERIFIERS.map(({ language, code }, i) => (
            <details key={language} open={i === 0} class="snippet">
              <summary>{language}</summary>
              <CodeBlock id={`verifier-${i}`} label={`Verifier in ${language}`} text={code} />
            </details>
          ))}
        </Panel>
      </>
    ),
  });
}

type Verifier = Readonly<{ language: string; code: string }>;

const PAGE = '../../../../docs/webhooks.md';
/** A heading without its part in brackets, and the first code below it. */
const SECTION = /^### (.+?)(?: \(.*\))?\n(?:(?!###|```).*\n)*```\w+\n([\s\S]*?)```/gm;

/** The verifiers of the page for receivers, whose code runs in the tests. */
function readVerifiers(): readonly Verifier[] {
  const text = readFileSync(new URL(PAGE, import.meta.url), 'utf8');
  const part = text.slice(text.indexOf('\n## Verifiers'));
  return [...part.matchAll(SECTION)].map(([, language = '', code = '']) => ({
    language,
    code: code.trimEnd(),
  }));
}

const VERIFIERS = readVerifiers();

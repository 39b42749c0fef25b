/** @jsxImportSource preact */
import { readFileSync } from 'node:fs';
import type { Secret } from '../../../../shared/secret.ts';
import { CodeBlock, SecretBox } from '../../components/code.tsx';
import { countText, Time } from '../../components/format.tsx';
import { ButtonLink, confirmErrors, PostForm } from '../../components/forms.tsx';
import { Notice, Panel } from '../../components/panels.tsx';
import { Link, Tabs } from '../../components/links.tsx';
import { type AccountContext, type AccountForm, byOf } from '../../context.ts';
import type { WebhookServices } from '../../page-services.ts';
import { SPANS } from './deliveries.tsx';
import { TAKEOVER_NAMES, webhookIdIn, webhookPage } from './webhook.tsx';
import { hostOf, type PageRefusal } from './webhooks.tsx';
import { paths, redirect } from '../../paths.ts';
import { HOUR_MS } from '../../../usage/calendar.ts';
import type { Webhook } from '../../../webhooks/webhook.ts';

/** Changes without fields, each with its message. */
const CHANGES = {
  pause: 'webhook-paused',
  resume: 'webhook-resumed',
  switchNow: 'rotation-completed',
  cancelRotation: 'rotation-cancelled',
} as const;

/** The form that makes one of the changes above. */
export function changeWebhook(change: keyof typeof CHANGES) {
  return function changed(services: WebhookServices, context: AccountForm): Response {
    const id = webhookIdIn(context);
    const result = services.webhooks[change](byOf(context), id);
    return result.kind === 'no-webhook' || result.kind === 'no-rotation'
      ? refused(services, context, result)
      : redirect(paths.webhook(context.account.id, id), CHANGES[change]);
  };
}

function refused(
  services: WebhookServices,
  context: AccountForm,
  refusal: PageRefusal | Readonly<{ kind: 'no-webhook' }>,
): Response {
  return refusal.kind === 'no-webhook' ? context.notFound() : webhookPage(services, context, { refusal });
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
  if (tested.kind === 'queued')
    return isPart
      ? redirect(`${paths.webhook(account.id, id)}?test=${tested.deliveryId}`)
      : redirect(paths.delivery(account.id, tested.deliveryId), 'test-queued');
  if (tested.kind === 'no-webhook') return context.notFound();
  return webhookPage(services, context, { refusal: tested, ...(isPart && { head: {} }) });
}

const SINCE = [{ value: '1h', label: 'Last hour', ms: HOUR_MS }, ...SPANS] as const;

/** Sends every delivery of a webhook once more that failed since an instant. */
export function resendFailed(services: WebhookServices, context: AccountForm): Response {
  const { account, form } = context;
  const id = webhookIdIn(context);
  const since = form.get('since') ?? '';
  if (!/^\d{1,15}$/.test(since)) return context.notFound();
  const resent = services.webhooks.resendAllFailed(byOf(context), id, Number(since));
  return resent.kind === 'due'
    ? redirect(`${paths.deliveries(account.id)}?webhook=${id}`, 'deliveries-resent')
    : refused(services, context, resent);
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
      ['Webhooks', paths.webhooks(account.id)],
      [hostOf(webhook), path],
    ],
    body: (
      <Panel title="Failed deliveries">
        <Tabs
          label="Since"
          tabs={SINCE.map(({ value, label }) => [
            label,
            `${path}/resend-failed?since=${value}`,
            value === chosen.value,
          ])}
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
  return rotated.kind === 'rotated'
    ? showSecret(context, { ...rotated, title: 'New signing secret' })
    : refused(services, context, rotated);
}

type Made = Readonly<{ webhook: Webhook; secret: Secret; title: string }>;

/** The one page with a webhook's secret: the response to the form that created it, which no cache keeps. */
export function showSecret({ account, show }: AccountContext, { webhook, secret, title }: Made): Response {
  const { nextSecretAtMs } = webhook;
  return show({
    title,
    crumbs: [
      ['Webhooks', paths.webhooks(account.id)],
      [hostOf(webhook), paths.webhook(account.id, webhook.id)],
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
          <ButtonLink to={paths.webhook(account.id, webhook.id)} kind="primary" text="I have saved it" />
        </div>
        <Panel title="Verify signatures">
          <p>
            Verify the signature over the raw bytes of the body before parsing it. Use the entire secret,
            including its prefix.
          </p>
          {VERIFIERS.map(([language, code], i) => (
            <details open={i === 0} class="snippet">
              <summary>{language}</summary>
              <CodeBlock id={`verifier-${i}`} label={`Verifier in ${language}`} text={code} />
            </details>
          ))}
        </Panel>
      </>
    ),
  });
}

const PAGE = '../../../../docs/webhooks.md';
/** A heading without its part in brackets, and the first code below it. */
const SECTION = /^### (.+?)(?: \(.*\))?\n(?:(?!###|```).*\n)*```\w+\n([\s\S]*?)```/gm;

/** The verifiers of the page for receivers, whose code runs in the tests. */
const VERIFIERS = (() => {
  const text = readFileSync(new URL(PAGE, import.meta.url), 'utf8');
  const part = text.slice(text.indexOf('\n## Verifiers'));
  return [...part.matchAll(SECTION)].map(
    ([, language = '', code = '']) => [language, code.trimEnd()] as const,
  );
})();

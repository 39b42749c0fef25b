/** @jsxImportSource preact */
import { readFileSync } from 'node:fs';
import { unreachable } from '../../../../shared/brand.ts';
import type { Secret } from '../../../../shared/secret.ts';
import { byOf } from '../../by.ts';
import { CodeBlock, SecretBox } from '../../components/code.tsx';
import { countText, Time } from '../../components/format.tsx';
import { ButtonLink, Buttons, isConfirmed, PostForm, Submit } from '../../components/forms.tsx';
import { Notice } from '../../components/icons.tsx';
import { Link, Tabs } from '../../components/links.tsx';
import { Panel } from '../../components/panels.tsx';
import type { Action, AskedOfAccount } from '../../context.ts';
import type { WebhookPageDeps } from '../../page-services.ts';
import { showWebhook, TAKEOVER_NAMES } from './webhook.tsx';
import { hostOf } from './webhooks.tsx';
import { deliveriesPath, deliveryPath, webhookPath, webhooksPath } from '../../paths.ts';
import { seeOther } from '../../redirect.ts';
import type { Answers } from '../../router.ts';
import type { Webhook } from '../../../webhooks/webhook.ts';

/** Pauses a webhook or resumes it. */
export function toggleAction({ webhooks }: WebhookPageDeps, to: 'pause' | 'resume'): Action<AskedOfAccount> {
  return function toggle(asked) {
    const id = asked.params['webhookId'] ?? '';
    const toggled = webhooks[to](byOf(asked), id);
    switch (toggled.kind) {
      case 'paused':
        return seeOther(webhookPath(asked.account, id), 'webhook-paused');
      case 'resumed':
        return seeOther(webhookPath(asked.account, id), 'webhook-resumed');
      case 'no-webhook':
        return asked.notFound();
      default:
        return unreachable(toggled);
    }
  };
}

/** Deletes a webhook whose host was typed. */
export function deleteAction(deps: WebhookPageDeps): Action<AskedOfAccount> {
  return function deleteWebhook(asked) {
    const { account, form, notFound } = asked;
    const id = asked.params['webhookId'] ?? '';
    const webhook = deps.webhooks.find(account.id, id);
    if (webhook === undefined) return notFound();
    const host = hostOf(webhook);
    if (!isConfirmed(form, host))
      return showWebhook(deps, asked, id, { deleteErrors: { confirm: `That is not ${host}.` } });
    deps.webhooks.remove(byOf(asked), id);
    return seeOther(webhooksPath(account), 'webhook-deleted');
  };
}

/** Sends a test. A page with JavaScript stays where it is; without, the delivery's page shows how it ends. */
export function testAction(deps: WebhookPageDeps): Action<AskedOfAccount> {
  return function sendTest(asked) {
    const { account, params, request } = asked;
    const id = params['webhookId'] ?? '';
    const isPart = request.headers.get('hx-request') === 'true';
    const tested = deps.webhooks.sendTest(byOf(asked), id);
    switch (tested.kind) {
      case 'queued':
        return isPart
          ? seeOther(`${webhookPath(account, id)}?test=${tested.deliveryId}`)
          : seeOther(deliveryPath(account, tested.deliveryId), 'test-queued');
      case 'webhook-paused':
      case 'over-rate':
        return showWebhook(deps, asked, id, { refusal: tested, ...(isPart && { status: 200 }) });
      case 'no-webhook':
        return asked.notFound();
      default:
        return unreachable(tested);
    }
  };
}

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

/** Makes a new secret and shows it, this once. */
export function rotateAction(deps: WebhookPageDeps): Action<AskedOfAccount> {
  return function rotate(asked) {
    const { form, params } = asked;
    const id = params['webhookId'] ?? '';
    const takeover = TAKEOVER_NAMES.find((name) => name === form.get('takes-over')) ?? '24h';
    const seen = form.get('seen') ?? '';
    const seenAtMs = /^\d{1,15}$/.test(seen) ? Number(seen) : 0;
    const rotated = deps.webhooks.rotate(byOf(asked), id, takeover, seenAtMs);
    switch (rotated.kind) {
      case 'rotated':
        return showSecret(asked, { ...rotated, title: 'New secret' });
      case 'no-webhook':
        return asked.notFound();
      case 'rotation-pending':
      case 'changed-meanwhile':
        return showWebhook(deps, asked, id, { refusal: rotated });
      default:
        return unreachable(rotated);
    }
  };
}

/** Lets the waiting secret take over at once, or forgets it. */
export function settleAction(deps: WebhookPageDeps, to: 'switch' | 'cancel'): Action<AskedOfAccount> {
  const { switchNow, cancelRotation } = deps.webhooks;
  return function settle(asked) {
    const id = asked.params['webhookId'] ?? '';
    const settled = (to === 'switch' ? switchNow : cancelRotation)(byOf(asked), id);
    switch (settled.kind) {
      case 'settled':
        return seeOther(
          webhookPath(asked.account, id),
          to === 'switch' ? 'rotation-completed' : 'rotation-cancelled',
        );
      case 'no-webhook':
        return asked.notFound();
      case 'no-rotation':
        return showWebhook(deps, asked, id, { refusal: settled });
      default:
        return unreachable(settled);
    }
  };
}

type Made = Readonly<{ webhook: Webhook; secret: Secret; title: string }>;

/** The one page with a webhook's secret: the answer to the form that made it, which no cache keeps. */
export function showSecret({ account, show }: AskedOfAccount, { webhook, secret, title }: Made): Response {
  const { nextSecretAtMs } = webhook;
  return show({
    title,
    crumbs: [
      { label: 'Webhooks', to: webhooksPath(account) },
      { label: hostOf(webhook), to: webhookPath(account, webhook.id) },
    ],
    body: (
      <>
        <SecretBox
          name="signing secret"
          secret={secret.reveal()}
          kept="It is kept sealed, to sign with, and no page can show it again. A new one can be made at any time."
        />
        {nextSecretAtMs !== null && (
          <p>
            It takes over at <Time atMs={nextSecretAtMs} />. Until then it signs in{' '}
            <code>X-Service-Signature-Next</code>, beside the old one.
          </p>
        )}
        <Buttons>
          <ButtonLink to={webhookPath(account, webhook.id)} kind="primary">
            I have stored it
          </ButtonLink>
        </Buttons>
        <Panel title="Verify what arrives">
          <p>
            Check the signature over the raw bytes of the body before you parse it. The secret is used whole,
            prefix included.
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

/** A way to verify what arrives, in one language. */
export type Verifier = Readonly<{ language: string; code: string }>;

const PAGE = '../../../../docs/webhooks.md';
/** A heading without what stands in brackets, and the first code below it. */
const SECTION = /^### (.+?)(?: \(.*\))?\n(?:(?!###|```).*\n)*```\w+\n([\s\S]*?)```/gm;

/** The verifiers of the page for receivers, whose code runs in the tests. */
export function readVerifiers(): readonly Verifier[] {
  const text = readFileSync(new URL(PAGE, import.meta.url), 'utf8');
  const part = text.slice(text.indexOf('\n## Verifiers'));
  return [...part.matchAll(SECTION)].map(([, language = '', code = '']) => ({
    language,
    code: code.trimEnd(),
  }));
}

const VERIFIERS = readVerifiers();

/** @jsxImportSource preact */
import { unreachable } from '../../../../shared/brand.ts';
import type { Delivery } from '../../../webhooks/send-again.ts';
import type { Webhook } from '../../../webhooks/webhook.ts';
import type { Action, AskedOfAccount, Page, PageAccount } from '../../context.ts';
import { byOf } from '../../by.ts';
import { CodeBlock, CopyButton } from '../../components/code.tsx';
import { Facts, Live, Panel } from '../../components/panels.tsx';
import { PostForm, Submit } from '../../components/forms.tsx';
import { Link } from '../../components/links.tsx';
import { Notice } from '../../components/icons.tsx';
import { countText, Time } from '../../components/format.tsx';
import { seeOther } from '../../redirect.ts';
import type { WebhookPageDeps } from '../../page-services.ts';
import { deliveriesPath, deliveryPath, webhookPath } from '../../paths.ts';
import { type PageRefusal, refusalStatus, refusalText } from '../webhooks/refusal-text.ts';
import { WebhookUrl } from '../webhooks/shown-webhook.tsx';
import { curlOf } from './curl.ts';
import { DeliveryBadge, wordOf } from './outcome.tsx';
import { Timeline } from './timeline.tsx';

type Found = Readonly<{ delivery: Delivery; webhook: Webhook }>;

/** One delivery, on a page of its own or in the drawer: what was sent, when, and what came back. */
export function deliveryPage(deps: WebhookPageDeps): Page<AskedOfAccount> {
  return (asked) => showDelivery(deps, asked);
}

/** Sends a delivery once more. */
export function resendAction(deps: WebhookPageDeps): Action<AskedOfAccount> {
  return function resend(asked) {
    const { account, notFound } = asked;
    const found = find(deps, asked);
    if (found === undefined) return notFound();
    const { delivery, webhook } = found;
    const resent = deps.webhooks.resendOne(byOf(asked), webhook.id, delivery.id);
    switch (resent.kind) {
      case 'due':
        return seeOther(deliveryPath(account, delivery.id), 'delivery-resent');
      case 'no-delivery':
        return notFound();
      case 'already-due':
      case 'not-yet':
      case 'worn-out':
      case 'webhook-paused':
      case 'webhook-deleted':
        return showDelivery(deps, asked, resent);
      default:
        return unreachable(resent);
    }
  };
}

function find(
  { webhooks, deliveries }: WebhookPageDeps,
  { account, params }: AskedOfAccount,
): Found | undefined {
  const row = deliveries.find(account.id, params['deliveryId'] ?? '');
  const webhook = row && webhooks.find(account.id, row.webhookId);
  const delivery = webhook && webhooks.delivery(account.id, webhook.id, row.id);
  return delivery && { delivery, webhook };
}

function showDelivery(deps: WebhookPageDeps, asked: AskedOfAccount, refusal?: PageRefusal): Response {
  const { account, nowMs, viewer, show, notFound } = asked;
  const found = find(deps, asked);
  if (found === undefined) return notFound();
  const { delivery } = found;
  const path = deliveryPath(account, delivery.id);
  const isUnderWay = delivery.tries.at(-1)?.endedAtMs === null;
  const isMoving = delivery.finishedAtMs === null || delivery.resendAtMs !== null || isUnderWay;
  const timeline = (
    <Panel title="Attempts" aside={<State delivery={delivery} />}>
      <Timeline delivery={delivery} nowMs={nowMs} isOperator={viewer.role === 'operator'} />
    </Panel>
  );
  return show({
    title: `Delivery ${delivery.id.slice(0, 8)}`,
    ...(refusal && { status: refusalStatus(refusal) }),
    crumbs: [{ label: 'Deliveries', to: deliveriesPath(account) }],
    aside: (
      <PostForm action={`${path}/resend`} isInline>
        <Submit>Resend</Submit>
      </PostForm>
    ),
    body: (
      <>
        {refusal && <Notice tone="bad">{refusalText(refusal)}</Notice>}
        <About found={found} account={account} />
        {isMoving ? (
          <Live id="delivery" from={path} everySeconds={2}>
            {timeline}
          </Live>
        ) : (
          // The same part without its refresh: the one before is replaced by it once all is over.
          <div id="delivery">{timeline}</div>
        )}
        <Envelope delivery={delivery} />
      </>
    ),
  });
}

function State({
  delivery: { state, lastError, resendAtMs, finishedAtMs },
}: Readonly<{ delivery: Delivery }>) {
  return (
    <span class="badges">
      <DeliveryBadge state={state} />
      {state !== 'delivered' && lastError !== null && <span>{wordOf(lastError)}</span>}
      {finishedAtMs !== null && <Time atMs={finishedAtMs} />}
      {resendAtMs !== null && <span class="soft">An attempt by hand is queued.</span>}
    </span>
  );
}

function About({ found, account }: Readonly<{ found: Found; account: PageAccount }>) {
  const { delivery, webhook } = found;
  const { id, eventKind, label, programId, deploySlot, createdAtMs } = delivery;
  return (
    <Panel title="About">
      <Facts
        facts={[
          {
            label: 'Id',
            value: (
              <>
                <code id="delivery-id">{id}</code>
                <CopyButton of="delivery-id" label="Copy the id of the delivery" />
              </>
            ),
          },
          { label: 'Event', value: <code>{eventKind}</code> },
          ...(programId === null
            ? []
            : [
                {
                  label: 'Program',
                  value: (
                    <Link to={`/accounts/${account.id}/programs/${programId}`}>{label ?? programId}</Link>
                  ),
                },
              ]),
          ...(deploySlot === null ? [] : [{ label: 'Deploy slot', value: countText(deploySlot) }]),
          {
            label: 'Webhook',
            value: (
              <Link to={webhookPath(account, webhook.id)}>
                <WebhookUrl url={webhook.url} />
              </Link>
            ),
          },
          { label: 'Created', value: <Time atMs={createdAtMs} /> },
        ]}
      />
    </Panel>
  );
}

function Envelope({ delivery: { body, tries, finishedAtMs } }: Readonly<{ delivery: Delivery }>) {
  if (body === null)
    return (
      <Panel title="Envelope">
        <p>
          {finishedAtMs === null
            ? 'The event waits for the time of its block, and is sent as soon as that is known.'
            : 'It ended before its event was complete, so there is none.'}
        </p>
      </Panel>
    );
  const last = tries.findLast(({ requestHeadersJson }) => requestHeadersJson !== null);
  return (
    <Panel title="Envelope">
      <p class="soft">Printed over several lines to be read. What is signed and sent is one line.</p>
      <CodeBlock id="envelope" label="Envelope" text={pretty(body)} />
      {last && (
        <details class="snippet">
          <summary>As curl, with the headers of the last attempt</summary>
          <CodeBlock id="curl" label="Request as curl" text={curlOf(last, body)} />
        </details>
      )}
    </Panel>
  );
}

function pretty(body: Uint8Array): string {
  return JSON.stringify(JSON.parse(Buffer.from(body).toString('utf8')), null, 2);
}

/** @jsxImportSource preact */
import { useContext } from 'preact/hooks';
import { unreachable } from '../../../../shared/brand.ts';
import { CodeBlock, CopiedCode } from '../../components/code.tsx';
import { Ago, countText, Now, spanText, Time } from '../../components/format.tsx';
import { PostForm } from '../../components/forms.tsx';
import { Badge, Notice, StateBadge, type Tone } from '../../components/icons.tsx';
import { Link } from '../../components/links.tsx';
import { Facts, Live, Panel } from '../../components/panels.tsx';
import { type AccountContext, type AccountForm, byOf, type PageAccount } from '../../context.ts';
import type { WebhookServices } from '../../page-services.ts';
import {
  ResponseBody,
  attemptText,
  attemptWord,
  curlOf,
  PhaseBars,
  sentHeaders,
  STATE_WORDS,
  wordOf,
} from './attempt.tsx';
import { type PageRefusal, refusalStatus, refusalText, WebhookUrl } from './webhooks.tsx';
import { paths } from '../../paths.ts';
import { redirect } from '../../redirect.ts';
import { ATTEMPTS_MAX, RETRY_DELAYS_MS } from '../../../outbox/outcome.ts';
import type { Delivery, AttemptRow } from '../../../outbox/list.ts';
import type { Webhook } from '../../../webhooks/webhook.ts';

type Found = Readonly<{ delivery: Delivery; webhook: Webhook }>;

export function resendDelivery(services: WebhookServices, context: AccountForm): Response {
  const { account, notFound } = context;
  const found = find(services, context);
  if (found === undefined) return notFound();
  const { delivery, webhook } = found;
  const resent = services.webhooks.resendOne(byOf(context), webhook.id, delivery.id);
  switch (resent.kind) {
    case 'due':
      return redirect(paths.delivery(account.id, delivery.id), 'delivery-resent');
    case 'no-delivery':
      return notFound();
    case 'already-due':
    case 'not-yet':
    case 'worn-out':
    case 'webhook-paused':
      return deliveryPage(services, context, resent);
    default:
      return unreachable(resent);
  }
}

function find(
  { webhooks, deliveries }: WebhookServices,
  { account, params }: AccountContext,
): Found | undefined {
  const delivery = deliveries.find(account.id, params['deliveryId'] ?? '');
  const webhook = delivery && webhooks.find(account.id, delivery.webhookId);
  return webhook && { delivery, webhook };
}

/**
 * One delivery, on a page of its own or in the drawer: what was sent, when, and what came back; also with why it was not
 * resent.
 */
export function deliveryPage(
  services: WebhookServices,
  context: AccountContext,
  refusal?: PageRefusal,
): Response {
  const { account, viewer, show, notFound } = context;
  const found = find(services, context);
  if (found === undefined) return notFound();
  const { delivery } = found;
  const path = paths.delivery(account.id, delivery.id);
  const isUnderWay = delivery.tries.at(-1)?.endedAtMs === null;
  const isMoving = delivery.finishedAtMs === null || delivery.resendAtMs !== null || isUnderWay;
  return show({
    title: `Delivery ${delivery.id.slice(0, 8)}`,
    status: refusal && refusalStatus(refusal),
    crumbs: [{ label: 'Deliveries', to: paths.deliveries(account.id) }],
    aside: <PostForm action={`${path}/resend`} button="Resend" isInline />,
    body: (
      <>
        {refusal && <Notice tone="bad">{refusalText(refusal)}</Notice>}
        <About found={found} account={account} />
        <Live id="delivery" from={path} everySeconds={2} isOver={!isMoving}>
          <Panel title="Attempts" aside={<State delivery={delivery} />}>
            <Timeline delivery={delivery} isOperator={viewer.role === 'operator'} />
          </Panel>
        </Live>
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
      <StateBadge of={STATE_WORDS[state]} />
      {state !== 'delivered' && lastError !== null && <span>{wordOf(lastError)}</span>}
      {finishedAtMs !== null && <Time atMs={finishedAtMs} />}
      {resendAtMs !== null && <span class="soft">A manual attempt is queued.</span>}
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
          ['ID', <CopiedCode id="delivery-id" text={id} label="Copy delivery ID" />],
          ['Event', <code>{eventKind}</code>],
          programId !== null && [
            'Program',
            <Link to={paths.program(account.id, programId)}>{label ?? programId}</Link>,
          ],
          deploySlot !== null && ['Deploy slot', countText(deploySlot)],
          [
            'Webhook',
            <Link to={paths.webhook(account.id, webhook.id)}>
              <WebhookUrl url={webhook.url} />
            </Link>,
          ],
          ['Created', <Time atMs={createdAtMs} />],
        ]}
      />
    </Panel>
  );
}

function Envelope({ delivery: { body, tries, finishedAtMs } }: Readonly<{ delivery: Delivery }>) {
  if (body === null)
    return (
      <Panel title="Payload">
        <p>
          {finishedAtMs === null
            ? 'The event is sent as soon as the time of its block is known.'
            : 'None: the delivery ended before its event was complete.'}
        </p>
      </Panel>
    );
  const last = tries.findLast(({ requestHeadersJson }) => requestHeadersJson !== null);
  return (
    <Panel title="Payload">
      <p class="soft">Formatted for reading; signed and sent as one line.</p>
      <CodeBlock id="payload" label="Payload" text={pretty(body)} />
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

const ATTEMPT_TONES: Readonly<Record<AttemptRow['state'], Tone>> = {
  started: 'waiting',
  succeeded: 'good',
  failed: 'bad',
  interrupted: 'warning',
  blocked: 'bad',
};

type TimelineProps = Readonly<{
  delivery: Delivery;
  /** Operators see more. */
  isOperator: boolean;
}>;

/** Every attempt of a delivery, and those that are still to come by the fixed schedule. */
function Timeline({ delivery, isOperator }: TimelineProps) {
  const { tries } = delivery;
  return (
    <ol class="timeline">
      {tries.map((attempt, i) => (
        <li key={attempt.n} class={`tone-${ATTEMPT_TONES[attempt.state]}`}>
          <Attempt {...{ attempt, delivery, isOperator }} isOpen={i === tries.length - 1} />
        </li>
      ))}
      <Coming delivery={delivery} />
    </ol>
  );
}

type AttemptProps = Readonly<{
  attempt: AttemptRow;
  delivery: Delivery;
  isOpen: boolean;
  isOperator: boolean;
}>;

function Attempt({ attempt, delivery, isOpen, isOperator }: AttemptProps) {
  const { n, startedAtMs, signedAt, remoteAddress, url, phasesJson, detail } = attempt;
  return (
    <details id={`attempt-${n}`} open={isOpen}>
      <summary>
        <span class="timeline-title">{titleOf(attempt)}</span>
        <Badge tone={ATTEMPT_TONES[attempt.state]}>{attemptWord(attempt)}</Badge>
        <Time atMs={startedAtMs} />
      </summary>
      <Facts
        facts={[
          ['Outcome', attemptText(attempt)],
          ['Trigger', triggerOf(attempt, delivery)],
          ['URL', <code>{url}</code>],
          remoteAddress !== null && ['Remote address', <code>{remoteAddress}</code>],
          ['Signed at', <Time atMs={signedAt * 1_000} />],
          isOperator && detail !== null && ['Details (operators only)', detail],
        ]}
      />
      {phasesJson !== null && <PhaseBars phasesJson={phasesJson} />}
      <Headers id={`sent-${n}`} label="Request headers" lines={sentHeaders(attempt)} />
      {attempt.answerHeadersJson !== null && (
        <>
          <Headers
            id={`answer-headers-${n}`}
            label="Response headers"
            lines={JSON.parse(attempt.answerHeadersJson)}
          />
          <ResponseBody id={`answer-${n}`} attempt={attempt} />
        </>
      )}
    </details>
  );
}

function Headers({
  id,
  label,
  lines,
}: Readonly<{ id: string; label: string; lines: readonly (readonly [string, string])[] }>) {
  if (lines.length === 0) return null;
  return (
    <>
      <p class="soft">{label}</p>
      <CodeBlock id={id} label={label} text={lines.map(([name, value]) => `${name}: ${value}`).join('\n')} />
    </>
  );
}

function titleOf({ number, n }: AttemptRow): string {
  return number === null ? `Resend (${n})` : `Attempt ${number} of ${ATTEMPTS_MAX}`;
}

function triggerOf({ trigger }: AttemptRow, { eventKind }: Delivery): string {
  if (trigger === 'manual') return 'Manual';
  return eventKind === 'ping' ? 'Test' : 'Automatic';
}

/** What follows if every attempt fails; nothing once the delivery has come to its end. */
function Coming({ delivery }: Readonly<{ delivery: Delivery }>) {
  const nowMs = useContext(Now);
  const { attempts, nextAttemptAtMs, finishedAtMs } = delivery;
  if (finishedAtMs !== null) return null;
  const numbers = Array.from({ length: ATTEMPTS_MAX - attempts }, (_, i) => attempts + 1 + i);
  return (
    <>
      {numbers.map((number) => (
        <li key={number} class="timeline-coming">
          <span class="timeline-title">
            Attempt {number} of {ATTEMPTS_MAX}
          </span>
          {number === attempts + 1 && nextAttemptAtMs !== null ? (
            <span>
              Due <Ago atMs={Math.max(nextAttemptAtMs, nowMs)} />
            </span>
          ) : (
            <span>{delayText(number)}</span>
          )}
        </li>
      ))}
    </>
  );
}

function delayText(number: number): string {
  const delayMs = RETRY_DELAYS_MS[number - 2];
  return delayMs === undefined ? 'Immediately' : `${spanText(delayMs)} after attempt ${number - 1} fails`;
}

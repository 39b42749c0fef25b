/** @jsxImportSource preact */
import { CodeBlock, CopiedCode } from '../../components/code.tsx';
import { Ago, countText, spanText, Time } from '../../components/format.tsx';
import { PostForm } from '../../components/forms.tsx';
import { Badge, factList, Live, Notice, Panel, StateBadge, type Tone } from '../../components/panels.tsx';
import { Link } from '../../components/links.tsx';
import { accountPage } from '../../page.ts';
import {
  attemptText,
  attemptWord,
  curlOf,
  phaseBars,
  responseBody,
  sentHeaders,
  STATE_WORDS,
  wordOf,
} from './deliveries.tsx';
import { refusalOf, WebhookUrl } from './webhooks.tsx';
import { ACCOUNT, paths, redirect } from '../../paths.ts';
import { ATTEMPTS_MAX, RETRY_DELAYS_MS } from '../../../outbox/delivery-state.ts';
import type { Delivery, AttemptRow } from '../../../outbox/list.ts';
import type { Webhook } from '../../../webhooks/webhook.ts';

/** One delivery, on a page of its own or in the drawer. */
export const deliveryPage = accountPage({
  path: paths.delivery(ACCOUNT, ':deliveryId'),
  find({ webhooks, deliveries }, { account, params }): Found | undefined {
    const delivery = deliveries.find(account.id, params['deliveryId'] ?? '');
    const webhook = delivery && webhooks.find(account.id, delivery.webhookId);
    return webhook && { delivery, webhook };
  },
  show(_, { account, viewer, nowMs, returned }, found) {
    const { delivery } = found;
    const { tries } = delivery;
    const isUnderWay = tries.at(-1)?.endedAtMs === null;
    const isMoving = delivery.finishedAtMs === null || delivery.resendAtMs !== null || isUnderWay;
    return {
      title: `Delivery ${delivery.id.slice(0, 8)}`,
      crumbs: [['Deliveries', paths.deliveries(account.id)]],
      aside: (
        <PostForm action={`${paths.delivery(account.id, delivery.id)}/resend`} button="Resend" isInline />
      ),
      body: [
        returned && <Notice tone="bad">{returned.notice}</Notice>,
        aboutPanel(found, account.id),
        <Live id="delivery" everySeconds={2} isOver={!isMoving}>
          <Panel title="Attempts" aside={stateBadges(delivery)}>
            <ol class="timeline">
              {tries.map((attempt, i) => (
                <li class={`tone-${ATTEMPT_TONES[attempt.state]}`}>
                  {attemptDetails(attempt, delivery, i === tries.length - 1, viewer.role === 'operator')}
                </li>
              ))}
              {comingAttempts(delivery, nowMs)}
            </ol>
          </Panel>
        </Live>,
        payloadPanel(delivery),
      ],
    };
  },
  forms: {
    '/resend'({ webhooks }, { account, by }, { delivery, webhook }) {
      const resent = webhooks.resendOne(by, webhook.id, delivery.id);
      return resent.kind === 'due'
        ? redirect(paths.delivery(account.id, delivery.id), 'delivery-resent')
        : refusalOf(resent);
    },
  },
});

type Found = Readonly<{ delivery: Delivery; webhook: Webhook }>;

function stateBadges({ state, lastError, resendAtMs, finishedAtMs }: Delivery) {
  return (
    <span class="badges">
      <StateBadge of={STATE_WORDS[state]} />
      {state !== 'delivered' && lastError !== null && <span>{wordOf(lastError)}</span>}
      {finishedAtMs !== null && <Time atMs={finishedAtMs} />}
      {resendAtMs !== null && <span class="soft">A manual attempt is queued.</span>}
    </span>
  );
}

function aboutPanel({ delivery, webhook }: Found, accountId: number) {
  const { id, eventKind, label, programId, deploySlot, createdAtMs } = delivery;
  return (
    <Panel title="About">
      {factList([
        ['ID', <CopiedCode id="delivery-id" text={id} label="Copy delivery ID" />],
        ['Event', <code>{eventKind}</code>],
        programId !== null && [
          'Program',
          <Link to={paths.program(accountId, programId)}>{label ?? programId}</Link>,
        ],
        deploySlot !== null && ['Deploy slot', countText(deploySlot)],
        [
          'Webhook',
          <Link to={paths.webhook(accountId, webhook.id)}>
            <WebhookUrl url={webhook.url} />
          </Link>,
        ],
        ['Created', <Time atMs={createdAtMs} />],
      ])}
    </Panel>
  );
}

function payloadPanel({ body, tries, finishedAtMs }: Delivery) {
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
      <CodeBlock
        id="payload"
        label="Payload"
        text={JSON.stringify(JSON.parse(Buffer.from(body).toString('utf8')), null, 2)}
      />
      {last && (
        <details class="snippet">
          <summary>As curl, with the headers of the last attempt</summary>
          <CodeBlock id="curl" label="Request as curl" text={curlOf(last, body)} />
        </details>
      )}
    </Panel>
  );
}

const ATTEMPT_TONES: Readonly<Record<AttemptRow['state'], Tone>> = {
  started: 'waiting',
  succeeded: 'good',
  failed: 'bad',
  interrupted: 'warning',
  blocked: 'bad',
};

/** An attempt with what was sent and what came back; operators see more. */
function attemptDetails(attempt: AttemptRow, { eventKind }: Delivery, isOpen: boolean, isOperator: boolean) {
  const { n, number, trigger, startedAtMs, signedAt, remoteAddress, url, phasesJson, detail } = attempt;
  const cause = trigger === 'manual' ? 'Manual' : eventKind === 'ping' ? 'Test' : 'Automatic';
  return (
    <details id={`attempt-${n}`} open={isOpen}>
      <summary>
        <span class="timeline-title">
          {number === null ? `Resend (${n})` : `Attempt ${number} of ${ATTEMPTS_MAX}`}
        </span>
        <Badge tone={ATTEMPT_TONES[attempt.state]}>{attemptWord(attempt)}</Badge>
        <Time atMs={startedAtMs} />
      </summary>
      {factList([
        ['Outcome', attemptText(attempt)],
        ['Trigger', cause],
        ['URL', <code>{url}</code>],
        remoteAddress !== null && ['Remote address', <code>{remoteAddress}</code>],
        ['Signed at', <Time atMs={signedAt * 1_000} />],
        isOperator && detail !== null && ['Details (operators only)', detail],
      ])}
      {phasesJson !== null && phaseBars(phasesJson)}
      {headerBlock(`sent-${n}`, 'Request headers', sentHeaders(attempt))}
      {attempt.answerHeadersJson !== null && (
        <>
          {headerBlock(`answer-headers-${n}`, 'Response headers', JSON.parse(attempt.answerHeadersJson))}
          {responseBody(`answer-${n}`, attempt)}
        </>
      )}
    </details>
  );
}

function headerBlock(id: string, label: string, lines: readonly (readonly [string, string])[]) {
  if (lines.length === 0) return null;
  return (
    <>
      <p class="soft">{label}</p>
      <CodeBlock id={id} label={label} text={lines.map(([name, value]) => `${name}: ${value}`).join('\n')} />
    </>
  );
}

/** Lists the attempts that follow if every one fails; none once the delivery has come to its end. */
function comingAttempts({ attempts, nextAttemptAtMs, finishedAtMs }: Delivery, nowMs: number) {
  if (finishedAtMs !== null) return null;
  const numbers = Array.from({ length: ATTEMPTS_MAX - attempts }, (_, i) => attempts + 1 + i);
  return numbers.map((number) => {
    const delay = RETRY_DELAYS_MS[number - 2];
    return (
      <li class="timeline-coming">
        <span class="timeline-title">
          Attempt {number} of {ATTEMPTS_MAX}
        </span>
        {number === attempts + 1 && nextAttemptAtMs !== null ? (
          <span>
            Due <Ago atMs={Math.max(nextAttemptAtMs, nowMs)} />
          </span>
        ) : (
          <span>
            {delay === undefined ? 'Immediately' : `${spanText(delay)} after attempt ${number - 1} fails`}
          </span>
        )}
      </li>
    );
  });
}

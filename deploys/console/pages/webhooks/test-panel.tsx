/** @jsxImportSource preact */
import type { Delivery } from '../../../webhooks/send-again.ts';
import type { PageAccount } from '../../context.ts';
import { deliveryPath, ownPath } from '../../paths.ts';
import { Link } from '../../components/links.tsx';
import { Notice } from '../../components/icons.tsx';
import { latencyText } from '../../components/format.tsx';
import { Submit } from '../../components/forms.tsx';
import { AnswerBody } from '../deliveries/answer-body.tsx';
import { attemptText } from '../deliveries/outcome.tsx';
import { WEBHOOK_STATS_ID } from './webhook-stats.tsx';

/** How long the page waits for the attempt of a test; an attempt takes 13 s at most. */
const WAITED_MS = 13_000;

/** The parts of a webhook's page that tell of its deliveries: they come along with each answer on the test. */
export const PARTS_OF_TEST = { about: 'webhook-about', recent: 'webhook-recent' } as const;
const COMES_ALONG = [WEBHOOK_STATS_ID, ...Object.values(PARTS_OF_TEST)].map((id) => `#${id}`).join(',');

/**
 * The button that sends a test; with JavaScript its result comes into `TestResult` beside it. A second press meanwhile
 * is dropped; the button is not disabled, because the focus of whoever uses the keyboard would be lost.
 */
export function TestForm({ path }: Readonly<{ path: string }>) {
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

/** How a test ended. While it has not, the page asks again every second. */
export function TestResult({ path, account, delivery, nowMs }: ResultProps) {
  if (delivery === undefined) return <div id="test-result" />;
  const attempt = delivery.tries.at(-1);
  const link = <Link to={deliveryPath(account, delivery.id)}>See the delivery</Link>;
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
          <AnswerBody id="test-answer" attempt={attempt} />
        )}
      </div>
    );
  if (nowMs - delivery.createdAtMs > WAITED_MS)
    return (
      <div id="test-result" role="status">
        <Notice tone="waiting">
          <p>The test waits for its turn still. {link}</p>
        </Notice>
      </div>
    );
  return (
    <div
      id="test-result"
      role="status"
      hx-get={ownPath(`${path}?test=${delivery.id}`)}
      hx-trigger="load delay:1s"
      hx-select="#test-result"
      hx-select-oob={COMES_ALONG}
      hx-swap="outerHTML"
    >
      <Notice tone="waiting">
        <p>Test sent. Waiting for the answer, at most 13 seconds … {link}</p>
      </Notice>
    </div>
  );
}

/** @jsxImportSource preact */
import { ATTEMPTS_MAX, RETRY_DELAYS_MS } from '../../../delivery/schedule.ts';
import type { AttemptRow } from '../../../outbox/list.ts';
import type { Delivery } from '../../../webhooks/send-again.ts';
import { Badge, type Tone } from '../../components/icons.tsx';
import { CodeBlock } from '../../components/code.tsx';
import { Facts } from '../../components/panels.tsx';
import { Ago, spanText, Time } from '../../components/format.tsx';
import { AnswerBody } from './answer-body.tsx';
import { sentHeaders } from './curl.ts';
import { attemptText, attemptWord } from './outcome.tsx';
import { PhaseBars } from './phase-bars.tsx';

const TONES: Readonly<Record<AttemptRow['state'], Tone>> = {
  started: 'waiting',
  succeeded: 'good',
  failed: 'bad',
  interrupted: 'warning',
  blocked: 'bad',
};

type TimelineProps = Readonly<{
  delivery: Delivery;
  nowMs: number;
  /** What is said to operators alone. */
  isOperator: boolean;
}>;

/** Every attempt of a delivery, and those that are still to come by the fixed schedule. */
export function Timeline({ delivery, nowMs, isOperator }: TimelineProps) {
  const { tries } = delivery;
  return (
    <ol class="timeline">
      {tries.map((attempt, i) => (
        <li key={attempt.n} class={`tone-${TONES[attempt.state]}`}>
          <Attempt {...{ attempt, delivery, isOperator }} isOpen={i === tries.length - 1} />
        </li>
      ))}
      <Coming delivery={delivery} nowMs={nowMs} />
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
        <Badge tone={TONES[attempt.state]}>{attemptWord(attempt)}</Badge>
        <Time atMs={startedAtMs} />
      </summary>
      <Facts
        facts={[
          { label: 'Outcome', value: attemptText(attempt) },
          { label: 'Trigger', value: triggerOf(attempt, delivery) },
          { label: 'URL', value: <code>{url}</code> },
          ...(remoteAddress === null
            ? []
            : [{ label: 'Remote address', value: <code>{remoteAddress}</code> }]),
          { label: 'Signed at', value: <Time atMs={signedAt * 1_000} /> },
          ...(isOperator && detail !== null ? [{ label: 'For operators', value: detail }] : []),
        ]}
      />
      {phasesJson !== null && <PhaseBars phasesJson={phasesJson} />}
      <Headers id={`sent-${n}`} label="Headers as sent" lines={sentHeaders(attempt)} />
      {attempt.answerHeadersJson !== null && (
        <>
          <Headers
            id={`answer-headers-${n}`}
            label="Headers of the answer"
            lines={JSON.parse(attempt.answerHeadersJson)}
          />
          <AnswerBody id={`answer-${n}`} attempt={attempt} />
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
  if (trigger === 'manual') return 'manual: asked for by hand';
  return eventKind === 'ping' ? 'test' : 'auto';
}

/** What follows if every attempt fails; nothing once the delivery has come to its end. */
function Coming({ delivery, nowMs }: Readonly<{ delivery: Delivery; nowMs: number }>) {
  const { state, attempts, nextAttemptAtMs, finishedAtMs } = delivery;
  if (finishedAtMs !== null) return null;
  const isUnderWay = state === 'attempting';
  const first = isUnderWay ? attempts : attempts + 1;
  const numbers = Array.from({ length: ATTEMPTS_MAX }, (_, i) => i + 1).filter((number) =>
    isUnderWay ? number > first : number >= first,
  );
  return (
    <>
      {numbers.map((number) => (
        <li key={number} class="timeline-coming">
          <span class="timeline-title">
            Attempt {number} of {ATTEMPTS_MAX}
          </span>
          {number === attempts + 1 && nextAttemptAtMs !== null ? (
            <span>
              due <Ago atMs={Math.max(nextAttemptAtMs, nowMs)} nowMs={nowMs} />
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
  return delayMs === undefined ? 'at once' : `${spanText(delayMs)} after attempt ${number - 1} fails`;
}

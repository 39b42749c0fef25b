/** @jsxImportSource preact */
import { SEND_TEXTS } from '../../../delivery/send-texts.ts';
import type { DeliveryState } from '../../../outbox/after-attempt.ts';
import type { AttemptRow } from '../../../outbox/list.ts';
import { Badge, type Tone } from '../../components/icons.tsx';

/** The states of a delivery with what they are called and how they look. */
export const STATE_WORDS: Readonly<Record<DeliveryState, readonly [text: string, tone: Tone]>> = {
  queued: ['queued', 'waiting'],
  attempting: ['attempting', 'waiting'],
  retry_scheduled: ['retrying', 'warning'],
  delivered: ['delivered', 'good'],
  failed: ['failed', 'bad'],
  skipped: ['skipped', 'quiet'],
  cancelled: ['cancelled', 'quiet'],
};

/** A delivery's state. */
export function DeliveryBadge({ state }: Readonly<{ state: DeliveryState }>) {
  const [text, tone] = STATE_WORDS[state];
  return <Badge tone={tone}>{text}</Badge>;
}

type OutcomeProps = Readonly<{ state: DeliveryState; status: number | null; error: string | null }>;

/** A delivery's state with the word of its last attempt: a status or an error. */
export function AttemptOutcome({ state, status, error }: OutcomeProps) {
  const [text, tone] = STATE_WORDS[state];
  const word = status ?? (state === 'delivered' ? undefined : error);
  return (
    <Badge tone={tone}>
      {text}
      {word !== undefined && word !== null && `, ${wordOf(String(word))}`}
    </Badge>
  );
}

/** A status or an error in a word: `503`, `timeout`, `dns error`. */
export function wordOf(word: string): string {
  return word.replace(/^http_/, '').replaceAll('_', ' ');
}

/** What an attempt came to, in a word or two. */
export function attemptWord({ state, status, error }: AttemptRow): string {
  if (status !== null) return String(status);
  if (error !== null) return wordOf(error);
  return state === 'started' ? 'under way' : state;
}

/** What an attempt came to, in a sentence. */
export function attemptText({ state, status, error }: AttemptRow): string {
  if (state === 'started') return 'Under way';
  if (status !== null)
    return state === 'succeeded' ? `Answered ${status}` : `Answered ${status}, which is no success`;
  if (state === 'interrupted') return 'Nobody knows how it ended: the service was stopped. It is made again';
  if (error !== null && Object.hasOwn(SEND_TEXTS, error)) return SEND_TEXTS[error as keyof typeof SEND_TEXTS]; // just looked up
  return error === null ? 'Failed' : wordOf(error);
}

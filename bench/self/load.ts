import { join } from 'node:path';
import { systemClock } from '../../shared/clock.ts';
import { ROOT } from '../../test/started/process.ts';
import { percentile } from './statistics.ts';

/** What can come of a request. `lost`: its connection ended, or nothing came. `strange`: the answer contradicts itself. */
export const OUTCOMES = [
  'answered',
  'over-rate',
  'out-of-credits',
  'credits-unavailable',
  'key-unavailable',
  'no-backend',
  'lost',
  'strange',
] as const;
export type Outcome = (typeof OUTCOMES)[number];

/** Numbers of one answer: when it was sent and how long it took in milliseconds, its outcome, and its body's place. */
export const ANSWER_FIELDS = 4;

/** One request and what came of it. */
export type Answer = Readonly<{ sentMs: number; tookMs: number; outcome: Outcome; body: number }>;

/** Answers of a load, in the order of their sending. */
export type Answers = readonly Answer[];

/** Reads what the load generator gave. */
export function answersFrom(numbers: Float32Array): Answers {
  const answers: Answer[] = [];
  for (let i = 0; i + ANSWER_FIELDS <= numbers.length; i += ANSWER_FIELDS) {
    const [sentMs = 0, tookMs = 0, index = 0, body = 0] = numbers.subarray(i, i + ANSWER_FIELDS);
    answers.push({ sentMs, tookMs, outcome: OUTCOMES[index] ?? 'strange', body });
  }
  return answers.toSorted((a, b) => a.sentMs - b.sentMs);
}

/** Answers to what was sent from `fromMs` on and before `untilMs`. */
export function within(answers: Answers, fromMs: number, untilMs: number): Answers {
  return answers.filter(({ sentMs }) => sentMs >= fromMs && sentMs < untilMs);
}

/** How many came to each outcome; those that none came to are left out. */
export function outcomes(answers: Answers): Partial<Record<Outcome, number>> {
  const counts: Partial<Record<Outcome, number>> = {};
  for (const { outcome } of answers) counts[outcome] = (counts[outcome] ?? 0) + 1;
  return counts;
}

/** How many were let in. */
export function admitted(answers: Answers): number {
  return outcomes(answers).answered ?? 0;
}

/** The most that was let in among what was sent in any `spanMs`, from `fromMs` on. */
export function mostWithin(answers: Answers, spanMs: number, fromMs: number): number {
  const sent = answers.filter(({ outcome, sentMs }) => outcome === 'answered' && sentMs >= fromMs);
  let [most, first] = [0, 0];
  for (const [i, { sentMs }] of sent.entries()) {
    while ((sent[first]?.sentMs ?? 0) <= sentMs - spanMs) first++;
    most = Math.max(most, i - first + 1);
  }
  return most;
}

/** The 99th percentile of how long answers took, in milliseconds; lost ones apart. */
export function slowMs(answers: Answers): number {
  const answered = answers.filter(({ outcome }) => outcome !== 'lost');
  return percentile(
    answered.map(({ tookMs }) => tookMs),
    0.99,
  );
}

/** What the load generator is told, as JSON in its only argument: its key, or of how many accounts; keys and bodies take turns. */
export type Offer = Readonly<{
  url: string;
  key: string | number;
  bodies: readonly string[];
  /** Requests a second, evenly spaced, as far as there are idle connections: a request that finds none is not made up for. */
  perSecond: number;
  connections: number;
  seconds: number;
  /** When the first request is sent, on the wall clock; at once when absent or past. Connections are made before. */
  startMs?: number;
}>;

/** A load generator has started and connected by then, unless the machine is busy. */
const SOON_MS = 800;
const LATE_MS = 30_000;

/** The instant, on the wall clock, at which a load that is started now may send its first request. */
export function soonMs(): number {
  return systemClock.now() + SOON_MS;
}

/** Resolves at an instant of the wall clock, or when `signal` aborts. */
export function at(wallMs: number, signal: AbortSignal): Promise<void> {
  return systemClock.sleep(Math.max(0, wallMs - systemClock.now()), signal);
}

/** Runs the load generator in a process of its own; gives all answers when it has ended. */
export async function offering(offer: Offer, signal: AbortSignal): Promise<Answers> {
  const child = Bun.spawn([process.execPath, join(ROOT, 'bench/self/offer.ts'), JSON.stringify(offer)], {
    stdin: 'pipe',
    stdout: 'pipe',
    signal,
    timeout: 1_000 * offer.seconds + LATE_MS,
  });
  const bytes = await child.stdout.bytes();
  if ((await child.exited) !== 0) throw new Error('the load generator failed');
  return answersFrom(new Float32Array(bytes.slice().buffer));
}

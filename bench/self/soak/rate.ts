import { admitted, type Answers, mostWithin, outcomes, slowMs, within } from '../answers.ts';
import { offering } from '../offering.ts';
import { atLeast, atMost, exactly, type Finding, said } from './finding.ts';
import { CALL, type Centre, startSubject } from './subject.ts';

/** Gateway processes that share the rate. */
const PROCESSES = 4;
/** Times the rate that is offered. */
const TIMES = 10;
/** What the first burst takes to be spent. */
const SETTLE_MS = 2_000;
const WINDOW_MS = 10_000;

type RateLoad = Readonly<{ centre: Centre; rps: number; seconds: number }>;

/** Ten times the rate of a plan whose burst is one second of it, over four processes (limits.md 5, rows 1 and 3). */
export async function rate({ centre, rps, seconds }: RateLoad, signal: AbortSignal): Promise<Answers> {
  const extra = `[plans.under-load]\nrps = ${rps}\nburst = ${rps}\n`;
  await using subject = await startSubject({ processes: PROCESSES, extra, centre });
  const { crew } = subject;
  const load = { perSecond: TIMES * rps, connections: 64, seconds };
  // Awaited here, or all would be put away before the load.
  return await offering({ url: crew.url.href, key: crew.key('under-load'), bodies: [CALL], ...load }, signal);
}

/** The envelope of limits.md 3.2: one burst, the rate, and once the debt of each process. */
export function envelope(answers: Answers, { rps, seconds }: RateLoad): readonly Finding[] {
  const debt = PROCESSES * Math.max(1, Math.ceil(0.02 * rps));
  const counts = outcomes(answers);
  const other = answers.length - admitted(answers) - (counts['over-rate'] ?? 0);
  return [
    atMost('admitted in all', admitted(answers), rps + rps * seconds + debt),
    exactly('neither answered nor 429', other, 0),
  ];
}

/** The rate when the burst is spent, in every ten seconds and, where a second has many calls, in every second. */
export function steadiness(answers: Answers, { rps, seconds }: RateLoad): readonly Finding[] {
  const windows = [];
  for (let fromMs = SETTLE_MS; fromMs + WINDOW_MS <= 1_000 * seconds; fromMs += 1_000)
    windows.push((1_000 * admitted(within(answers, fromMs, fromMs + WINDOW_MS))) / (rps * WINDOW_MS));
  // Of each process a call that belongs before a window, or behind it, may be let in within it.
  const whole = rps * (WINDOW_MS / 1_000);
  const least = 0.98 - PROCESSES / whole;
  const highest = 1.01 + PROCESSES / whole;
  const most = mostWithin(answers, 1_000, SETTLE_MS) / rps;
  return [
    atLeast('admitted in all', admitted(answers), 0.98 * rps * seconds),
    said('offered a second', (answers.length / seconds).toFixed(0)),
    atLeast('rate of the least 10 s', Math.min(...windows), least, 3),
    atMost('rate of the most 10 s', Math.max(...windows), highest, 3),
    atMost('rate of the most 1 s', most, 1.1 + PROCESSES / rps, 3),
    said('p99 ms', slowMs(answers).toFixed(1)),
  ];
}

import { admitted, mostWithin, offering, outcomes, slowMs, within } from '../load.ts';
import { atLeast, atMost, exactly, type Finding, said } from '../finding.ts';
import { CALL, type Centre, startSubject } from '../subject.ts';

/** Gateway processes that share the rate. */
const PROCESSES = 4;
/** Times the rate that is offered. */
const TIMES = 10;
/** What the first burst takes to be spent. */
const SETTLE_MS = 2_000;
const WINDOW_MS = 10_000;

type RateLoad = Readonly<{ centre: Centre; rps: number; seconds: number }>;

/** Ten times the rate of a plan whose burst is one second of it: one burst, the rate, and once the debt of each process. */
export async function rate(
  { centre, rps, seconds }: RateLoad,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const extra = `[plans.under-load]\nrps = ${rps}\nburst = ${rps}\n`;
  await using subject = await startSubject({ processes: PROCESSES, extra, centre });
  const { crew } = subject;
  const to = { url: crew.url.href, key: crew.key('under-load'), bodies: [CALL], connections: 64 };
  const answers = await offering({ ...to, perSecond: TIMES * rps, seconds }, signal);
  const debt = PROCESSES * Math.max(1, Math.ceil(0.02 * rps));
  const other = answers.length - admitted(answers) - (outcomes(answers)['over-rate'] ?? 0);
  const always = [
    atMost('admitted in all', admitted(answers), rps + rps * seconds + debt),
    exactly('neither answered nor 429', other, 0),
    said('p99 ms', slowMs(answers).toFixed(1)),
  ];
  // A shorter load has no window of which the rate could be said, and may share its machine with others.
  if (1_000 * seconds < SETTLE_MS + WINDOW_MS)
    return [...always, atLeast('admitted in all', admitted(answers), 0.5 * rps * seconds)];

  const windows = [];
  for (let fromMs = SETTLE_MS; fromMs + WINDOW_MS <= 1_000 * seconds; fromMs += 1_000)
    windows.push((1_000 * admitted(within(answers, fromMs, fromMs + WINDOW_MS))) / (rps * WINDOW_MS));
  // Of each process a call that belongs before a window, or behind it, may be let in within it.
  const slack = PROCESSES / (rps * (WINDOW_MS / 1_000));
  return [
    ...always,
    atLeast('admitted in all', admitted(answers), 0.98 * rps * seconds),
    said('offered a second', (answers.length / seconds).toFixed(0)),
    atLeast('rate of the least 10 s', Math.min(...windows), 0.98 - slack, 3),
    atMost('rate of the most 10 s', Math.max(...windows), 1.01 + slack, 3),
    atMost('rate of the most 1 s', mostWithin(answers, 1_000, SETTLE_MS) / rps, 1.1 + PROCESSES / rps, 3),
  ];
}

import { systemClock } from '../../../shared/clock.ts';
import { admitted, type Answers, outcomes, within } from '../answers.ts';
import { at, offering, soonMs } from '../offering.ts';
import { between, exactly, type Finding } from './finding.ts';
import { CALL, type Centre, startSubject } from './subject.ts';

const PROCESSES = 4;
/** The plans in turn: their calls a second, which is their burst too. */
const RATES = [100, 10, 1_000];
/** A change is in force after at most so long. */
const CHANGED_MS = 1_100;
/** What a larger plan's first burst takes to be spent. */
const BURST_MS = 1_500;

/** When each plan came to be the account's, on the callers' clock, and what was answered. */
type Changed = Readonly<{ atMs: readonly number[]; secondsEach: number; seen: Answers }>;

/** An account under load that is put on a smaller plan and then on a larger one (limits.md 5, row 19). */
export async function changePlans(
  centre: Centre,
  secondsEach: number,
  signal: AbortSignal,
): Promise<Changed> {
  const extra = RATES.map((rps) => `[plans.at-${rps}]\nrps = ${rps}\nburst = ${rps}\n`).join('');
  await using subject = await startSubject({ processes: PROCESSES, extra, centre });
  const { crew } = subject;
  const to = { url: crew.url.href, key: crew.key(`at-${RATES[0]}`), bodies: [CALL], connections: 64 };
  const seconds = secondsEach * RATES.length;
  const startMs = soonMs();
  const loading = offering({ ...to, perSecond: 2_000, seconds, startMs }, signal);
  const atMs: number[] = [0];
  for (const [i, rps] of RATES.slice(1).entries()) {
    await at(startMs + 1_000 * secondsEach * (i + 1), signal);
    crew.accounts.run('UPDATE accounts SET plan = ? WHERE id = 1', [`at-${rps}`]);
    atMs.push(systemClock.now() - startMs);
  }
  return { atMs, secondsEach, seen: await loading };
}

/** That each plan's rate holds soon after the change, and stays. `part` is how far from it the rate may be. */
export function followed({ atMs, secondsEach, seen }: Changed, part: number): readonly Finding[] {
  const counts = outcomes(seen);
  const rates = RATES.map((rps, i) => {
    const fromMs = (atMs[i] ?? 0) + CHANGED_MS + BURST_MS;
    const untilMs = (atMs[i + 1] ?? 1_000 * secondsEach * RATES.length) - 1;
    const calls = admitted(within(seen, fromMs, untilMs));
    const rate = (1_000 * calls) / (untilMs - fromMs);
    // A window holds whole calls.
    const call = 1_000 / (untilMs - fromMs);
    return between(`rate on the plan of ${rps}`, rate, rps * (1 - part) - call, rps * (1 + part) + call, 1);
  });
  const [, smallerMs = 0] = atMs;
  const late = admitted(within(seen, smallerMs + CHANGED_MS, smallerMs + CHANGED_MS + 1_000));
  return [
    ...rates,
    // The old plan let in 100 a second; the new one has a burst of 10 at most, its rate and the debts.
    between('let in from 1.1 s to 2.1 s after the smaller plan', late, 0, 10 + 10 + PROCESSES + 1),
    exactly('neither answered nor 429', seen.length - admitted(seen) - (counts['over-rate'] ?? 0), 0),
  ];
}

import { systemClock } from '../../../shared/clock.ts';
import { admitted, at, offering, outcomes, soonMs, within } from '../load.ts';
import { atMost, between, exactly, type Finding } from '../finding.ts';
import { CALL, type Form, startSubject } from '../subject.ts';

const PROCESSES = 4;
/** The plans in turn: their calls a second, which are their burst too. */
const RATES = [100, 10, 1_000];
const SECONDS_EACH = 8;
/** How far from a plan's rate the rate may be. */
const PART = 0.05;
/** A change is in force after at most so long. */
const CHANGED_MS = 1_100;
/** What a larger plan's first burst takes to be spent. */
const BURST_MS = 1_500;

/** An account under load that is put on a smaller plan and then on a larger one: each plan's rate holds soon, and stays. */
export async function changePlans({ centre }: Form, signal: AbortSignal): Promise<readonly Finding[]> {
  const extra = RATES.map((rps) => `[plans.at-${rps}]\nrps = ${rps}\nburst = ${rps}\n`).join('');
  await using subject = await startSubject({ processes: PROCESSES, extra, centre });
  const { crew } = subject;
  const to = { url: crew.url.href, key: crew.key(`at-${RATES[0]}`), bodies: [CALL], connections: 64 };
  const seconds = SECONDS_EACH * RATES.length;
  const startMs = soonMs();
  const loading = offering({ ...to, perSecond: 2_000, seconds, startMs }, signal);
  const atMs = [0];
  for (const [i, rps] of RATES.slice(1).entries()) {
    await at(startMs + 1_000 * SECONDS_EACH * (i + 1), signal);
    crew.accounts.run('UPDATE accounts SET plan = ? WHERE id = 1', [`at-${rps}`]);
    atMs.push(systemClock.now() - startMs);
  }
  const seen = await loading;
  const rates = RATES.map((rps, i) => {
    const fromMs = (atMs[i] ?? 0) + CHANGED_MS + BURST_MS;
    const untilMs = (atMs[i + 1] ?? 1_000 * seconds) - 1;
    // A window holds whole calls.
    const call = 1_000 / (untilMs - fromMs);
    const rate = call * admitted(within(seen, fromMs, untilMs));
    return between(`rate on the plan of ${rps}`, rate, rps * (1 - PART) - call, rps * (1 + PART) + call, 1);
  });
  const [, smallerMs = 0] = atMs;
  const late = admitted(within(seen, smallerMs + CHANGED_MS, smallerMs + CHANGED_MS + 1_000));
  return [
    ...rates,
    // The old plan let in 100 a second; the new one has a burst of 10 at most, its rate and the debts.
    atMost('let in from 1.1 s to 2.1 s after the smaller plan', late, 10 + 10 + PROCESSES + 1),
    exactly('neither answered nor 429', seen.length - admitted(seen) - (outcomes(seen)['over-rate'] ?? 0), 0),
  ];
}

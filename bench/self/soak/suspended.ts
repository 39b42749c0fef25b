import { systemClock } from '../../../shared/clock.ts';
import { admitted, type Answers, mostWithin, within } from '../answers.ts';
import { at, offering, soonMs } from '../offering.ts';
import { atMost, between, type Finding } from './finding.ts';
import { CALL, type Centre, startSubject } from './subject.ts';

const PROCESSES = 4;
const RPS = 100;
const QUIET_MS = 2_000;
const AFTER_MS = 2_000;

/** What was answered while one process stood still, and how long it did. */
type Suspended = Readonly<{ seen: Answers; seconds: number; fromMs: number; untilMs: number }>;

/** One of four processes is stopped under load and goes on later (limits.md 5, row 11). Its callers wait; others do not. */
export async function suspend(centre: Centre, stillMs: number, signal: AbortSignal): Promise<Suspended> {
  const extra = `[plans.steady]\nrps = ${RPS}\nburst = ${RPS}\n`;
  await using subject = await startSubject({ processes: PROCESSES, extra, centre });
  const { crew } = subject;
  const seconds = Math.ceil((QUIET_MS + stillMs + AFTER_MS) / 1_000);
  const to = { url: crew.url.href, key: crew.key('steady'), bodies: [CALL], connections: 64 };
  const startMs = soonMs();
  const loading = offering({ ...to, perSecond: 10 * RPS, seconds, startMs }, signal);
  await at(startMs + QUIET_MS, signal);
  const pid = crew.pidOf(2);
  process.kill(pid, 'SIGSTOP');
  const fromMs = systemClock.now() - startMs;
  await systemClock.sleep(stillMs, signal);
  process.kill(pid, 'SIGCONT');
  const untilMs = systemClock.now() - startMs;
  return { seen: await loading, seconds, fromMs, untilMs };
}

/** That what a process held when it stopped is not spent twice, and the others have the rate meanwhile. */
export function resumed({ seen, seconds, fromMs, untilMs }: Suspended): readonly Finding[] {
  const debts = PROCESSES * Math.ceil(0.02 * RPS);
  const still = within(seen, fromMs + 2_000, untilMs);
  const rate = (1_000 * admitted(still)) / (RPS * (untilMs - fromMs - 2_000));
  return [
    atMost('admitted in all', admitted(seen), RPS * (seconds + 1) + debts),
    between('rate of the others from 2 s on', rate, 0.9, 1.1, 3),
    atMost('most in any second', mostWithin(seen, 1_000, QUIET_MS) / RPS, 2 + debts / RPS, 2),
  ];
}

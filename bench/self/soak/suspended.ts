import { systemClock } from '../../../shared/clock.ts';
import { admitted, at, mostWithin, offering, soonMs, within } from '../load.ts';
import { atLeast, atMost, between, type Finding } from '../finding.ts';
import { CALL, type Form, startSubject } from '../subject.ts';

const PROCESSES = 4;
const RPS = 100;
const QUIET_MS = 2_000;
const AFTER_MS = 2_000;
/** One that stands still for five seconds is killed and replaced. */
const STILL_MS = 3_500;

/** One of four processes is stopped under load and goes on later: what it held is not spent twice, and the others have the rate. */
export async function suspended({ centre, isShort }: Form, signal: AbortSignal): Promise<readonly Finding[]> {
  const extra = `[plans.steady]\nrps = ${RPS}\nburst = ${RPS}\n`;
  await using subject = await startSubject({ processes: PROCESSES, extra, centre });
  const { crew } = subject;
  const seconds = Math.ceil((QUIET_MS + STILL_MS + AFTER_MS) / 1_000);
  const to = { url: crew.url.href, key: crew.key('steady'), bodies: [CALL], connections: 64 };
  const startMs = soonMs();
  const loading = offering({ ...to, perSecond: 10 * RPS, seconds, startMs }, signal);
  await at(startMs + QUIET_MS, signal);
  const pid = crew.pidOf(2);
  process.kill(pid, 'SIGSTOP');
  const fromMs = systemClock.now() - startMs;
  await systemClock.sleep(STILL_MS, signal);
  process.kill(pid, 'SIGCONT');
  const untilMs = systemClock.now() - startMs;
  const seen = await loading;
  const debts = PROCESSES * Math.ceil(0.02 * RPS);
  const rate = (1_000 * admitted(within(seen, fromMs + 2_000, untilMs))) / (RPS * (untilMs - fromMs - 2_000));
  const all = atMost('admitted in all', admitted(seen), RPS * (seconds + 1) + debts);
  if (isShort) return [all, atLeast('rate of the others from 2 s on', rate, 0.5, 3)];
  return [
    all,
    between('rate of the others from 2 s on', rate, 0.9, 1.1, 3),
    atMost('most in any second', mostWithin(seen, 1_000, QUIET_MS) / RPS, 2 + debts / RPS, 2),
  ];
}

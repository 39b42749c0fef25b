import { systemClock } from '../../../shared/clock.ts';
import { startRedis } from '../../../test/started/redis.ts';
import { startTcpProxy } from '../../../test/started/tcp-proxy.ts';
import {
  admitted,
  type Answers,
  at,
  offering,
  type Outcome,
  outcomes,
  slowMs,
  soonMs,
  within,
} from '../load.ts';
import { atLeast, atMost, between, exactly, type Finding, said } from '../finding.ts';
import { CALL, type Form, startSubject } from '../subject.ts';

/** How a Redis goes away. */
export const OUTAGES = ['killed', 'stopped', 'black-holed'] as const;

/** Seconds before, in and after the outage. The first of those before are for the burst and for warm code. */
const [LONG, SHORT] = [
  { quiet: 10, out: 10, after: 10 },
  { quiet: 4, out: 3, after: 6 },
];

/** What callers on three plans saw: ten times the rate of a paid plan; a third of the rate of another; a trial with credits to spare. */
type Seen = Readonly<{ paid: Answers; light: Answers; trial: Answers }>;

/** When the outage began and ended, and the end of all, on the callers' clock. */
type Times = Readonly<{ fromMs: number; untilMs: number; endMs: number }>;

const PROCESSES = 4;
const RPS = 100;
/** Of a thousand. */
const LIGHT_RPS = 350;
const WARM_MS = 3_000;
/** Normal again so long after the return. */
const NORMAL_MS = 2_000;
/** A Redis that came back empty is first listened to for two seconds, by each process from when it met it. */
const TRIAL_MS = 5_000;
const LOOK_MS = 250;

const PLANS =
  `[plans.paid]\nrps = ${RPS}\nburst = ${RPS}\n[plans.light]\nrps = 1_000\nburst = 1_000\n` +
  '[plans.prepaid]\nrps = 10_000\nburst = 10_000\ncredits = 100_000\n';

/** A Redis that goes away under load and comes back. */
export async function outage(
  kind: (typeof OUTAGES)[number],
  { isShort }: Pick<Form, 'isShort'>,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const span = isShort ? SHORT : LONG;
  await using redis = await startRedis();
  using proxy = startTcpProxy(redis.port);
  await using subject = await startSubject({ processes: PROCESSES, extra: PLANS, redisUrl: proxy.url });
  const { crew } = subject;
  const seconds = span.quiet + span.out + span.after;
  const startMs = soonMs();
  const load = (key: string, perSecond: number, connections: number) =>
    offering({ url: crew.url.href, key, bodies: [CALL], perSecond, connections, seconds, startMs }, signal);
  const loads = Promise.all([
    load(crew.key('paid'), 10 * RPS, 32),
    load(crew.key('light'), LIGHT_RPS, 32),
    load(crew.key('prepaid', 100_000), 40, 16),
  ]);
  await at(startMs + WARM_MS, signal);
  const residentBefore = subject.resident();
  await at(startMs + 1_000 * span.quiet, signal);
  const fromMs = systemClock.now() - startMs;
  if (kind === 'killed') await redis.die();
  else if (kind === 'stopped') redis.kill('SIGSTOP');
  else proxy.become('black-hole');
  let residentMost = 0;
  const outUntilMs = startMs + fromMs + 1_000 * span.out;
  while (systemClock.now() < outUntilMs && !signal.aborted) {
    residentMost = Math.max(residentMost, subject.resident());
    await systemClock.sleep(LOOK_MS, signal);
  }
  const untilMs = systemClock.now() - startMs;
  if (kind === 'killed') await redis.restart('empty');
  else if (kind === 'stopped') redis.kill('SIGCONT');
  else proxy.become('forward');
  const [paid, light, trial] = await loads;
  const grownBytes = Math.max(residentMost, subject.resident()) - residentBefore;
  const [seen, times] = [
    { paid, light, trial },
    { fromMs, untilMs, endMs: 1_000 * seconds },
  ];
  const found = [
    ...honesty(seen, times),
    atMost('lines logged', await subject.linesLogged(), 10 * PROCESSES),
  ];
  const grown = atMost('most resident memory more, MB', grownBytes / 1e6, 20, 1);
  return isShort ? found : [...found, ...smoothness(seen, times), grown];
}

function others(answers: Answers, ...fine: readonly Outcome[]): number {
  return answers.filter(({ outcome }) => !fine.includes(outcome)).length;
}

/** What holds whatever else the machine does: who is told what, and that nobody gets more than the plan. */
function honesty({ paid, light, trial }: Seen, { fromMs, untilMs, endMs }: Times): readonly Finding[] {
  const held = PROCESSES * Math.floor((RPS - RPS / 4) / PROCESSES);
  const burst = RPS * 0.1 + held + PROCESSES * Math.ceil(0.02 * RPS);
  const during = admitted(within(paid, fromMs, untilMs));
  const whole = (RPS * (untilMs - fromMs)) / 1_000;
  return [
    atMost('paid: admitted in all', admitted(paid), (RPS * (endMs + 1_000)) / 1_000 + burst + held),
    between('paid: admitted in the outage', during, 0.5 * whole, whole + held),
    atMost(
      'paid: admitted in 2 s after',
      admitted(within(paid, untilMs, untilMs + NORMAL_MS)),
      (RPS * NORMAL_MS) / 1_000 + burst,
    ),
    exactly('paid: neither answered nor 429', others(paid, 'answered', 'over-rate'), 0),
    exactly('light: not answered', others(light, 'answered'), 0),
    // While nobody can say how much a trial has left, or others hold it, it may be told so.
    exactly(
      'trial: 402 or an answer that contradicts itself',
      others(trial, 'answered', 'credits-unavailable', 'key-unavailable', 'over-rate'),
      0,
    ),
    atLeast('trial: answered after', admitted(within(trial, untilMs, Infinity)), 1),
  ];
}

/** What a machine without other work shows: the share and the wait. */
function smoothness({ paid, light, trial }: Seen, { fromMs, untilMs, endMs }: Times): readonly Finding[] {
  const rateOf = (from: number, until: number) =>
    (1_000 * admitted(within(paid, from, until))) / (RPS * (until - from));
  const [before, during] = [
    (answers: Answers) => slowMs(within(answers, WARM_MS, fromMs)),
    (answers: Answers) => slowMs(within(answers, fromMs, untilMs)),
  ];
  const both = (answers: Answers) => `${before(answers).toFixed(1)}, ${during(answers).toFixed(1)}`;
  return [
    between('paid: rate in the outage', rateOf(fromMs, untilMs), 0.8, 1.02, 3),
    between('paid: rate from 2 s after', rateOf(untilMs + NORMAL_MS, endMs), 0.97, 1.02, 3),
    said('paid: p99 ms before, in it', both(paid)),
    said('light: p99 ms before, in it', both(light)),
    // Within noise: a ratio, or two milliseconds where both are short.
    atMost(
      'light: p99 more in the outage, ms',
      during(light) - before(light),
      Math.max(2, 0.5 * before(light)),
      1,
    ),
    said('trial: all answers', JSON.stringify(outcomes(trial))),
    exactly('trial: neither answered nor 503', others(trial, 'answered', 'credits-unavailable'), 0),
    exactly('trial: 503 before', others(within(trial, WARM_MS, fromMs), 'answered'), 0),
    exactly(
      'trial: 503 later than 5 s after',
      others(within(trial, untilMs + TRIAL_MS, Infinity), 'answered'),
      0,
    ),
    said('trial: answered in the outage', String(admitted(within(trial, fromMs, untilMs)))),
  ];
}

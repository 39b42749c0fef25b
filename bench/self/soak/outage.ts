import { systemClock } from '../../../shared/clock.ts';
import { startTcpProxy } from '../../../test/started/tcp-proxy.ts';
import { type StartedRedis, startRedis } from '../../../test/started/redis.ts';
import { admitted, type Answers, type Outcome, outcomes, slowMs, within } from '../answers.ts';
import { at, offering, soonMs } from '../offering.ts';
import { atLeast, atMost, between, exactly, type Finding, said } from './finding.ts';
import { CALL, startSubject } from './subject.ts';

/** How a Redis goes away. */
export const OUTAGES = ['killed', 'stopped', 'black-holed'] as const;
type OutageKind = (typeof OUTAGES)[number];

/** Seconds before, in and after the outage. The first of those before are for the burst and for warm code. */
type Span = Readonly<{ quiet: number; out: number; after: number }>;

/** What callers on three plans saw, from the first request on, and what it cost the gateway. */
export type Outage = Readonly<{
  span: Span;
  /** When the outage began and ended, on the callers' clock. */
  fromMs: number;
  untilMs: number;
  /** Ten times the rate of a paid plan; a third of the rate of another; a trial with credits to spare. */
  paid: Answers;
  light: Answers;
  trial: Answers;
  grownBytes: number;
  lines: number;
}>;

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

/** A Redis that goes away under load and comes back (limits.md 5, row 6). */
export async function outage(kind: OutageKind, span: Span, signal: AbortSignal): Promise<Outage> {
  await using redis = await startRedis();
  using proxy = startTcpProxy(redis.port);
  await using subject = await startSubject({ processes: PROCESSES, extra: PLANS, redisUrl: proxy.url });
  const { crew } = subject;
  const [paidKey, lightKey, trialKey] = [crew.key('paid'), crew.key('light'), crew.key('prepaid', 100_000)];
  const seconds = span.quiet + span.out + span.after;
  const startMs = soonMs();
  const load = (key: string, perSecond: number, connections: number) =>
    offering({ url: crew.url.href, key, bodies: [CALL], perSecond, connections, seconds, startMs }, signal);
  const loads = Promise.all([
    load(paidKey, 10 * RPS, 32),
    load(lightKey, LIGHT_RPS, 32),
    load(trialKey, 40, 16),
  ]);
  await at(startMs + WARM_MS, signal);
  const residentBefore = subject.resident();
  await at(startMs + 1_000 * span.quiet, signal);
  const fromMs = systemClock.now() - startMs;
  await leave(kind, redis, proxy);
  let residentMost = 0;
  const outUntilMs = startMs + fromMs + 1_000 * span.out;
  while (systemClock.now() < outUntilMs && !signal.aborted) {
    residentMost = Math.max(residentMost, subject.resident());
    await systemClock.sleep(LOOK_MS, signal);
  }
  const untilMs = systemClock.now() - startMs;
  await comeBack(kind, redis, proxy);
  const [paid, light, trial] = await loads;
  residentMost = Math.max(residentMost, subject.resident());
  const lines = await subject.linesLogged();
  return { span, fromMs, untilMs, paid, light, trial, grownBytes: residentMost - residentBefore, lines };
}

async function leave(kind: OutageKind, redis: StartedRedis, proxy: ReturnType<typeof startTcpProxy>) {
  if (kind === 'killed') await redis.die();
  else if (kind === 'stopped') redis.kill('SIGSTOP');
  else proxy.become('black-hole');
}

async function comeBack(kind: OutageKind, redis: StartedRedis, proxy: ReturnType<typeof startTcpProxy>) {
  if (kind === 'killed') await redis.restart('empty');
  else if (kind === 'stopped') redis.kill('SIGCONT');
  else proxy.become('forward');
}

/** What a trial may be told while nobody can say how much it has left, or others hold it. */
const FINE = ['credits-unavailable', 'key-unavailable', 'over-rate'] as const;

function others(answers: Answers, ...fine: readonly Outcome[]): number {
  const counts = outcomes(answers);
  return answers.length - fine.reduce((sum, outcome) => sum + (counts[outcome] ?? 0), 0);
}

/** What holds whatever else the machine does: who is told what, and that nobody gets more than the plan. */
export function honesty({ span, fromMs, untilMs, paid, light, trial, lines }: Outage): readonly Finding[] {
  const seconds = span.quiet + span.out + span.after;
  const held = PROCESSES * Math.floor((RPS - RPS / 4) / PROCESSES);
  const burst = RPS * 0.1 + held + PROCESSES * Math.ceil(0.02 * RPS);
  return [
    atMost('paid: admitted in all', admitted(paid), RPS * (seconds + 1) + burst + held),
    atMost(
      'paid: admitted in the outage',
      admitted(within(paid, fromMs, untilMs)),
      (RPS * (untilMs - fromMs)) / 1_000 + held,
    ),
    atMost(
      'paid: admitted in 2 s after',
      admitted(within(paid, untilMs, untilMs + NORMAL_MS)),
      (RPS * NORMAL_MS) / 1_000 + burst,
    ),
    exactly('paid: neither answered nor 429', others(paid, 'answered', 'over-rate'), 0),
    exactly('light: not answered', others(light, 'answered'), 0),
    exactly('trial: 402 or an answer that contradicts itself', others(trial, 'answered', ...FINE), 0),
    atLeast('trial: answered after', admitted(within(trial, untilMs, Infinity)), 1),
    atMost('lines logged', lines, 10 * PROCESSES),
  ];
}

/** What a machine without other work shows: the share, the wait and the memory. */
export function smoothness(seen: Outage): readonly Finding[] {
  const { fromMs, untilMs, paid, light, trial, grownBytes, span } = seen;
  const rateOf = (from: number, until: number) =>
    (1_000 * admitted(within(paid, from, until))) / (RPS * (until - from));
  const endMs = 1_000 * (span.quiet + span.out + span.after);
  const quietMs = slowMs(within(light, WARM_MS, fromMs));
  const outMs = slowMs(within(light, fromMs, untilMs));
  const paidQuietMs = slowMs(within(paid, WARM_MS, fromMs));
  const paidOutMs = slowMs(within(paid, fromMs, untilMs));
  return [
    between('paid: rate in the outage', rateOf(fromMs, untilMs), 0.8, 1.02, 3),
    between('paid: rate from 2 s after', rateOf(untilMs + NORMAL_MS, endMs), 0.97, 1.02, 3),
    said('paid: p99 ms before, in it', `${paidQuietMs.toFixed(1)}, ${paidOutMs.toFixed(1)}`),
    said('light: p99 ms before, in it', `${quietMs.toFixed(1)}, ${outMs.toFixed(1)}`),
    // Within noise: a ratio, or two milliseconds where both are short.
    atMost('light: p99 more in the outage, ms', outMs - quietMs, Math.max(2, 0.5 * quietMs), 1),
    said('trial: all answers', JSON.stringify(outcomes(trial))),
    exactly('trial: neither answered nor 503', others(trial, 'answered', 'credits-unavailable'), 0),
    exactly('trial: 503 before', others(within(trial, WARM_MS, fromMs), 'answered'), 0),
    exactly(
      'trial: 503 later than 5 s after',
      others(within(trial, untilMs + TRIAL_MS, Infinity), 'answered'),
      0,
    ),
    said('trial: answered in the outage', String(admitted(within(trial, fromMs, untilMs)))),
    atMost('most resident memory more, MB', grownBytes / 1e6, 20, 1),
  ];
}

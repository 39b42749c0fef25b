import { systemClock } from '../../../shared/clock.ts';
import { result, type Script, startBackend } from '../../../test/fakes/backend.ts';
import { startCrew } from '../../../test/started/crew.ts';
import { admitted, type Answers, outcomes, slowMs, within } from '../answers.ts';
import { at, offering, soonMs } from '../offering.ts';
import { atMost, exactly, type Finding, said } from './finding.ts';
import { CALL } from './subject.ts';

/** What callers of two backends saw: `near` prefers the one that stays well, `moved` the one that hangs, and is slow later. */
type Hanging = Readonly<{
  near: Answers;
  moved: Answers;
  /** Calls that reached the slow one from 15 s on, and all calls of the account that prefers it. */
  trials: Readonly<{ sent: number; of: number }>;
  /** From the recovery of the slow one until it had all its callers; infinite: not within `BACK_MS`. */
  recoveryMs: number;
  /** What callers saw while both hung, from the beginning of their hang on. */
  alone: Answers;
}>;

/** Instants of a load: from the first on it is measured, idle; then a hang, which ends, and slowness up to its end. */
const [WARM_MS, HANG_MS, WELL_MS, SLOW_MS, LOAD_MS] = [2_000, 7_000, 15_000, 28_000, 47_000];
/** By then a slow backend has lost its callers. */
const LOST_MS = 15_000;
const BACK_MS = 45_000;
const LOOK_MS = 1_000;
/** Both hang for so long. It is known of them by the second look at them that has no answer: three seconds later at most. */
const [ALONE_MS, KNOWN_MS] = [8_000, 3_000];
const [FAST_ANSWER_MS, SLOW_ANSWER_MS] = [2, 3_000];
const PER_SECOND = 100;
/** Calls wait for a hanging backend for seconds, each on its connection. */
const CONNECTIONS = 500;

const NEVER = new AbortController().signal;

const after =
  (ms: number): Script =>
  async (call) => {
    await systemClock.sleep(ms, NEVER);
    return result(call, '1');
  };

const hang: Script = () => new Promise<Response>(() => undefined);

/** One of two backends hangs, is well again, answers in 3 s while its twin takes 2 ms, and is well again; then both hang. */
export async function hanging(signal: AbortSignal): Promise<Hanging> {
  await using steady = startBackend(after(FAST_ANSWER_MS));
  await using faulty = startBackend(after(FAST_ANSWER_MS));
  await using crew = await startCrew({
    backendUrl: faulty.url,
    processes: 1,
    gatewayLines: 'probe_seconds = 1\n',
    extra: `[[backends]]\nname = "b"\nurl = "${steady.url}"\n[plans.paid]\nrps = 10_000\nburst = 10_000\n`,
  });

  /** A key whose account prefers the backend. */
  async function keyOn({ seen }: typeof faulty): Promise<string> {
    for (;;) {
      const [key, before] = [crew.key('paid'), seen.length];
      await (await crew.post(key, CALL)).text();
      if (seen.length > before) return key;
    }
  }

  const [nearKey, movedKey] = [await keyOn(steady), await keyOn(faulty)];
  const startMs = soonMs();
  const to = { url: crew.url.href, bodies: [CALL], perSecond: PER_SECOND, connections: CONNECTIONS };
  const load = (key: string) => offering({ ...to, key, seconds: LOAD_MS / 1_000, startMs }, signal);
  const loads = Promise.all([load(nearKey), load(movedKey)]);
  await at(startMs + HANG_MS, signal);
  faulty.script(hang);
  faulty.probed(hang);
  await at(startMs + WELL_MS, signal);
  faulty.script(after(FAST_ANSWER_MS));
  faulty.probed(() => undefined);
  await at(startMs + SLOW_MS, signal);
  faulty.script(after(SLOW_ANSWER_MS));
  await at(startMs + SLOW_MS + LOST_MS, signal);
  const before = faulty.seen.length;
  const [near, moved] = await loads;
  const trials = {
    sent: faulty.seen.length - before,
    of: within(moved, SLOW_MS + LOST_MS, Infinity).length,
  };

  faulty.script(after(FAST_ANSWER_MS));
  const [wellMs, over] = [systemClock.monotonic(), new AbortController()];
  const ended = AbortSignal.any([signal, over.signal]);
  // Its end is early, and so gives no answers.
  const seconds = (BACK_MS + LOOK_MS) / 1_000;
  const last = offering({ ...to, key: movedKey, seconds }, ended).catch(() => undefined);
  let recoveryMs = Infinity;
  while (!ended.aborted && systemClock.monotonic() < wellMs + BACK_MS && recoveryMs === Infinity) {
    const [away, there] = [steady.seen.length, faulty.seen.length];
    await systemClock.sleep(LOOK_MS, signal);
    if (steady.seen.length === away && faulty.seen.length > there)
      recoveryMs = systemClock.monotonic() - wellMs;
  }
  over.abort();
  await last;

  for (const backend of [steady, faulty]) {
    backend.script(hang);
    backend.probed(hang);
  }
  const hung = { ...to, key: nearKey, seconds: ALONE_MS / 1_000, startMs: soonMs() };
  const alone = await offering(hung, signal);
  return { near, moved, trials, recoveryMs, alone };
}

/** That nobody but the callers of the backend notice it, and these only for as long as it takes to notice. */
export function unnoticed({ near, moved, trials, recoveryMs, alone }: Hanging): readonly Finding[] {
  const idleMs = slowMs(within(near, WARM_MS, HANG_MS));
  const movedIdleMs = slowMs(within(moved, WARM_MS, HANG_MS));
  /** Twice as long as idle, or what a machine takes for a turn or two. */
  const most = (ms: number) => Math.max(2 * ms, 10);
  const longestMs = (answers: Answers) => Math.max(...answers.map(({ tookMs }) => tookMs));
  const lost = [...near, ...moved].length - admitted(near) - admitted(moved);
  return [
    said('p99 ms while idle, of each', `${idleMs.toFixed(1)}, ${movedIdleMs.toFixed(1)}`),
    atMost('others: p99 ms beside the hang', slowMs(within(near, HANG_MS, WELL_MS)), most(idleMs), 1),
    exactly('calls that were not answered', lost, 0),
    atMost('its own callers: longest ms at the hang', longestMs(within(moved, HANG_MS - 50, WELL_MS)), 4_000),
    atMost('others: p99 ms beside the slow one', slowMs(within(near, SLOW_MS, LOAD_MS)), most(idleMs), 1),
    atMost(
      'its own callers: p99 ms from 15 s on',
      slowMs(within(moved, SLOW_MS + LOST_MS, LOAD_MS)),
      most(movedIdleMs),
      1,
    ),
    atMost('their calls that it gets from 15 s on, %', (100 * trials.sent) / trials.of, 5, 1),
    atMost('its callers are back after seconds', recoveryMs / 1_000, BACK_MS / 1_000, 1),
    exactly(
      'calls while both hang that were not 503',
      alone.length - (outcomes(alone)['no-backend'] ?? 0),
      0,
    ),
    atMost('ms until 503, before it is known', longestMs(alone), KNOWN_MS + 1_000),
    atMost('ms until 503, once it is known', longestMs(within(alone, KNOWN_MS, Infinity)), 1_000),
  ];
}

import { systemClock } from '../../../shared/clock.ts';
import { startCrew } from '../../../test/started/crew.ts';
import type { Started } from '../../../test/started/process.ts';
import { admitted, type Answers, at, offering, outcomes, slowMs, soonMs, within } from '../load.ts';
import { atMost, exactly, type Finding, said } from '../finding.ts';
import { CALL, startBackend } from '../subject.ts';

/** Instants of a load: from the first on it is measured, idle; then a hang, which ends, and slowness up to its end. */
const [WARM_MS, HANG_MS, WELL_MS, SLOW_MS, LOAD_MS] = [2_000, 7_000, 15_000, 28_000, 47_000];
/** By then a slow backend has lost its callers. */
const LOST_MS = 15_000;
const BACK_MS = 45_000;
const LOOK_MS = 1_000;
/** Both hang for so long. It is known of them by the second look at them that has no answer: three seconds later at most. */
const [ALONE_MS, KNOWN_MS] = [8_000, 3_000];
const PER_SECOND = 100;
/** Calls wait for a hanging backend for seconds, each on its connection. */
const CONNECTIONS = 500;

/**
 * One of two backends hangs, is well again, answers in 3 s while its twin answers at once, and is well again; then both hang. Nobody
 * but the callers of the backend notice it, and these only for as long as it takes to notice.
 */
export async function hanging(signal: AbortSignal): Promise<readonly Finding[]> {
  await using steady = await startBackend();
  await using faulty = await startBackend();
  await using crew = await startCrew({
    backendUrl: faulty.url.href,
    processes: 1,
    gatewayLines: 'probe_seconds = 1\n',
    extra: `[[backends]]\nname = "b"\nurl = "${steady.url.href}"\n[plans.paid]\nrps = 10_000\nburst = 10_000\n`,
  });
  /** A key whose account prefers the backend. */
  async function keyOn(backend: Started): Promise<string> {
    for (;;) {
      const [key, before] = [crew.key('paid'), await callsAt(backend)];
      await (await crew.post(key, CALL)).text();
      if ((await callsAt(backend)) > before) return key;
    }
  }

  const [nearKey, movedKey] = [await keyOn(steady), await keyOn(faulty)];
  const startMs = soonMs();
  const to = { url: crew.url.href, bodies: [CALL], perSecond: PER_SECOND, connections: CONNECTIONS };
  const load = (key: string) => offering({ ...to, key, seconds: LOAD_MS / 1_000, startMs }, signal);
  const loads = Promise.all([load(nearKey), load(movedKey)]);
  await at(startMs + HANG_MS, signal);
  faulty.kill('SIGSTOP');
  await at(startMs + WELL_MS, signal);
  faulty.kill('SIGCONT');
  await at(startMs + SLOW_MS, signal);
  faulty.kill('SIGUSR2');
  await at(startMs + SLOW_MS + LOST_MS, signal);
  const before = await callsAt(faulty);
  const [near, moved] = await loads;
  const tried = (await callsAt(faulty)) - before;

  faulty.kill('SIGUSR2');
  const over = new AbortController();
  const ended = AbortSignal.any([signal, over.signal]);
  // Its end is early, and so gives no answers.
  const seconds = (BACK_MS + LOOK_MS) / 1_000;
  const last = offering({ ...to, key: movedKey, seconds }, ended).catch(() => undefined);
  const recoveryMs = await untilAllAt(faulty, steady, signal);
  over.abort();
  await last;

  for (const backend of [steady, faulty]) backend.kill('SIGSTOP');
  const hung = { ...to, key: nearKey, seconds: ALONE_MS / 1_000, startMs: soonMs() };
  const alone = await offering(hung, signal);

  const idleMs = slowMs(within(near, WARM_MS, HANG_MS));
  const movedIdleMs = slowMs(within(moved, WARM_MS, HANG_MS));
  /** Twice as long as idle, or what a machine takes for a turn or two. */
  const most = (ms: number) => Math.max(2 * ms, 10);
  const longestMs = (answers: Answers) => Math.max(...answers.map(({ tookMs }) => tookMs));
  const late = within(moved, SLOW_MS + LOST_MS, Infinity);
  const unanswered = near.length + moved.length - admitted(near) - admitted(moved);
  const other = alone.length - (outcomes(alone)['no-backend'] ?? 0);
  return [
    said('p99 ms while idle, of each', `${idleMs.toFixed(1)}, ${movedIdleMs.toFixed(1)}`),
    atMost('others: p99 ms beside the hang', slowMs(within(near, HANG_MS, WELL_MS)), most(idleMs), 1),
    exactly('calls that were not answered', unanswered, 0),
    atMost('its own callers: longest ms at the hang', longestMs(within(moved, HANG_MS - 50, WELL_MS)), 4_000),
    atMost('others: p99 ms beside the slow one', slowMs(within(near, SLOW_MS, LOAD_MS)), most(idleMs), 1),
    atMost('its own callers: p99 ms from 15 s on', slowMs(late), most(movedIdleMs), 1),
    atMost('their calls that it gets from 15 s on, %', (100 * tried) / late.length, 5, 1),
    atMost('its callers are back after seconds', recoveryMs / 1_000, BACK_MS / 1_000, 1),
    exactly('calls while both hang that were not 503', other, 0),
    atMost('ms until 503, before it is known', longestMs(alone), KNOWN_MS + 1_000),
    atMost('ms until 503, once it is known', longestMs(within(alone, KNOWN_MS, Infinity)), 1_000),
  ];
}

/** Calls that reached a backend so far. */
async function callsAt({ url }: Pick<Started, 'url'>): Promise<number> {
  return Number(await (await fetch(url)).text());
}

/** Milliseconds until for `LOOK_MS` all calls came to one backend and none to the other; infinite: not within `BACK_MS`. */
async function untilAllAt(one: Started, other: Started, signal: AbortSignal): Promise<number> {
  const startMs = systemClock.monotonic();
  const tookMs = () => systemClock.monotonic() - startMs;
  while (!signal.aborted && tookMs() < BACK_MS) {
    const [there, away] = [await callsAt(one), await callsAt(other)];
    await systemClock.sleep(LOOK_MS, signal);
    if ((await callsAt(other)) === away && (await callsAt(one)) > there) return tookMs();
  }
  return Infinity;
}

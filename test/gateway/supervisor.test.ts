import { describe, expect, test } from 'bun:test';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { afterExit, MetricTotals, START_FAILURES_MAX, WorkerPool } from '../../gateway/worker-pool.ts';
import {
  createStderrTail,
  supervisorLinkFrom,
  type MetricsJson,
  type ReloadedConfig,
  type Worker,
  type WorkerExit,
} from '../../gateway/workers.ts';
import type { Findings, HostHealth, Trouble } from '../../gateway/health.ts';
import { togetherStatus } from '../../gateway/status.ts';
import { createVirtualClock, type VirtualClock } from '../fakes/chain-clock.ts';
import { silentLog } from '../started/gateway.ts';

describe('the worker pool', () => {
  const END_MS = 28_000;

  /** A worker that listens, drains and ends when the test says so, and beats until then. */
  function scripted(number: number, seat: number, clock: VirtualClock) {
    const listening = Promise.withResolvers<boolean>();
    const draining = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<WorkerExit>();
    const signals: string[] = [];
    const reloaded: ReloadedConfig[] = [];
    const healths: HostHealth[] = [];
    let findings: Findings | undefined;
    let hangsSinceMs: number | undefined;
    const worker: Worker = {
      listening: listening.promise,
      draining: draining.promise,
      ended: ended.promise,
      heardAtMs: () => hangsSinceMs ?? clock.monotonic(),
      report: () => Promise.resolve(undefined),
      setReloadedConfig: (given) => void reloaded.push(given),
      findings: () => findings,
      setHealth: (health) => void healths.push(health),
      signal: (name) => void signals.push(name),
    };
    return {
      number,
      seat,
      worker,
      signals,
      reloaded,
      healths,
      find: (...troubles: readonly Trouble[]) => void (findings = { troubles, unwell: [], needed: [] }),
      /** Each gives what follows of it. */
      listen: () => (listening.resolve(true), clock.advance(0)),
      drain: () => (draining.resolve(), clock.advance(0)),
      hang: () => void (hangsSinceMs = clock.monotonic()),
      end(how = 'SIGKILL', stderrTail = '') {
        listening.resolve(false);
        ended.resolve({ how, stderrTail });
        return clock.advance(0);
      },
    };
  }

  type Scripted = ReturnType<typeof scripted>;

  /** A pool of `size` scripted workers on a clock that stands still. */
  function poolOf(size: number, clock = createVirtualClock(), refuses = false) {
    const launched: Scripted[] = [];
    const launch = (number: number, seat: number) => {
      if (refuses) throw new Error('EAGAIN');
      const process = scripted(number, seat, clock);
      launched.push(process);
      return process.worker;
    };
    const pool = new WorkerPool({ size, launch, endMs: END_MS, clock, log: silentLog() });
    const stop = new AbortController();
    let isReady = false;
    const end = pool.run(stop.signal, () => void (isReady = true));
    const at = (index: number): Scripted => {
      const process = launched[index];
      if (process === undefined) throw new Error(`process ${index} was not launched`);
      return process;
    };
    return {
      pool,
      clock,
      launched,
      at,
      end,
      stop: () => stop.abort(),
      isReady: () => isReady,
      /** Whether the system refuses to start processes. */
      refuse: (is: boolean) => void (refuses = is),
    };
  }

  const settled = (clock: VirtualClock) => clock.advance(0);

  async function started(size: number) {
    const made = poolOf(size);
    await settled(made.clock);
    await made.at(0).listen();
    for (const process of made.launched) await process.listen();
    return made;
  }

  test('the first worker starts alone, the others when it listens, and the pool is ready when all listen', async () => {
    const { launched, at, clock, isReady } = poolOf(3);
    await settled(clock);
    expect(launched.map(({ number }) => number)).toEqual([1]);
    await at(0).listen();
    expect(launched.map(({ number }) => number)).toEqual([1, 2, 3]);
    await at(1).listen();
    expect(isReady()).toBe(false);
    await at(2).listen();
    expect(isReady()).toBe(true);
  });

  test('what one worker finds all say, each time it changes, and what a dead one found fades', async () => {
    const { pool, at, clock } = await started(2);
    const FULL = { what: 'usage cannot be written', cause: 'the disk is full', stops: false, clearMs: 5_000 };
    const said = () => [0, 1].map((i) => at(i).healths.map(({ sentence }) => sentence));
    const TOLD = 'ok, but usage cannot be written (the disk is full)';
    at(0).find();
    pool.lookAtHost();
    expect(said()).toEqual([['ok'], ['ok']]);
    at(1).find(FULL);
    pool.lookAtHost();
    at(0).find(FULL);
    at(1).find();
    await clock.advance(1_000);
    expect(said()).toEqual([
      ['ok', TOLD],
      ['ok', TOLD],
    ]);
    await at(0).end();
    for (let second = 0; second < 5; second++) await clock.advance(1_000);
    expect(at(1).healths).toHaveLength(2);
    await clock.advance(1_000);
    expect(at(1).healths.at(-1)).toEqual({ ok: true, sentence: 'ok' });
    expect(pool.health).toEqual({ ok: true, sentence: 'ok' });
  });

  test.each([0, 1])(
    'worker %i that ends before it listens at the start ends all, with its stderr',
    async (which) => {
      const { launched, at, clock, end, isReady } = poolOf(2);
      await settled(clock);
      if (which === 1) at(0).listen();
      await settled(clock);
      await at(which).end('code 1', 'The certificate is not there.');
      for (const process of launched) process.end('code 0');
      expect(await end).toEqual(['The certificate is not there.']);
      expect(launched.map(({ signals }) => signals)).toEqual(which === 0 ? [[]] : [['SIGTERM'], []]);
      expect(isReady()).toBe(false);
    },
  );

  test.each([0.5, undefined])(
    'exits in a row double the delay, up to ten seconds, until a worker has listened for ten seconds: each for %p ms',
    (listenedMs) => {
      /** The delays after workers that listened for so long, one after the other in a seat beside another. */
      const delays = (...lives: readonly (number | undefined)[]) => {
        let seat = { exits: 0, startFailures: 0, isFirst: false };
        return lives.map((life) => {
          const next = afterExit(seat, life, true);
          if (next.kind === 'failed') throw new Error('it failed');
          seat = next.seat;
          return next.waitMs;
        });
      };
      const eleven = [...Array(10).fill(listenedMs), 9_999.9];
      expect(delays(...eleven)).toEqual([0, 100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000, 10_000]);
      expect(delays(...eleven, 10_000, listenedMs)).toEqual([...delays(...eleven), 0, 100]);
    },
  );

  test('when none serves and one fails to start again and again, all end with its stderr', async () => {
    const { clock, launched, at, end } = await started(1);
    at(0).end();
    for (let death = 1; death <= START_FAILURES_MAX; death++) {
      await clock.advance(10_000);
      expect(launched).toHaveLength(death + 1);
      at(death).end('code 1', `death ${death}`);
    }
    expect(await end).toEqual([`death ${START_FAILURES_MAX}`]);
  });

  test('a first worker that the system refuses is reported, a later one is started again', async () => {
    const first = poolOf(2, createVirtualClock(), true);
    expect(await first.end).toEqual(['A gateway process could not be started (EAGAIN).']);
    const { pool, clock, launched, at, refuse } = await started(2);
    refuse(true);
    at(1).end();
    await clock.advance(60_000);
    expect([launched.length, pool.listening]).toEqual([2, 1]);
    refuse(false);
    await clock.advance(10_000);
    expect(launched.map(({ number }) => number)).toEqual([1, 2, 2]);
  });

  test('a reloaded config reaches every worker, also one that starts, and one that listens tells other apps', async () => {
    const { pool, at } = await started(2);
    await at(0).end();
    const config = { name: 'sluice.toml', text: '' };
    pool.setReloadedConfig(config, true);
    pool.setReloadedConfig(config, false);
    const quiet = { config, announces: false };
    expect(at(1).reloaded).toEqual([{ config, announces: true }, quiet]);
    expect(at(2).reloaded).toEqual([quiet, quiet]);
  });

  test('a worker that drains by itself gives its number back at its end, and no number is two processes', async () => {
    const { clock, launched, at } = await started(2);
    at(0).drain();
    await at(1).drain();
    expect(launched.map(({ number, seat }) => [number, seat]).slice(2)).toEqual([
      [3, 1],
      [4, 2],
    ]);
    at(0).end('code 0');
    at(2).listen();
    await clock.advance(10_000);
    await at(2).drain();
    expect([at(4).number, at(4).seat]).toEqual([1, 1]);
    // One that is killed comes back under its number.
    at(4).end();
    await clock.advance(100);
    expect([at(5).number, at(5).seat]).toEqual([1, 1]);
  });

  test('a worker that says before or after a stop that it drains is killed once, and reported', async () => {
    const { clock, at, stop, end } = await started(1);
    at(0).drain();
    await clock.advance(1_000);
    at(1).listen();
    stop();
    await settled(clock);
    at(1).drain();
    await clock.advance(END_MS);
    for (const which of [0, 1]) {
      expect(at(which).signals).toEqual(['SIGTERM', 'SIGKILL']);
      at(which).end();
    }
    expect(await end).toEqual(['Gateway processes 1, 2 did not stop in time and were killed.']);
  });

  test('a worker that hangs is left alone while it starts or drains, which have bounds of their own', async () => {
    const { pool, clock, at } = await started(2);
    await at(1).end();
    at(2).hang();
    at(0).drain();
    at(0).hang();
    await clock.advance(20_000);
    expect([at(0).signals, at(2).signals, pool.hangs]).toEqual([[], [], 0]);
  });
});

describe('the metric totals', () => {
  /** A process's registry with one metric of each kind. */
  function counting(calls: number, tip: number, resident: number) {
    const registry = new Registry();
    const registers = [registry];
    const help = 'For a test.';
    new Counter({ name: 'calls_total', help, labelNames: ['method'], registers }).inc({ method: 'a' }, calls);
    new Gauge({ name: 'in_flight', help, registers }).set(calls);
    new Gauge({ name: 'tip', help, registers, aggregator: 'max' }).set(tip);
    new Gauge({ name: 'process_resident_memory_bytes', help, registers }).set(resident);
    const seconds = new Histogram({ name: 'seconds', help, buckets: [1, 10], registers });
    for (let i = 0; i < calls; i++) seconds.observe(5);
    // By way of JSON, as it comes over the channel.
    return registry.getMetricsAsJSON().then((values): MetricsJson => JSON.parse(JSON.stringify(values)));
  }

  const NONE = new Registry();
  const rows = (text: string) => text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));

  test('what a process counted stays when it is gone, so that no sum ever falls; its gauges go', async () => {
    const totals = new MetricTotals();
    totals.update(1, await counting(2, 7, 100));
    totals.update(2, await counting(3, 5, 300));
    totals.close(2);
    totals.update(2, await counting(1, 1, 200));
    totals.close(2);
    totals.close(2);
    expect(rows(await totals.text(NONE))).toEqual(
      expect.arrayContaining([
        'calls_total{method="a"} 6',
        'in_flight 2',
        'tip 7',
        'seconds_count 6',
        'seconds_sum 30',
      ]),
    );
    totals.update(2, await counting(10, 9, 50));
    expect(rows(await totals.text(NONE))).toEqual(
      expect.arrayContaining(['calls_total{method="a"} 16', 'tip 9']),
    );
  });
});

test('of a worker that writes much to stderr before it listens the end is kept, and passed on when it does', async () => {
  const lines = Array.from({ length: 1_000 }, (_, i) => `line ${i}\n`);
  const out: string[] = [];
  const tail = createStderrTail(new Blob(lines).stream(), (text) => void out.push(text));
  await tail.ended;
  expect([out, tail.text().length <= 4_096]).toEqual([[], true]);
  expect(tail.text()).toEndWith('line 998\nline 999');
  tail.release();
  expect(out.map((text) => text.trim())).toEqual([tail.text()]);
});

test('a worker reports over its link as it starts, serves and drains, and takes what the supervisor sends', async () => {
  const sent: { kind: string }[] = [];
  let take: (message: unknown) => void = () => undefined;
  const on = (_: 'message', taken: typeof take) => void (take = taken);
  expect(supervisorLinkFrom(undefined, { send: () => undefined, on })).toBeUndefined();
  const link = supervisorLinkFrom('2', { send: (message) => void sent.push(message), on });
  const [assignment, port] = [link?.assignment(), link?.port()];
  const config = { name: 'sluice.toml', text: '' };
  take({ kind: 'something of another version' });
  take({ kind: 'assignment', assignment: { seat: 2, config } });
  take({ kind: 'listen', claim: { kind: 'free', port: 8_899 } });
  expect([await assignment, await port]).toEqual([
    { seat: 2, config },
    { kind: 'free', port: 8_899 },
  ] as never);
  const reloaded: unknown[] = [];
  const parts = {
    report: () => Promise.resolve({ metrics: [], status: togetherStatus([]) }),
    setReloadedConfig: ({ config: { text } }: ReloadedConfig) => void reloaded.push(text),
  };
  const clock = createVirtualClock();
  const stop = new AbortController();
  take({ kind: 'reloaded', reloaded: { config: { ...config, text: 'early' }, announces: false } });
  const served = link?.serve(parts, clock, stop.signal);
  take({ kind: 'reloaded', reloaded: { config: { ...config, text: 'late' }, announces: false } });
  take({ kind: 'report' });
  await clock.advance(1_000);
  stop.abort();
  await served;
  expect(reloaded).toEqual(['early', 'late']);
  const kinds = ['started', 'prepared', 'listening', 'report', 'beat', 'draining'];
  expect(sent.map(({ kind }) => kind)).toEqual(kinds);
});

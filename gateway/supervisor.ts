import { join } from 'node:path';
import { AggregatorRegistry, Registry } from 'prom-client';
import type { Clock } from '../shared/clock.ts';
import { type Config, gatewayUrl } from '../shared/config/config.ts';
import type { Listen } from '../shared/config/kinds.ts';
import type { ConfigText, LoadedConfig } from '../shared/config/load.ts';
import { createConfigReader } from '../shared/config/reload.ts';
import type { Environment } from '../shared/config/table.ts';
import type { GatewayStatus } from '../shared/gateway-status.ts';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS, plansInUse } from '../shared/keys/schema.ts';
import { fired, listenComplaint } from '../shared/process.ts';
import { createLog, droppedLines, type Log, writeLines } from '../shared/log.ts';
import { takeLock } from '../shared/store/lock.ts';
import { openStore } from '../shared/store/open.ts';
import { createHostHealth, HOST_DRAINING, type HostHealth } from './health.ts';
import { processName } from './limits/limits.ts';
import { togetherStatus } from './status.ts';
import { expose, listenForMetrics } from './metrics.ts';
import { HEARTBEAT_MS, launchWorker, type MetricsJson, type PortClaim, type Worker } from './workers.ts';

/**
 * Finds the port of `listen`, chosen by the system if the config's is 0. Workers share it, and the system would not report
 * a foreign process that does too; so this process binds it alone for an instant, in which nothing is accepted.
 */
async function claimPort(listen: Listen): Promise<PortClaim> {
  try {
    const server = Bun.serve({ ...listen, reusePort: false, fetch: () => new Response() });
    const port = server.port ?? listen.port;
    await server.stop(true);
    return { kind: 'free', port };
  } catch (error) {
    return { kind: 'refused', sentence: listenComplaint('gateway.listen', listen, error) };
  }
}

/** The gauge that is shown for each process: in a sum, one process that grows would not be seen. */
const PER_PROCESS = 'process_resident_memory_bytes';

/** The metrics of all workers as one text; counters of ended workers stay, for a sum that falls looks like a restart. */
export class MetricTotals {
  readonly #running = new Map<number, MetricsJson>();
  #ended: readonly object[] = [];

  update(worker: number, metrics: MetricsJson): void {
    const labelled = metrics.map((metric) => {
      if (metric.name !== PER_PROCESS) return metric;
      return {
        ...metric,
        values: metric.values.map(({ value }) => ({ value, labels: { process: worker } })),
      };
    });
    this.#running.set(worker, labelled);
  }

  /** The worker has ended: its counters stay, its gauges go. */
  close(worker: number): void {
    const metrics = this.#running.get(worker) ?? [];
    // prom-client declares the type to be a number, and writes the word.
    const counters = metrics.filter(({ type }) => ['counter', 'histogram'].includes(String(type)));
    this.#running.delete(worker);
    this.#ended = AggregatorRegistry.aggregate([this.#ended, counters]).getMetricsAsArray();
  }

  async text(own: Registry): Promise<string> {
    const all = [...this.#running.values(), this.#ended, await own.getMetricsAsJSON()];
    return AggregatorRegistry.aggregate(all).metrics();
  }
}

type PoolOptions = Readonly<{
  size: number;
  /** Starts a worker of this number in a seat; throws when the system refuses it. */
  launch(number: number, seat: number): Worker;
  /** A worker that takes longer to end hangs. */
  endMs: number;
  clock: Clock;
  log: Log;
}>;

const DRAINING = 'draining';

/** A process of the pool until it has ended. */
type Running = {
  readonly worker: Worker;
  state: 'starting' | 'listening' | 'ending';
  /** Once it was to end: whether it took too long and was killed. */
  late?: Promise<boolean>;
};

/** A worker that listens and says nothing for this long hangs. */
const SILENT_MS_MAX = 5_000;

/** A worker that has listened for this long works: its exit does not count with those before it. */
const PROVEN_MS = 10_000;
const RESTART_DELAY_MS = 100;
const RESTART_DELAY_MS_MAX = 10_000;

/** After so many starts in a row without listening, the next would fail too. */
export const START_FAILURES_MAX = 5;

/** Keeps `size` seats taken. A worker's number, which names its lock and node, is its seat's, or a spare one while that drains. */
export function createWorkerPool({ size, launch, endMs, clock, log }: PoolOptions) {
  const totals = new MetricTotals();
  const running = new Map<number, Running>();
  const failed = Promise.withResolvers<string>();
  const host = createHostHealth(clock, log);
  let health: HostHealth | undefined;
  let restarts = 0;
  let hangs = 0;

  const listening = () => [...running.values()].filter(({ state }) => state === 'listening').length;

  /** Starts every worker, calls `onReady` when all listen, replaces those that end until `stop`, and drains; gives problems. */
  async function run(stop: AbortSignal, onReady: () => void): Promise<readonly string[]> {
    const over = new AbortController();
    const end = AbortSignal.any([stop, over.signal]);
    const started = (seat: number) => new Promise<void>((resolve) => void keepTaken(seat, end, resolve));
    void watchBeats(end);
    const startAll = async () => {
      // The first one starts alone: a problem of the config or the stores is then reported once.
      await started(1);
      if (end.aborted) return;
      await Promise.all(Array.from({ length: size - 1 }, (_, i) => started(i + 2)));
      if (!end.aborted) onReady();
    };
    void startAll();
    const sentence = await Promise.race([failed.promise, fired(stop)]);
    over.abort();
    const killed = await drain();
    if (sentence !== undefined) return [sentence];
    if (killed.length === 0) return [];
    return [`Gateway processes ${killed.join(', ')} did not stop in time and were killed.`];
  }

  /** Runs a worker in a seat, and another one whenever it ends or drains, until `end`. A first one that cannot start ends the pool. */
  async function keepTaken(seat: number, end: AbortSignal, onListening: () => void): Promise<void> {
    let exitsInARow = 0;
    let startFailures = 0;
    let number = seat;
    for (let isFirst = true; ; isFirst = false) {
      const { listenedMs, ...exit } = await runOnce(number, seat, onListening);
      if (end.aborted) return;
      exitsInARow = (listenedMs ?? 0) >= PROVEN_MS ? 1 : exitsInARow + 1;
      startFailures = listenedMs === undefined ? startFailures + 1 : 0;
      const isHopeless = startFailures >= START_FAILURES_MAX && listening() === 0;
      if ((isFirst && listenedMs === undefined) || isHopeless) {
        const sentence = exit.stderrTail || `A gateway process ended before it could listen (${exit.how}).`;
        return failed.resolve(sentence);
      }
      const doubled = RESTART_DELAY_MS * 2 ** (exitsInARow - 2);
      const waitMs = exitsInARow === 1 ? 0 : Math.min(RESTART_DELAY_MS_MAX, doubled);
      if (exit.how === DRAINING) log.info({ process: number, waitMs }, 'a process drains and is replaced');
      else log.error({ process: number, ...exit, waitMs }, 'a process ended and is started again');
      await clock.sleep(waitMs, end);
      if (end.aborted) return;
      restarts++;
      // What a killed worker held comes back with its number; one that drains gives it back.
      if (exit.how === DRAINING) number = seat;
      if (running.has(number)) for (number = 1; running.has(number);) number++;
    }
  }

  /** Runs one worker process until it ends, or drains by itself. `listenedMs` is `undefined` when it never listened. */
  async function runOnce(number: number, seat: number, onListening: () => void) {
    let worker: Worker;
    try {
      worker = launch(number, seat);
    } catch (error) {
      // The system may be out of processes or files: that counts as an exit, and does not end the workers that serve.
      const reason = error instanceof Error ? error.message : String(error);
      const stderrTail = `A gateway process could not be started (${reason}).`;
      return { listenedMs: undefined, how: 'not started', stderrTail };
    }
    const one: Running = { worker, state: 'starting' };
    running.set(number, one);
    const ended = worker.ended.then((exit) => {
      running.delete(number);
      totals.close(number);
      return exit;
    });
    const listened = await worker.listening;
    const sinceMs = clock.monotonic();
    if (listened) {
      one.state = 'listening';
      onListening();
    }
    const draining = worker.draining.then(() => {
      one.state = 'ending';
      one.late ??= killLate(number, one);
      return { how: DRAINING, stderrTail: '' };
    });
    const exit = await Promise.race([ended, draining]);
    return { ...exit, listenedMs: listened ? clock.monotonic() - sinceMs : undefined };
  }

  /** Waits for the end of a worker; resolves to whether it took too long and was killed. */
  async function killLate(number: number, { worker }: Running): Promise<boolean> {
    const over = new AbortController();
    const ended = worker.ended.then(() => over.abort());
    await clock.sleep(endMs, over.signal);
    const isLate = !over.signal.aborted;
    if (isLate) {
      log.error({ process: number }, 'a process does not stop in time and is killed');
      worker.signal('SIGKILL');
    }
    await ended;
    return isLate;
  }

  /** Makes every worker drain and waits; resolves to those that had to be killed. */
  async function drain(): Promise<readonly number[]> {
    const all = [...running];
    setHealth(HOST_DRAINING);
    for (const [, { worker }] of all) worker.signal('SIGTERM');
    const late = await Promise.all(all.map(([number, one]) => (one.late ??= killLate(number, one))));
    return all.map(([number]) => number).filter((_, i) => late[i]);
  }

  /** Kills workers whose event loop stands still. After a suspension, or on a busy machine, they get more time. */
  async function watchBeats(end: AbortSignal): Promise<void> {
    let [lookedMs, onTimeSinceMs] = [clock.monotonic(), -Infinity];
    while (!end.aborted) {
      await clock.sleep(HEARTBEAT_MS, end);
      lookAtHost();
      const nowMs = clock.monotonic();
      if (nowMs - lookedMs > 2 * HEARTBEAT_MS) onTimeSinceMs = nowMs;
      lookedMs = nowMs;
      for (const [number, one] of running) {
        const silentMs = nowMs - Math.max(one.worker.heardAtMs(), onTimeSinceMs);
        if (one.state !== 'listening' || silentMs <= SILENT_MS_MAX) continue;
        one.state = 'ending';
        hangs++;
        log.error({ process: number, silentMs: Math.round(silentMs) }, 'a process hangs and is killed');
        one.worker.signal('SIGKILL');
      }
    }
  }

  /** Folds what the workers found last into the health of the host, and tells each when it changes. */
  function lookAtHost(): void {
    const listeners = [...running.values()].filter(({ state }) => state === 'listening');
    const found = listeners.flatMap(({ worker }) => worker.findings() ?? []);
    if (found.length === 0 || health === HOST_DRAINING) return;
    setHealth(host.look(found));
  }

  function setHealth(now: HostHealth): void {
    if (now.ok === health?.ok && now.sentence === health.sentence) return;
    health = now;
    for (const { worker } of running.values()) worker.setHealth(now);
  }

  /** Hands plans and prices to every worker; with `announces`, one of them notifies other apps. */
  function setReloadedConfig(config: ConfigText, announces: boolean): void {
    const announcer = [...running.values()].find(({ state }) => state === 'listening');
    for (const one of running.values())
      one.worker.setReloadedConfig({ config, announces: announces && one === announcer });
  }

  /** Collects the reports of all workers that serve: updates the totals, and gives the states of the backends. */
  async function collect(): Promise<readonly GatewayStatus[]> {
    const serving = [...running].filter(([, { state }]) => state !== 'starting');
    const statuses = serving.map(async ([number, one]) => {
      const report = await one.worker.report();
      // A worker that ended meanwhile is in the totals already.
      if (report !== undefined && running.get(number) === one) totals.update(number, report.metrics);
      return report?.status;
    });
    return (await Promise.all(statuses)).filter((status) => status !== undefined);
  }

  return {
    run,
    lookAtHost,
    health: () => health,
    setReloadedConfig,
    collect,
    totals,
    listening,
    restarts: () => restarts,
    hangs: () => hangs,
  };
}

/** How long a start waits for the processes of a supervisor that died; they end within 5 s. */
const SEATS_WAIT_MS = 7_000;
const SEATS_PAUSE_MS = 100;

/** A sentence for a seat whose process still runs, of an earlier supervisor; looked at before any process starts, so that none serves in vain. */
async function occupiedSeat({ gateway, storage }: Config, stop: AbortSignal, clock: Clock) {
  const untilMs = clock.monotonic() + SEATS_WAIT_MS;
  for (let seat = 1; seat <= gateway.processes && !stop.aborted;) {
    const locking = takeLock(storage.dataDir, processName(seat));
    if (locking.kind === 'locked') {
      locking.lock.release();
      seat++;
    } else if (clock.monotonic() >= untilMs) return locking.sentence;
    else await clock.sleep(SEATS_PAUSE_MS, stop);
  }
  return undefined;
}

/** How the supervisor was started; its workers are started with the same. */
type Started = Readonly<{ configPath: string | undefined; env: Environment; supervised: boolean }>;

/** What a worker takes at most to end after its listener has drained; whoever started this process waits for longer. */
const CLOSE_MS = 3_000;

const MAIN = join(import.meta.dir, 'main.ts');

/** Runs `gateway.processes` workers on one port until `stop`, and the metrics of all; gives a sentence for each problem. */
export async function superviseGateway(
  loaded: LoadedConfig,
  { configPath, env, supervised }: Started,
  stop: AbortSignal,
  clock: Clock,
): Promise<readonly string[]> {
  const { config } = loaded;
  const { listen, metrics: metricsAddress, processes, drainMs } = config.gateway;
  const locking = takeLock(config.storage.dataDir, 'gateway');
  if (locking.kind === 'refused') return [locking.sentence];
  const occupied = await occupiedSeat(config, stop, clock);
  if (stop.aborted) return [];
  if (occupied !== undefined) return [occupied];
  const claim = await claimPort(listen);
  if (claim.kind === 'refused') return [claim.sentence];
  const address = { ...listen, port: claim.port };

  const log = createLog('gateway');
  const command = configPath === undefined ? [MAIN] : [MAIN, '--config', configPath];
  // Looked at again when the first worker is about to listen, which takes a second or two.
  let claimed: Promise<PortClaim> | undefined;
  const port = () => (claimed ??= claimPort(address));
  let reloaded: ConfigText | undefined;
  let revisionServed = 0;
  const pool = createWorkerPool({ size: processes, launch, endMs: drainMs + CLOSE_MS, clock, log });

  function launch(worker: number, seat: number): Worker {
    const assignment = () => ({ seat, config: loaded.read, reloaded });
    const { health, lookAtHost: onFound } = pool;
    return launchWorker({ worker, command, env, assignment, port, onReload, onFound, health, clock });
  }

  function readPlansInUse(): ReadonlyMap<string, number> {
    const opened = openStore(join(config.storage.dataDir, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
    if (opened.kind === 'unusable') throw new Error(opened.sentence);
    try {
      return plansInUse(opened.store);
    } finally {
      opened.store.close();
    }
  }

  const configReader = createConfigReader(loaded, { env, used: readPlansInUse, clock, log });

  /** Reads plans and prices again for all workers; a config that is refused changes nothing. */
  async function reload(announces: boolean): Promise<void> {
    const again = await configReader.readAgain();
    if (again.kind === 'unusable') return log.error({ problems: again.lines }, 'the config was not reloaded');
    pool.setReloadedConfig((reloaded = again.read), announces);
    log.info('plans and credits reloaded');
  }

  /** Every worker has seen the same revision. */
  function onReload(revision: number): void {
    if (revision <= revisionServed) return;
    revisionServed = revision;
    void reload(false);
  }

  const own = new Registry();
  expose(own, 'processes{}', (put) => put(pool.listening()));
  expose(own, 'process_restarts_total{}', (put) => put(pool.restarts()));
  expose(own, 'process_hangs_total{}', (put) => put(pool.hangs()));
  expose(own, 'log_lines_dropped_total{}', (put) => put(droppedLines()));
  const text = () => pool.collect().then(() => pool.totals.text(own));
  const status = async () => togetherStatus(await pool.collect());
  const metrics = listenForMetrics(metricsAddress, { text, contentType: own.contentType }, status);
  if (metrics.kind === 'refused') return [metrics.sentence];

  const announce = () => {
    process.on('SIGHUP', () => void reload(true));
    // A reload may have been requested while the workers started.
    if (configReader.hasChanged()) void reload(true);
    const { href } = gatewayUrl({ ...config.gateway, listen: address });
    if (supervised) writeLines('stdout', `${JSON.stringify({ ready: 'gateway', url: href })}\n`);
    log.info({ url: href, metrics: metrics.url.href, processes }, 'listening');
  };
  const problems = await pool.run(stop, announce);
  await metrics.close();
  locking.lock.release();
  log.info('stopped');
  return problems;
}

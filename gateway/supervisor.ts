import { join } from 'node:path';
import { AggregatorRegistry, Registry } from 'prom-client';
import type { Clock } from '../shared/clock.ts';
import { type Config, gatewayUrl } from '../shared/config/config.ts';
import type { Listen } from '../shared/config/kinds.ts';
import type { Environment } from '../shared/config/table.ts';
import type { GatewayStatus } from '../shared/gateway-status.ts';
import { listenComplaint } from '../shared/listen-complaint.ts';
import { createLog, droppedLines, type Log, writeLines } from '../shared/log.ts';
import { fired } from '../shared/stop.ts';
import { takeLock } from '../shared/store/lock.ts';
import { togetherStatus } from './status.ts';
import { expose, listenForMetrics } from './metrics.ts';
import { launchWorker, type MetricsJson, type Worker } from './workers.ts';

/**
 * Takes `listen` for this process alone. Workers share the port, and the system would not report that a foreign process
 * shares it too and gets a part of their connections; so the address is held until they are about to listen.
 * `release` frees it for processes that share it, and resolves to the port, chosen by the system if the config's is 0.
 */
export function holdAddress(listen: Listen) {
  try {
    const fetch = () => new Response(null, { status: 503 });
    const server = Bun.serve({ ...listen, reusePort: false, fetch });
    const port = server.port ?? listen.port;
    let released: Promise<number> | undefined;
    const release = () => (released ??= server.stop(true).then(() => port));
    return { kind: 'held', release } as const;
  } catch (error) {
    return { kind: 'refused', sentence: listenComplaint('gateway.listen', listen, error) } as const;
  }
}

/** The gauge that is shown for each process: in a sum, one process that grows would not be seen. */
const PER_PROCESS = 'process_resident_memory_bytes';

/** The metrics of all workers as one text; counters of ended workers stay, for a sum that falls looks like a restart. */
export class MetricTotals {
  readonly #running = new Map<number, MetricsJson>();
  #ended: readonly object[] = [];

  /** Replaces the metrics of a worker that runs. */
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

  /** Everything in Prometheus's text format; `own` are the supervisor's. */
  async text(own: Registry): Promise<string> {
    const all = [...this.#running.values(), this.#ended, await own.getMetricsAsJSON()];
    return AggregatorRegistry.aggregate(all).metrics();
  }
}

type PoolOptions = Readonly<{
  size: number;
  /** Starts a worker; throws when the system refuses it. */
  launch(worker: number): Worker;
  clock: Clock;
  log: Log;
}>;

/** A worker drains for 25 seconds at most; one that takes longer hangs. */
const DRAIN_MS_MAX = 28_000;

/** A worker that has listened for this long works: its exit does not count with those before it. */
const PROVEN_MS = 10_000;
const RESTART_DELAY_MS = 100;
const RESTART_DELAY_MS_MAX = 10_000;

/** After so many starts in a row without listening, the next would fail too. */
export const START_FAILURES_MAX = 5;

/** Keeps `size` workers running. */
export function createWorkerPool({ size, launch, clock, log }: PoolOptions) {
  const totals = new MetricTotals();
  const running = new Map<number, Worker>();
  const listening = new Map<number, Worker>();
  const failed = Promise.withResolvers<string>();
  let restarts = 0;

  /**
   * Starts every worker, calls `onReady` when all listen, and replaces those that end until `stop`; then drains. Resolves
   * to one sentence for each problem: no worker serves and a next one would not either, or some did not drain in time.
   */
  async function run(stop: AbortSignal, onReady: () => void): Promise<readonly string[]> {
    const over = new AbortController();
    const end = AbortSignal.any([stop, over.signal]);
    const started = (worker: number) =>
      new Promise<void>((resolve) => void keepRunning(worker, end, resolve));
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

  /** Runs a worker, and another one whenever it ends, until `end`. A first one that cannot start ends the pool. */
  async function keepRunning(worker: number, end: AbortSignal, onListening: () => void): Promise<void> {
    let exitsInARow = 0;
    let startFailures = 0;
    for (let isFirst = true; ; isFirst = false) {
      const { listenedMs, ...exit } = await runOnce(worker, onListening);
      if (end.aborted) return;
      exitsInARow = (listenedMs ?? 0) >= PROVEN_MS ? 1 : exitsInARow + 1;
      startFailures = listenedMs === undefined ? startFailures + 1 : 0;
      const isHopeless = startFailures >= START_FAILURES_MAX && listening.size === 0;
      if ((isFirst && listenedMs === undefined) || isHopeless) {
        const sentence = exit.stderrTail || `A gateway process ended before it could listen (${exit.how}).`;
        return failed.resolve(sentence);
      }
      const doubled = RESTART_DELAY_MS * 2 ** (exitsInARow - 2);
      const waitMs = exitsInARow === 1 ? 0 : Math.min(RESTART_DELAY_MS_MAX, doubled);
      log.error({ process: worker, ...exit, waitMs }, 'a process ended and is started again');
      await clock.sleep(waitMs, end);
      if (end.aborted) return;
      restarts++;
    }
  }

  /** Runs one worker process to its end. `listenedMs` is `undefined` when it never listened. */
  async function runOnce(number: number, onListening: () => void) {
    let worker: Worker;
    try {
      worker = launch(number);
    } catch (error) {
      // The system may be out of processes or files: that counts as an exit, and does not end the workers that serve.
      const reason = error instanceof Error ? error.message : String(error);
      const stderrTail = `A gateway process could not be started (${reason}).`;
      return { listenedMs: undefined, how: 'not started', stderrTail };
    }
    running.set(number, worker);
    const listened = await worker.listening;
    const sinceMs = clock.monotonic();
    if (listened) {
      listening.set(number, worker);
      onListening();
    }
    const exit = await worker.ended;
    running.delete(number);
    listening.delete(number);
    totals.close(number);
    return { ...exit, listenedMs: listened ? clock.monotonic() - sinceMs : undefined };
  }

  /** Makes every worker drain and waits; resolves to those that had to be killed. */
  async function drain(): Promise<readonly number[]> {
    const drained = new AbortController();
    const ended = Promise.all([...running.values()].map((worker) => worker.ended));
    for (const worker of running.values()) worker.signal('SIGTERM');
    const late = clock.sleep(DRAIN_MS_MAX, drained.signal).then(() => [...running]);
    const hanging = await Promise.race([ended.then(() => []), late]);
    drained.abort();
    for (const [, worker] of hanging) worker.signal('SIGKILL');
    await ended;
    return hanging.map(([number]) => number);
  }

  /** Makes every worker that listens read plans and prices again. */
  function reload(): void {
    for (const worker of listening.values()) worker.signal('SIGHUP');
  }

  /** Collects the reports of all workers that listen: updates the totals, and gives the states of the backends. */
  async function collect(): Promise<readonly GatewayStatus[]> {
    const statuses = [...listening].map(async ([number, worker]) => {
      const report = await worker.report();
      // A worker that ended meanwhile is in the totals already.
      if (report !== undefined && listening.get(number) === worker) totals.update(number, report.metrics);
      return report?.status;
    });
    return (await Promise.all(statuses)).filter((status) => status !== undefined);
  }

  return {
    run,
    reload,
    collect,
    totals,
    /** How many workers listen. */
    listening: () => listening.size,
    /** How many workers were started to replace another. */
    restarts: () => restarts,
  };
}

/** How the supervisor was started; its workers are started with the same. */
type Started = Readonly<{ configPath: string | undefined; env: Environment; supervised: boolean }>;

const MAIN = join(import.meta.dir, 'main.ts');

/**
 * Runs `gateway.processes` workers on one port until `stop`; resolves to one sentence for each problem that ended it.
 * It serves no requests itself: it holds the data directory and the metrics listener, and replaces workers that end.
 */
export async function superviseGateway(
  config: Config,
  { configPath, env, supervised }: Started,
  stop: AbortSignal,
  clock: Clock,
): Promise<readonly string[]> {
  const { listen, metrics: metricsAddress, processes } = config.gateway;
  const locking = takeLock(config.storage.dataDir, 'gateway');
  if (locking.kind === 'refused') return [locking.sentence];
  const address = holdAddress(listen);
  if (address.kind === 'refused') return [address.sentence];

  const log = createLog('gateway');
  const command = configPath === undefined ? [MAIN] : [MAIN, '--config', configPath];
  const launch = (worker: number) => launchWorker({ worker, command, env, port: address.release, clock });
  const pool = createWorkerPool({ size: processes, launch, clock, log });
  const own = new Registry();
  expose(own, 'processes{}', (put) => put(pool.listening()));
  expose(own, 'process_restarts_total{}', (put) => put(pool.restarts()));
  expose(own, 'log_lines_dropped_total{}', (put) => put(droppedLines()));
  const text = () => pool.collect().then(() => pool.totals.text(own));
  const status = async () => togetherStatus(await pool.collect());
  const metrics = listenForMetrics(metricsAddress, { text, contentType: own.contentType }, status);
  if (metrics.kind === 'refused') return [metrics.sentence];

  process.on('SIGHUP', pool.reload);
  const announce = async () => {
    const { href } = gatewayUrl({ ...config.gateway, listen: { ...listen, port: await address.release() } });
    if (supervised) writeLines('stdout', `${JSON.stringify({ ready: 'gateway', url: href })}\n`);
    log.info({ url: href, metrics: metrics.url.href, processes }, 'listening');
  };
  const problems = await pool.run(stop, () => void announce());
  await metrics.close();
  locking.lock.release();
  log.info('stopped');
  return problems;
}

import { join } from 'node:path';
import { AggregatorRegistry, Counter, Gauge, Registry } from 'prom-client';
import { unreachable } from '../shared/brand.ts';
import type { Clock } from '../shared/clock.ts';
import { type Config, gatewayUrl } from '../shared/config/config.ts';
import type { Listen } from '../shared/config/kinds.ts';
import type { Environment } from '../shared/config/table.ts';
import type { GatewayStatus } from '../shared/gateway-status.ts';
import { listenComplaint } from '../shared/listen-complaint.ts';
import { createLog, type Log } from '../shared/log.ts';
import { fired } from '../shared/stop.ts';
import { takeLock } from '../shared/store/lock.ts';
import { togetherStatus } from './health.ts';
import { listenForMetrics } from './metrics.ts';
import {
  afterExit,
  launchWorker,
  type MetricJson,
  metricsFrom,
  NO_EXITS,
  restartDelayMs,
  START_FAILURES_MAX,
  type Worker,
  type WorkerExit,
} from './workers.ts';

type HeldAddress =
  | {
      readonly kind: 'held';
      /** Frees the address for processes that share it; resolves to the port, chosen by the system if the config's is 0. */
      release(): Promise<number>;
    }
  | { readonly kind: 'refused'; readonly sentence: string };

/**
 * Takes `listen` for this process alone. Workers share the port, and the system would not report that a foreign process
 * shares it too and gets a part of their connections; so the address is held until they are about to listen.
 */
export function holdAddress(listen: Listen): HeldAddress {
  try {
    const fetch = () => new Response(null, { status: 503 });
    const server = Bun.serve({ ...listen, reusePort: false, fetch });
    const port = server.port ?? listen.port;
    let released: Promise<number> | undefined;
    return { kind: 'held', release: () => (released ??= server.stop(true).then(() => port)) };
  } catch (error) {
    return { kind: 'refused', sentence: listenComplaint('gateway.listen', listen, error) };
  }
}

/** The gauge that is shown for each process: in a sum, one process that grows would not be seen. */
const PER_PROCESS = 'process_resident_memory_bytes';

/**
 * The metrics of all workers as one text. Counters of workers that ended stay in the sums: a sum that falls looks like a
 * restart of the whole gateway to a query that computes a rate.
 */
export function createMetricTotals() {
  const running = new Map<number, readonly MetricJson[]>();
  let ended: readonly MetricJson[] = [];

  /** Replaces the metrics of a worker that runs. */
  function update(worker: number, metrics: readonly MetricJson[]): void {
    const labelled = metrics.map((metric) =>
      metric.name === PER_PROCESS ? withProcess(metric, worker) : metric,
    );
    running.set(worker, labelled);
  }

  /** The worker has ended: its counters stay, its gauges go. */
  function close(worker: number): void {
    const counters = (running.get(worker) ?? []).filter(
      ({ type }) => type === 'counter' || type === 'histogram',
    );
    running.delete(worker);
    ended = metricsFrom(AggregatorRegistry.aggregate([ended, counters]).getMetricsAsArray());
  }

  /** Everything in Prometheus's text format; `own` are the supervisor's. */
  async function text(own: Registry): Promise<string> {
    const all = [...running.values(), ended, metricsFrom(await own.getMetricsAsJSON())];
    return AggregatorRegistry.aggregate(all).metrics();
  }

  return { update, close, text };
}

function withProcess(metric: MetricJson, worker: number): MetricJson {
  const values = metric.values.map(({ value, labels }) => ({
    value,
    labels: { ...labels, process: worker },
  }));
  return { ...metric, values };
}

/** Why the pool ended. */
export type PoolEnd =
  | { readonly kind: 'drained' }
  /** These workers did not drain in time. */
  | { readonly kind: 'killed'; readonly workers: readonly number[] }
  /** No worker serves and a next one would not either; `sentence` is what the last one wrote to stderr. */
  | { readonly kind: 'gave-up'; readonly sentence: string };

type PoolOptions = Readonly<{
  size: number;
  /** Starts a worker; throws when the system refuses it. */
  launch(worker: number): Worker;
  clock: Clock;
  log: Log;
  totals: ReturnType<typeof createMetricTotals>;
}>;

/** A worker drains for 25 seconds at most; one that takes longer hangs. */
const DRAIN_MS_MAX = 28_000;

/** Keeps `size` workers running. */
export function createWorkerPool({ size, launch, clock, log, totals }: PoolOptions) {
  const running = new Map<number, Worker>();
  const listening = new Map<number, Worker>();
  let restarts = 0;

  /** Starts every worker, calls `onReady` when all listen, and replaces those that end until `stop`; then drains. */
  async function run(stop: AbortSignal, onReady: () => void): Promise<PoolEnd> {
    const failed = Promise.withResolvers<string>();
    const over = new AbortController();
    const end = AbortSignal.any([stop, over.signal]);
    void startAll(end, failed.resolve).then(() => end.aborted || onReady());
    const sentence = await Promise.race([failed.promise, fired(stop)]);
    over.abort();
    const killed = await drain();
    if (sentence !== undefined) return { kind: 'gave-up', sentence };
    return killed.length === 0 ? { kind: 'drained' } : { kind: 'killed', workers: killed };
  }

  /** Resolves when all workers listen. The first one starts alone: a problem of the config or the stores is then reported once. */
  async function startAll(end: AbortSignal, fail: (sentence: string) => void): Promise<void> {
    const started = (worker: number) =>
      new Promise<void>((resolve) => void keepRunning(worker, end, resolve, fail));
    await started(1);
    if (end.aborted) return;
    await Promise.all(Array.from({ length: size - 1 }, (_, i) => started(i + 2)));
  }

  /** Runs a worker, and another one whenever it ends, until `end`. A first one that cannot start ends the pool. */
  async function keepRunning(
    worker: number,
    end: AbortSignal,
    onListening: () => void,
    fail: (sentence: string) => void,
  ): Promise<void> {
    let record = NO_EXITS;
    for (let isFirst = true; ; isFirst = false) {
      const { listenedMs, ...exit } = await runOnce(worker, onListening);
      if (end.aborted) return;
      record = afterExit(record, listenedMs);
      const isHopeless = record.startFailures >= START_FAILURES_MAX && listening.size === 0;
      if ((isFirst && listenedMs === undefined) || isHopeless) return fail(sentenceOf(exit));
      const waitMs = restartDelayMs(record);
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
    let killed: readonly number[] = [];
    void clock.sleep(DRAIN_MS_MAX, drained.signal).then(() => {
      if (drained.signal.aborted) return;
      killed = [...running.keys()];
      for (const worker of running.values()) worker.signal('SIGKILL');
    });
    for (const worker of running.values()) worker.signal('SIGTERM');
    await Promise.all([...running.values()].map(({ ended }) => ended));
    drained.abort();
    return killed;
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
    /** Makes every worker that listens read plans and prices again. */
    reload: () => listening.forEach((worker) => worker.signal('SIGHUP')),
    collect,
    listening: () => listening.size,
    /** How many workers were started to replace another. */
    restarts: () => restarts,
  };
}

function sentenceOf({ how, stderrTail }: WorkerExit): string {
  return stderrTail === '' ? `A gateway process ended before it could listen (${how}).` : stderrTail;
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
  const totals = createMetricTotals();
  const command = configPath === undefined ? [MAIN] : [MAIN, '--config', configPath];
  const port = address.release;
  const stderr = (bytes: Uint8Array) => void process.stderr.write(bytes);
  const launch = (worker: number) => launchWorker({ worker, command, env, port, stderr, clock });
  const pool = createWorkerPool({ size: processes, launch, clock, log, totals });
  const own = registryOf(pool);
  const text = async () => {
    await pool.collect();
    return totals.text(own);
  };
  const status = async () => togetherStatus(await pool.collect());
  const metrics = listenForMetrics(metricsAddress, { text, contentType: own.contentType }, status);
  if (metrics.kind === 'refused') return [metrics.sentence];

  process.on('SIGHUP', pool.reload);
  const announce = async () => {
    const { href } = gatewayUrl({ ...config.gateway, listen: { ...listen, port: await port() } });
    if (supervised) console.log(JSON.stringify({ ready: 'gateway', url: href }));
    log.info({ url: href, metrics: metrics.url.href, processes }, 'listening');
  };
  const end = await pool.run(stop, () => void announce());
  await metrics.close();
  locking.lock.release();
  log.info('stopped');
  return problemsOf(end);
}

/** The supervisor's own metrics. */
function registryOf({ listening, restarts }: ReturnType<typeof createWorkerPool>): Registry {
  const registry = new Registry();
  const registers = [registry];
  new Gauge({
    name: 'sluice_gateway_processes',
    help: 'Processes that listen.',
    registers,
    collect() {
      this.set(listening());
    },
  });
  new Counter({
    name: 'sluice_gateway_process_restarts_total',
    help: 'Processes started in the place of one that ended.',
    registers,
    collect() {
      this.reset();
      this.inc(restarts());
    },
  });
  return registry;
}

function problemsOf(end: PoolEnd): readonly string[] {
  switch (end.kind) {
    case 'drained':
      return [];
    case 'killed':
      return [`Gateway processes ${end.workers.join(', ')} did not stop in time and were killed.`];
    case 'gave-up':
      return [end.sentence];
    default:
      return unreachable(end);
  }
}

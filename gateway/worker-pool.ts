import { AggregatorRegistry, type Registry } from 'prom-client';
import type { Clock } from '../shared/clock.ts';
import type { ConfigText } from '../shared/config/load.ts';
import type { GatewayStatus } from '../shared/gateway-status.ts';
import type { Log } from '../shared/log.ts';
import { fired } from '../shared/process.ts';
import { createHostHealth, HOST_DRAINING, type HostHealth } from './health.ts';
import { HEARTBEAT_MS, type MetricsJson, type Worker } from './workers.ts';

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

/** A worker that listens and says nothing for this long hangs. */
const SILENT_MS_MAX = 5_000;

/** A worker that has listened for this long works: its exit does not count with those before it. */
const PROVEN_MS = 10_000;
const RESTART_DELAY_MS = 100;
const RESTART_DELAY_MS_MAX = 10_000;

/** After so many starts in a row without listening, the next would fail too. */
export const START_FAILURES_MAX = 5;

/** The record of a seat's workers; the exits count from the last one that worked. */
type Seat = Readonly<{ exits: number; startFailures: number; isFirst: boolean }>;

const NEW_SEAT: Seat = { exits: 0, startFailures: 0, isFirst: true };

/**
 * Decides what follows a worker's exit, or its draining by itself, after it has listened for `listenedMs` (`undefined`: it never
 * listened). `failed`: the first worker of the seat could not start, or none can any more while nobody serves.
 */
export function afterExit(seat: Seat, listenedMs: number | undefined, isServed: boolean) {
  const exits = (listenedMs ?? 0) >= PROVEN_MS ? 1 : seat.exits + 1;
  const startFailures = listenedMs === undefined ? seat.startFailures + 1 : 0;
  const isHopeless = startFailures >= START_FAILURES_MAX && !isServed;
  if ((seat.isFirst && listenedMs === undefined) || isHopeless) return { kind: 'failed' } as const;
  const doubled = RESTART_DELAY_MS * 2 ** (exits - 2);
  const waitMs = exits === 1 ? 0 : Math.min(RESTART_DELAY_MS_MAX, doubled);
  return { kind: 'again', waitMs, seat: { exits, startFailures, isFirst: false } } as const;
}

/** A process of the pool until it has ended. */
type Running = {
  readonly worker: Worker;
  state: 'starting' | 'listening' | 'ending';
  /** Once it was to end: whether it took too long and was killed. */
  late?: Promise<boolean>;
};

/**
 * Keeps `size` seats taken. A worker's number, which names its lock and node, is its seat's, or a spare one while that drains.
 *
 * ```mermaid
 * stateDiagram-v2
 *   [*] --> starting: a seat is free
 *   starting --> listening: it listens
 *   listening --> ending: it drains, or hangs and is killed
 *   starting --> gone: it ends, or is killed after a minute
 *   listening --> gone: it ends
 *   ending --> gone: it ends, or takes too long and is killed
 *   gone --> starting: `afterExit` has another take the seat, at once or after a wait
 *   gone --> [*]: all are to stop, or the pool has failed
 * ```
 *
 * When all are to stop, each is asked to drain, one that starts too; its state changes when it says that it does.
 */
export class WorkerPool {
  readonly totals = new MetricTotals();
  /** The health of the host; `undefined` before anybody found something. */
  health: HostHealth | undefined;
  restarts = 0;
  hangs = 0;
  readonly #options: PoolOptions;
  readonly #running = new Map<number, Running>();
  readonly #failed = Promise.withResolvers<string>();
  readonly #host: ReturnType<typeof createHostHealth>;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#host = createHostHealth(options.clock, options.log);
  }

  /** How many workers listen. */
  get listening(): number {
    return this.#inState('listening').length;
  }

  /** Starts every worker, calls `onReady` when all listen, replaces those that end until `stop`, and drains; gives problems. */
  async run(stop: AbortSignal, onReady: () => void): Promise<readonly string[]> {
    const over = new AbortController();
    const end = AbortSignal.any([stop, over.signal]);
    void this.#watchBeats(end);
    void this.#startAll(end, onReady);
    const sentence = await Promise.race([this.#failed.promise, fired(stop)]);
    over.abort();
    const killed = await this.#drain();
    if (sentence !== undefined) return [sentence];
    if (killed.length === 0) return [];
    return [`Gateway processes ${killed.join(', ')} did not stop in time and were killed.`];
  }

  /** The first one starts alone: a problem of the config or the stores is then reported once. */
  async #startAll(end: AbortSignal, onReady: () => void): Promise<void> {
    const started = (seat: number) =>
      new Promise<void>((resolve) => void this.#keepTaken(seat, end, resolve));
    await started(1);
    if (end.aborted) return;
    await Promise.all(Array.from({ length: this.#options.size - 1 }, (_, i) => started(i + 2)));
    if (!end.aborted) onReady();
  }

  /** Runs a worker in a seat, and another one whenever it ends or drains, until `end`. */
  async #keepTaken(seatNumber: number, end: AbortSignal, onListening: () => void): Promise<void> {
    const { clock, log } = this.#options;
    let seat = NEW_SEAT;
    let number = seatNumber;
    for (;;) {
      const { listenedMs, ...exit } = await this.#runOnce(number, seatNumber, onListening);
      if (end.aborted) return;
      const next = afterExit(seat, listenedMs, this.listening > 0);
      if (next.kind === 'failed') {
        const sentence = exit.stderrTail || `A gateway process ended before it could listen (${exit.how}).`;
        return this.#failed.resolve(sentence);
      }
      const { waitMs } = next;
      seat = next.seat;
      if (exit.how === DRAINING) log.info({ process: number, waitMs }, 'a process drains and is replaced');
      else log.error({ process: number, ...exit, waitMs }, 'a process ended and is started again');
      await clock.sleep(waitMs, end);
      if (end.aborted) return;
      this.restarts++;
      // What a killed worker held comes back with its number; one that drains gives it back.
      if (exit.how === DRAINING) number = seatNumber;
      if (this.#running.has(number)) for (number = 1; this.#running.has(number);) number++;
    }
  }

  /** Runs one worker process until it ends, or drains by itself. `listenedMs` is `undefined` when it never listened. */
  async #runOnce(number: number, seat: number, onListening: () => void) {
    const { launch, clock } = this.#options;
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
    this.#running.set(number, one);
    const ended = worker.ended.then((exit) => {
      this.#running.delete(number);
      this.totals.close(number);
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
      one.late ??= this.#killLate(number, one);
      return { how: DRAINING, stderrTail: '' };
    });
    const exit = await Promise.race([ended, draining]);
    return { ...exit, listenedMs: listened ? clock.monotonic() - sinceMs : undefined };
  }

  /** Waits for the end of a worker; resolves to whether it took too long and was killed. */
  async #killLate(number: number, { worker }: Running): Promise<boolean> {
    const { clock, endMs, log } = this.#options;
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
  async #drain(): Promise<readonly number[]> {
    const all = [...this.#running];
    this.#setHealth(HOST_DRAINING);
    for (const [, { worker }] of all) worker.signal('SIGTERM');
    const late = await Promise.all(all.map(([number, one]) => (one.late ??= this.#killLate(number, one))));
    return all.map(([number]) => number).filter((_, i) => late[i]);
  }

  /** Kills workers whose event loop stands still. After a suspension, or on a busy machine, they get more time. */
  async #watchBeats(end: AbortSignal): Promise<void> {
    const { clock, log } = this.#options;
    let [lookedMs, onTimeSinceMs] = [clock.monotonic(), -Infinity];
    while (!end.aborted) {
      await clock.sleep(HEARTBEAT_MS, end);
      this.lookAtHost();
      const nowMs = clock.monotonic();
      if (nowMs - lookedMs > 2 * HEARTBEAT_MS) onTimeSinceMs = nowMs;
      lookedMs = nowMs;
      for (const [number, one] of this.#running) {
        const silentMs = nowMs - Math.max(one.worker.heardAtMs(), onTimeSinceMs);
        if (one.state !== 'listening' || silentMs <= SILENT_MS_MAX) continue;
        one.state = 'ending';
        this.hangs++;
        log.error({ process: number, silentMs: Math.round(silentMs) }, 'a process hangs and is killed');
        one.worker.signal('SIGKILL');
      }
    }
  }

  /** Folds what the workers found last into the health of the host, and tells each when it changes. */
  lookAtHost(): void {
    const found = this.#inState('listening').flatMap(({ worker }) => worker.findings() ?? []);
    if (found.length === 0 || this.health === HOST_DRAINING) return;
    this.#setHealth(this.#host.update(found));
  }

  #setHealth(now: HostHealth): void {
    if (now.ok === this.health?.ok && now.sentence === this.health.sentence) return;
    this.health = now;
    for (const { worker } of this.#running.values()) worker.setHealth(now);
  }

  #inState(state: Running['state']): readonly Running[] {
    return [...this.#running.values()].filter((one) => one.state === state);
  }

  /** Hands plans and prices to every worker; with `announces`, one of them notifies other apps. */
  setReloadedConfig(config: ConfigText, announces: boolean): void {
    const [announcer] = this.#inState('listening');
    for (const one of this.#running.values())
      one.worker.setReloadedConfig({ config, announces: announces && one === announcer });
  }

  /** Collects the reports of all workers that serve: updates the totals, and gives the states of the backends. */
  async collect(): Promise<readonly GatewayStatus[]> {
    const serving = [...this.#running].filter(([, { state }]) => state !== 'starting');
    const statuses = serving.map(async ([number, one]) => {
      const report = await one.worker.report();
      // A worker that ended meanwhile is in the totals already.
      if (report !== undefined && this.#running.get(number) === one)
        this.totals.update(number, report.metrics);
      return report?.status;
    });
    return (await Promise.all(statuses)).filter((status) => status !== undefined);
  }
}

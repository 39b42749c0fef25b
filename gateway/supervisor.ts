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
  afterDeath,
  type Child,
  CLEAN,
  type Ending,
  launchChild,
  type MetricJson,
  metricsFrom,
  STILLBORN_MAX,
  unborn,
  waitMsAfter,
} from './workers.ts';

/** An address that nobody else can take until `port` is asked for. */
type HeldAddress = Readonly<{
  /** Lets go of it, for processes that share it; resolves to the port, which the system chose if the config's is 0. */
  port(): Promise<number>;
}>;

type Holding =
  | { readonly kind: 'held'; readonly address: HeldAddress }
  | { readonly kind: 'refused'; readonly sentence: string };

/**
 * Takes `listen` for this process alone. Processes that share a port do not notice a stranger who shares it too and
 * would be given a part of their connections; so the address is held alone first, until they are about to listen.
 */
export function holdAddress(listen: Listen): Holding {
  try {
    const server = Bun.serve({
      ...listen,
      reusePort: false,
      fetch: () => new Response(null, { status: 503 }),
    });
    const chosen = server.port ?? listen.port;
    let letGo: Promise<number> | undefined;
    return {
      kind: 'held',
      address: { port: () => (letGo ??= server.stop(true).then(() => chosen)) },
    };
  } catch (error) {
    return { kind: 'refused', sentence: listenComplaint('gateway.listen', listen, error) };
  }
}

/**
 * The metrics of a crew as one text. What processes have counted is added up, and goes on being counted when they are
 * gone: a sum that fell would look like a restart of everything to who computes a rate from it.
 */
type Tally = Readonly<{
  /** What the process in `slot` has counted until now. */
  note(slot: number, metrics: readonly MetricJson[]): void;
  /** The process in `slot` is gone: its counters stay, its gauges go. */
  close(slot: number): void;
  /** Everything as Prometheus reads it; `own` are the supervisor's. */
  text(own: Registry): Promise<string>;
}>;

/** The gauge that is shown for each process: together, it would hide the one that grows. */
const PER_PROCESS = 'process_resident_memory_bytes';

export function createTally(): Tally {
  const present = new Map<number, readonly MetricJson[]>();
  let gone: readonly MetricJson[] = [];

  function note(slot: number, metrics: readonly MetricJson[]): void {
    present.set(
      slot,
      metrics.map((metric) => (metric.name === PER_PROCESS ? labelled(metric, slot) : metric)),
    );
  }

  function close(slot: number): void {
    const counted = (present.get(slot) ?? []).filter(
      ({ type }) => type === 'counter' || type === 'histogram',
    );
    present.delete(slot);
    gone = metricsFrom(together([gone, counted]).getMetricsAsArray());
  }

  async function text(own: Registry): Promise<string> {
    const all = [...present.values(), gone, metricsFrom(await own.getMetricsAsJSON())];
    return together(all).metrics();
  }

  return { note, close, text };
}

/** Adds up what has the same name and labels, or takes the least or the most of it where the metric says so. */
function together(lists: readonly (readonly MetricJson[])[]): Registry {
  return AggregatorRegistry.aggregate([...lists]);
}

function labelled(metric: MetricJson, slot: number): MetricJson {
  const values = metric.values.map(({ value, labels }) => ({ value, labels: { ...labels, process: slot } }));
  return { ...metric, values };
}

/** How a crew came to its end. */
export type CrewEnd =
  | { readonly kind: 'drained' }
  /** Processes in these seats did not drain in time. */
  | { readonly kind: 'killed'; readonly slots: readonly number[] }
  /** None serves and the next would not either; `words` are what the last one said. */
  | { readonly kind: 'gave-up'; readonly words: string };

type Crew = Readonly<{
  /** Fills every seat, calls `ready` when all listen, and keeps them filled until `stop`; then drains. */
  run(stop: AbortSignal, ready: () => void): Promise<CrewEnd>;
  /** Has every process that listens read its plans again. */
  reload(): void;
  /** Notes what every process that listens has counted. */
  count(): Promise<void>;
  /** How the backends stand for every process that listens and answers. */
  statuses(): Promise<readonly GatewayStatus[]>;
  /** Processes that listen now, and those started in the place of another. */
  listening(): number;
  restarts(): number;
}>;

type Deps = Readonly<{ size: number; launch(slot: number): Child; clock: Clock; log: Log; tally: Tally }>;

/** A process drains for 25 seconds at most; what is there longer hangs. */
const DRAIN_MS_MAX = 28_000;

export function createCrew({ size, launch, clock, log, tally }: Deps): Crew {
  const seated = new Map<number, Child>();
  const listening = new Map<number, Child>();
  let restarts = 0;

  async function run(stop: AbortSignal, ready: () => void): Promise<CrewEnd> {
    const failed = Promise.withResolvers<string>();
    const over = new AbortController();
    const end = AbortSignal.any([stop, over.signal]);
    const filled = fillAll(end, failed.resolve);
    void filled.then(() => end.aborted || ready());
    const words = await Promise.race([failed.promise, fired(stop)]);
    over.abort();
    const slow = await drain();
    if (words !== undefined) return { kind: 'gave-up', words };
    return slow.length === 0 ? { kind: 'drained' } : { kind: 'killed', slots: slow };
  }

  /** The first seat alone: what is wrong with the config or the stores is then said once. */
  async function fillAll(end: AbortSignal, fail: (words: string) => void): Promise<void> {
    await fill(1, end, fail);
    if (end.aborted) return;
    await Promise.all(Array.from({ length: size - 1 }, (_, i) => fill(i + 2, end, fail)));
  }

  /** Resolves when the seat's first process listens; goes on to keep the seat filled until `end`. */
  async function fill(slot: number, end: AbortSignal, fail: (words: string) => void): Promise<void> {
    const first = seat(slot);
    if (await first.listening) return void keep(slot, first, end, fail);
    if (!end.aborted) fail(saidBy(await first.ended));
    await fired(end);
  }

  async function keep(
    slot: number,
    first: Child,
    end: AbortSignal,
    fail: (words: string) => void,
  ): Promise<void> {
    let child = first;
    for (let record = CLEAN; ;) {
      const sinceMs = clock.monotonic();
      const listened = await child.listening;
      const ending = await child.ended;
      tally.close(slot);
      if (end.aborted) return;
      record = afterDeath(record, { listened, livedMs: clock.monotonic() - sinceMs });
      if (record.stillborn >= STILLBORN_MAX && listening.size === 0) return fail(saidBy(ending));
      const waitMs = waitMsAfter(record);
      log.error({ process: slot, ...ending, waitMs }, 'a process ended and is started again');
      await clock.sleep(waitMs, end);
      if (end.aborted) return;
      restarts++;
      child = seat(slot);
    }
  }

  /** Starts a process in the seat and follows whether it listens. */
  function seat(slot: number): Child {
    const child = launched(slot);
    seated.set(slot, child);
    void child.listening.then((listens) => listens && listening.set(slot, child));
    void child.ended.then(() => {
      if (seated.get(slot) === child) seated.delete(slot);
      if (listening.get(slot) === child) listening.delete(slot);
    });
    return child;
  }

  /** The system may be out of processes or files: that is a death like another, and no reason to end those that serve. */
  function launched(slot: number): Child {
    try {
      return launch(slot);
    } catch (error) {
      return unborn(error);
    }
  }

  /** Asks every process to drain and waits; gives the seats of those that had to be killed. */
  async function drain(): Promise<readonly number[]> {
    const drained = new AbortController();
    const slow: number[] = [];
    const kill = () => {
      if (drained.signal.aborted) return;
      for (const [slot, child] of seated) {
        slow.push(slot);
        child.signal('SIGKILL');
      }
    };
    void clock.sleep(DRAIN_MS_MAX, drained.signal).then(kill);
    for (const child of seated.values()) child.signal('SIGTERM');
    await Promise.all([...seated.values()].map(({ ended }) => ended));
    drained.abort();
    return slow;
  }

  async function count(): Promise<void> {
    const asking = [...listening].map(async ([slot, child]) => {
      const metrics = await child.count();
      if (metrics !== undefined && listening.get(slot) === child) tally.note(slot, metrics);
    });
    await Promise.all(asking);
  }

  async function statuses(): Promise<readonly GatewayStatus[]> {
    const told = await Promise.all([...listening.values()].map((child) => child.status()));
    return told.filter((status) => status !== undefined);
  }

  return {
    run,
    reload: () => listening.forEach((child) => child.signal('SIGHUP')),
    count,
    statuses,
    listening: () => listening.size,
    restarts: () => restarts,
  };
}

function saidBy({ how, words }: Ending): string {
  return words === '' ? `A gateway process ended before it could listen (${how}).` : words;
}

/** How the supervisor was started; its processes are started with the same. */
type Started = Readonly<{ configPath: string | undefined; env: Environment; supervised: boolean }>;

const MAIN = join(import.meta.dir, 'main.ts');

/**
 * Runs `gateway.processes` gateway processes on one port until `stop`; resolves to one sentence for each problem that
 * ended it. It serves nothing itself: it holds the data directory and the metrics listener, and fills the place of a
 * process that ends.
 */
export async function superviseGateway(
  config: Config,
  run: Started,
  stop: AbortSignal,
  clock: Clock,
): Promise<readonly string[]> {
  const { listen, metrics: metricsAddress, processes } = config.gateway;
  const locking = takeLock(config.storage.dataDir, 'gateway');
  if (locking.kind === 'refused') return [locking.sentence];
  const holding = holdAddress(listen);
  if (holding.kind === 'refused') return [holding.sentence];

  const log = createLog('gateway');
  const tally = createTally();
  const args = run.configPath === undefined ? [] : ['--config', run.configPath];
  const { port } = holding.address;
  const err = (bytes: Uint8Array) => void process.stderr.write(bytes);
  const crew = createCrew({
    size: processes,
    launch: (slot) => launchChild({ slot, command: [MAIN, ...args], env: run.env, port, err, clock }),
    clock,
    log,
    tally,
  });
  const own = registryOf(crew);
  const text = async () => {
    await crew.count();
    return tally.text(own);
  };
  const metrics = listenForMetrics(metricsAddress, { text, contentType: own.contentType }, async () =>
    togetherStatus(await crew.statuses()),
  );
  if (metrics.kind === 'refused') return [metrics.sentence];

  process.on('SIGHUP', crew.reload);
  const announce = async () => {
    const { href } = gatewayUrl({ ...config.gateway, listen: { ...listen, port: await port() } });
    if (run.supervised) console.log(JSON.stringify({ ready: 'gateway', url: href }));
    log.info({ url: href, metrics: metrics.url.href, processes }, 'listening');
  };
  const end = await crew.run(stop, () => void announce());
  await metrics.close();
  locking.lock.release();
  log.info('stopped');
  return problemsOf(end);
}

function registryOf(crew: Crew): Registry {
  const registry = new Registry();
  const registers = [registry];
  new Gauge({
    name: 'sluice_gateway_processes',
    help: 'Processes that listen.',
    registers,
    collect() {
      this.set(crew.listening());
    },
  });
  new Counter({
    name: 'sluice_gateway_process_restarts_total',
    help: 'Processes started in the place of one that ended.',
    registers,
    collect() {
      this.reset();
      this.inc(crew.restarts());
    },
  });
  return registry;
}

function problemsOf(end: CrewEnd): readonly string[] {
  switch (end.kind) {
    case 'drained':
      return [];
    case 'killed':
      return [`Gateway processes ${end.slots.join(', ')} did not stop in time and were killed.`];
    case 'gave-up':
      return [end.words];
    default:
      return unreachable(end);
  }
}

import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { urlOf } from '../shared/config/config.ts';
import type { Listen } from '../shared/config/kinds.ts';
import type { GatewayStatus } from '../shared/gateway-status.ts';
import { listenComplaint } from '../shared/listen-complaint.ts';
import type { StoreLink } from './limits/lease-sync.ts';
import type { MethodClass } from './methods/table.ts';
import { type Backend, COMMITMENTS } from './upstream/backend.ts';
import type { Cache } from './upstream/cache.ts';
import type { Failure } from './upstream/failure.ts';
import { type MetricJson, metricsFrom } from './workers.ts';

/**
 * Adds what the registry shows of each backend whenever it is asked. Of several processes, a backend is in when all of
 * them have it in, and its slot is the newest that one of them has seen.
 */
function gaugeBackends(registry: Registry, backends: readonly Backend[]): void {
  const registers = [registry];
  new Gauge({
    name: 'sluice_gateway_backend_calls_in_flight',
    help: 'Calls at a backend, to the last byte of their answers.',
    labelNames: ['backend'],
    registers,
    collect() {
      for (const { config, inFlight } of backends) this.set({ backend: config.name }, inFlight);
    },
  });
  new Gauge({
    name: 'sluice_gateway_backend_in',
    help: '1 while a backend takes part, 0 while probes leave it out.',
    labelNames: ['backend'],
    aggregator: 'min',
    registers,
    collect() {
      for (const { config, health } of backends)
        this.set({ backend: config.name }, health.excludedBecause === undefined ? 1 : 0);
    },
  });
  new Gauge({
    name: 'sluice_gateway_backend_slot',
    help: 'Newest slot that a backend has shown, by commitment.',
    labelNames: ['backend', 'commitment'],
    aggregator: 'max',
    registers,
    collect() {
      for (const { config, slots: view } of backends)
        for (const commitment of COMMITMENTS)
          // A slot that is not known is no slot 0, which would look like a lag.
          if (view.tip[commitment] > 0) this.set({ backend: config.name, commitment }, view.tip[commitment]);
    },
  });
}

/** Adds what the registry shows of the store of shared limits. Of several processes, it is out when one of them finds it so. */
function gaugeStore(registry: Registry, link: StoreLink): void {
  const registers = [registry];
  new Gauge({
    name: 'sluice_gateway_store_out',
    help: '1 while the store of shared limits does not answer.',
    aggregator: 'max',
    registers,
    collect() {
      this.set(link.isOut() ? 1 : 0);
    },
  });
  new Counter({
    name: 'sluice_gateway_store_messages_total',
    help: 'Messages to the store of shared limits, by outcome.',
    labelNames: ['outcome'],
    registers,
    collect() {
      const { messages, failed } = link.counts();
      this.reset();
      this.inc({ outcome: 'answered' }, messages - failed);
      this.inc({ outcome: 'failed' }, failed);
    },
  });
  new Counter({
    name: 'sluice_gateway_store_asks_total',
    help: 'Asks in these messages, each for one account: with Redis, commands.',
    registers,
    collect() {
      this.reset();
      this.inc(link.counts().asks);
    },
  });
}

/** Adds what the registry shows of the answers that are kept in memory. */
function gaugeCache(registry: Registry, cache: Pick<Cache, 'counts'>): void {
  const registers = [registry];
  new Gauge({
    name: 'sluice_gateway_cache_bytes',
    help: 'Memory of answers that never change.',
    registers,
    collect() {
      this.set(cache.counts().bytes);
    },
  });
  new Counter({
    name: 'sluice_gateway_cache_reads_total',
    help: 'Calls whose answer may be kept, by outcome: hit when it was, else miss.',
    labelNames: ['outcome'],
    registers,
    collect() {
      const { hits, misses } = cache.counts();
      this.reset();
      this.inc({ outcome: 'hit' }, hits);
      this.inc({ outcome: 'miss' }, misses);
    },
  });
}

/** What the gateway counts. Labels are the unions' own kinds and the methods of the table, so their number is bounded. */
export type Metrics = Readonly<{
  outcome(kind: string): void;
  call(method: string, outcome: string): void;
  failure(backend: Backend, kind: Failure['kind'] | 'probe'): void;
  cut(backend: Backend, reason: string): void;
  retry(made: boolean): void;
  firstByte(kind: MethodClass, seconds: number): void;
  /** Shows the store of shared limits too. */
  showStore(link: StoreLink): void;
  /** Shows the kept answers too. */
  showCache(cache: Pick<Cache, 'counts'>): void;
  /** The values of this process, for a supervisor that adds up those of several. */
  values(): Promise<readonly MetricJson[]>;
  text(): Promise<string>;
  contentType: string;
}>;

/** Counts by one or two labels, as numbers: to find a counter of prom-client by its labels costs a microsecond a call. */
class Counts {
  readonly #counts = new Map<string, Map<string, number>>();

  add(first: string, second = ''): void {
    let seconds = this.#counts.get(first);
    if (seconds === undefined) this.#counts.set(first, (seconds = new Map()));
    seconds.set(second, (seconds.get(second) ?? 0) + 1);
  }

  /** A counter of prom-client that has these counts whenever it is read. */
  expose(name: string, help: string, labelNames: readonly [string, string?], registers: Registry[]): this {
    const counts = this.#counts;
    const [firstLabel, secondLabel] = labelNames;
    new Counter({
      name,
      help,
      labelNames: labelNames.filter((label) => label !== undefined),
      registers,
      collect() {
        this.reset();
        for (const [first, seconds] of counts) {
          for (const [second, count] of seconds) {
            const labels = secondLabel === undefined ? {} : { [secondLabel]: second };
            this.inc({ [firstLabel]: first, ...labels }, count);
          }
        }
      },
    });
    return this;
  }
}

/** Upper bounds of the times until the first byte, in seconds. */
const BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];

/** A histogram by class of method, kept as numbers for the same reason. */
class FirstByteTimes extends Histogram<'class'> {
  readonly #times = new Map<string, { sum: number; readonly buckets: Float64Array }>();

  add(kind: string, seconds: number): void {
    let times = this.#times.get(kind);
    if (times === undefined) {
      times = { sum: 0, buckets: new Float64Array(BOUNDS.length + 1) };
      this.#times.set(kind, times);
    }
    times.sum += seconds;
    let i = 0;
    while (i < BOUNDS.length && seconds > (BOUNDS[i] ?? Infinity)) i++;
    times.buckets[i] = (times.buckets[i] ?? 0) + 1;
  }

  /**
   * What prom-client's own histogram gives its registry for the text, and its `get` for the values: buckets that hold
   * all below them, the sum and the count.
   */
  getForPromString() {
    const values = [...this.#times].flatMap(([kind, { sum, buckets }]) => {
      const sharedLabels = { class: kind };
      let count = 0;
      const cumulative = [...buckets].map((inBucket, i) => {
        count += inBucket;
        const labels = { le: BOUNDS[i] ?? '+Inf' };
        return { labels, sharedLabels, value: count, metricName: `${FIRST_BYTE.name}_bucket` };
      });
      return [
        ...cumulative,
        { labels: {}, sharedLabels, value: sum, metricName: `${FIRST_BYTE.name}_sum` },
        { labels: {}, sharedLabels, value: count, metricName: `${FIRST_BYTE.name}_count` },
      ];
    });
    return Promise.resolve({ ...FIRST_BYTE, type: 'histogram', aggregator: 'sum', values });
  }
}

const FIRST_BYTE = {
  name: 'sluice_gateway_first_byte_seconds',
  help: 'Time from a call being let in to its backend beginning an answer, by class of method.',
};

export function createMetrics(backends: readonly Backend[]): Metrics {
  const registry = new Registry();
  const registers = [registry];
  const requests = new Counts().expose(
    'sluice_gateway_requests_total',
    'Requests by how they ended: answered, or the kind of refusal.',
    ['outcome'],
    registers,
  );
  const calls = new Counts().expose(
    'sluice_gateway_calls_total',
    'Calls that were sent to backends or answered from memory, by method and outcome.',
    ['method', 'outcome'],
    registers,
  );
  const failures = new Counter({
    name: 'sluice_gateway_backend_failures_total',
    help: 'Attempts that a backend failed before the first byte, by kind.',
    labelNames: ['backend', 'kind'],
    registers,
  });
  const cuts = new Counter({
    name: 'sluice_gateway_streams_cut_total',
    help: 'Answers that a backend broke off after the first byte; their callers saw a broken connection.',
    labelNames: ['backend', 'reason'],
    registers,
  });
  const firstByte = new FirstByteTimes({
    ...FIRST_BYTE,
    labelNames: ['class'],
    buckets: BOUNDS,
    registers,
  });
  const retries = new Counter({
    name: 'sluice_gateway_retries_total',
    help: "Calls that a backend in trouble would have sent to another one: made, or refused by the pool's budget of one in ten.",
    labelNames: ['outcome'],
    registers,
  });
  gaugeBackends(registry, backends);
  new Gauge({
    name: 'process_resident_memory_bytes',
    help: 'Resident memory of this process.',
    registers,
    collect() {
      this.set(process.memoryUsage.rss());
    },
  });
  return {
    outcome: (kind) => requests.add(kind),
    call: (method, outcome) => calls.add(method, outcome),
    failure: ({ config }, kind) => failures.inc({ backend: config.name, kind }),
    cut: ({ config }, reason) => cuts.inc({ backend: config.name, reason }),
    retry: (made) => retries.inc({ outcome: made ? 'made' : 'refused' }),
    firstByte: (kind, seconds) => firstByte.add(kind, seconds),
    showStore: (link) => gaugeStore(registry, link),
    showCache: (cache) => gaugeCache(registry, cache),
    values: async () => metricsFrom(await registry.getMetricsAsJSON()),
    text: () => registry.metrics(),
    contentType: registry.contentType,
  };
}

/** What Prometheus is given. */
type MetricsText = Readonly<{ text(): Promise<string>; contentType: string }>;

/** What the console of the same operator is given. */
type StatusOf = () => GatewayStatus | Promise<GatewayStatus>;

type MetricsListening =
  | { readonly kind: 'listening'; readonly url: URL; close(): Promise<void> }
  | { readonly kind: 'refused'; readonly sentence: string };

/** Opens the listener of `gateway.metrics`, or says in one sentence why it cannot be had. */
export function listenForMetrics(
  address: Listen,
  { text, contentType }: MetricsText,
  status: StatusOf,
): MetricsListening {
  try {
    const server = Bun.serve({
      ...address,
      reusePort: false,
      development: false,
      routes: {
        '/status.json': async () => Response.json(await status()),
        '/metrics': async () => new Response(await text(), { headers: { 'content-type': contentType } }),
      },
      fetch: () =>
        new Response('Not found. Metrics are at /metrics, the backends at /status.json.\n', { status: 404 }),
    });
    const url = urlOf({ hostname: address.hostname, port: server.port ?? address.port });
    return { kind: 'listening', url, close: () => server.stop(true) };
  } catch (error) {
    return { kind: 'refused', sentence: listenComplaint('gateway.metrics', address, error) };
  }
}

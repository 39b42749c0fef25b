import { type Metric as PromMetric, Registry } from 'prom-client';
import { urlOf } from '../shared/config/config.ts';
import type { Listen } from '../shared/config/kinds.ts';
import type { GatewayStatus } from '../shared/gateway-status.ts';
import { listenComplaint } from '../shared/process.ts';
import { droppedLines } from '../shared/log.ts';
import type { StoreLink } from './cluster/lease-sync.ts';
import type { MethodClass } from '../shared/config/methods.ts';
import { type Backend, COMMITMENTS } from './upstream/backend.ts';
import type { Cache } from './upstream/cache.ts';
import type { Failure } from './upstream/failure.ts';

/** The metrics with their labels, without the prefix; a counter ends in `_total`, the others are gauges. */
const METRICS = {
  'requests_total{outcome}': 'Requests by how they ended: answered, or the kind of refusal.',
  'calls_total{method,outcome}': 'Calls sent to backends or answered from memory, by method and outcome.',
  'backend_failures_total{backend,kind}': 'Attempts that a backend failed before the first byte, by kind.',
  'streams_cut_total{backend,reason}':
    'Answers that broke off after the first byte, by reason (unread, evicted: by their reader).',
  'retries_total{outcome}': 'Calls to another backend after trouble: made, or refused by the budget.',
  'hedges_total{outcome}': 'Second attempts at light calls that were late: made, or won by the second.',
  'send_fanouts_total{outcome}':
    'Copies of transactions beyond the first: made, or won by one that was accepted first.',
  'backend_calls_in_flight{backend}': 'Calls at a backend, to the last byte of their answers.',
  'backend_in{backend}': '1 while a backend takes part, 0 while probes leave it out.',
  'backend_slot{backend,commitment}': 'Newest slot that a backend has shown, by commitment.',
  'store_out{}': '1 while the store of shared limits does not answer.',
  'store_messages_total{outcome}': 'Messages to the store of shared limits, by outcome.',
  'store_asks_total{}': 'Asks in these messages, each for one account: with Redis, commands.',
  'cache_bytes{}': 'Memory of answers that never change.',
  'cache_reads_total{outcome}': 'Calls whose answer may be kept, by outcome: hit when it was, else miss.',
  'processes{}': 'Processes that listen.',
  'process_restarts_total{}': 'Processes started in the place of one that ended or drains.',
  'process_hangs_total{}': 'Processes that were killed because they hung.',
  'log_lines_dropped_total{}': 'Lines of standard output and error that no reader took in time.',
} as const;

type Metric = keyof typeof METRICS;

/** How metrics of several processes become one; all others are summed. */
const AGGREGATORS: Partial<Record<Metric, 'min' | 'max'>> = {
  'backend_in{backend}': 'min',
  'backend_slot{backend,commitment}': 'max',
  'store_out{}': 'max',
};

type Put = (value: number, ...labels: readonly string[]) => void;

/** Adds a metric that has what `read` puts whenever the registry is read. */
export function expose(registry: Registry, metric: Metric, read: (put: Put) => void): void {
  const [name = '', labels = ''] = metric.slice(0, -1).split('{');
  const labelNames = labels === '' ? [] : labels.split(',');
  const type = name.endsWith('_total') ? 'counter' : 'gauge';
  const samples = () => {
    const values: Sample[] = [];
    read((value, ...given) =>
      values.push({ value, labels: Object.fromEntries(labelNames.map((label, i) => [label, given[i]])) }),
    );
    return values;
  };
  register(registry, type, `sluice_gateway_${name}`, METRICS[metric], samples, AGGREGATORS[metric]);
}

/** A value with its labels, of the metric itself or, in a histogram, of one of its parts. */
type Sample = Readonly<{ value: number; labels: object; metricName?: string }>;

/** Adds a metric. For the text and for the values, prom-client asks it for no more than `get`. */
function register(
  registry: Registry,
  type: 'counter' | 'gauge' | 'histogram',
  name: string,
  help: string,
  samples: () => readonly Sample[],
  aggregator = 'sum',
): void {
  const get = () => Promise.resolve({ name, help, type, aggregator, values: samples() });
  registry.registerMetric({ name, get } as unknown as PromMetric); // the registry calls no more of it
}

/** Counts by one or two labels, as numbers: to find a counter of prom-client by its labels costs a microsecond a call. */
function counter(registry: Registry, metric: Metric) {
  const counts = new Map<string, Map<string, number>>();
  expose(registry, metric, (put) => {
    for (const [first, seconds] of counts) for (const [second, count] of seconds) put(count, first, second);
  });
  return (first: string, second = ''): void => {
    let seconds = counts.get(first);
    if (seconds === undefined) counts.set(first, (seconds = new Map()));
    seconds.set(second, (seconds.get(second) ?? 0) + 1);
  };
}

const BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];

const FIRST_BYTE = 'sluice_gateway_first_byte_seconds';

/** A histogram by class of method, kept as numbers for the same reason. */
function firstByteTimes(registry: Registry) {
  const times = new Map<string, { sum: number; readonly buckets: Float64Array }>();
  const help = 'Time from a call being let in to its backend beginning an answer, by class of method.';
  // Each bucket holds all below it; then the sum and the count.
  register(registry, 'histogram', FIRST_BYTE, help, () =>
    [...times].flatMap(([kind, { sum, buckets }]) => {
      const part = (suffix: string, value: number, more: object = {}) => {
        return { value, labels: { ...more, class: kind }, metricName: `${FIRST_BYTE}_${suffix}` };
      };
      let count = 0;
      const cumulative = [...buckets].map((inBucket, i) =>
        part('bucket', (count += inBucket), { le: BOUNDS[i] ?? '+Inf' }),
      );
      return [...cumulative, part('sum', sum), part('count', count)];
    }),
  );
  return (kind: MethodClass, seconds: number): void => {
    let own = times.get(kind);
    if (own === undefined) times.set(kind, (own = { sum: 0, buckets: new Float64Array(BOUNDS.length + 1) }));
    own.sum += seconds;
    let i = 0;
    while (seconds > (BOUNDS[i] ?? Infinity)) i++;
    own.buckets[i] = (own.buckets[i] ?? 0) + 1;
  };
}

/** The metrics of the gateway. Labels are the unions' own kinds and the methods of the table, so their number is bounded. */
export type Metrics = ReturnType<typeof createMetrics>;

/** `link` is to the store of shared limits, if there is one, and `cache` keeps answers, if any are kept. */
export function createMetrics(backends: readonly Backend[], link?: StoreLink, cache?: Pick<Cache, 'counts'>) {
  const registry = new Registry();
  const show = (metric: Metric, read: (put: Put) => void) => expose(registry, metric, read);
  const requests = counter(registry, 'requests_total{outcome}');
  const calls = counter(registry, 'calls_total{method,outcome}');
  const failures = counter(registry, 'backend_failures_total{backend,kind}');
  const cuts = counter(registry, 'streams_cut_total{backend,reason}');
  const retries = counter(registry, 'retries_total{outcome}');
  const hedges = counter(registry, 'hedges_total{outcome}');
  const fanOuts = counter(registry, 'send_fanouts_total{outcome}');
  const firstByte = firstByteTimes(registry);
  show('backend_calls_in_flight{backend}', (put) =>
    backends.forEach(({ config, inFlight }) => put(inFlight, config.name)),
  );
  show('backend_in{backend}', (put) =>
    backends.forEach(({ config, health }) => put(Number(health.excludedBecause === undefined), config.name)),
  );
  show('backend_slot{backend,commitment}', (put) => {
    for (const { config, slots } of backends)
      for (const commitment of COMMITMENTS)
        // A slot that is not known is no slot 0, which would look like a lag.
        if (slots.tip[commitment] > 0) put(slots.tip[commitment], config.name, commitment);
  });
  let resident = 0;
  register(registry, 'gauge', 'process_resident_memory_bytes', 'Resident memory of this process.', () => {
    try {
      resident = process.memoryUsage.rss();
    } catch {
      // No descriptor is left to read it by.
    }
    return [{ value: resident, labels: {} }];
  });
  show('log_lines_dropped_total{}', (put) => put(droppedLines()));
  if (link !== undefined) {
    show('store_out{}', (put) => put(Number(link.isOut())));
    show('store_messages_total{outcome}', (put) => {
      const { messages, failed } = link.counts();
      put(messages - failed, 'answered');
      put(failed, 'failed');
    });
    show('store_asks_total{}', (put) => put(link.counts().asks));
  }
  if (cache !== undefined) {
    show('cache_bytes{}', (put) => put(cache.counts.bytes));
    show('cache_reads_total{outcome}', (put) => {
      const { hits, misses } = cache.counts;
      put(hits, 'hit');
      put(misses, 'miss');
    });
  }
  return {
    outcome: (kind: string) => requests(kind),
    call: calls,
    failure: ({ config }: Backend, kind: Failure['kind'] | 'probe') => failures(config.name, kind),
    cut: ({ config }: Backend, reason: string) => cuts(config.name, reason),
    hedge: hedges,
    fanOut: fanOuts,
    retry: (made: boolean) => retries(made ? 'made' : 'refused'),
    firstByte,
    /** The values of this process, for a supervisor that adds up those of several. */
    values: () => registry.getMetricsAsJSON(),
    text: () => registry.metrics(),
    contentType: registry.contentType,
  };
}

/** Longer than scrapes are apart: one that keeps its connection needs no descriptor when none is left. 255 is Bun's most. */
const IDLE_SECONDS = 255;

/** Opens the listener of `gateway.metrics`, or says in one sentence why it cannot be had. */
export function listenForMetrics(
  address: Listen,
  { text, contentType }: Pick<Metrics, 'text' | 'contentType'>,
  status: () => GatewayStatus | Promise<GatewayStatus>,
) {
  try {
    const server = Bun.serve({
      ...address,
      reusePort: false,
      development: false,
      idleTimeout: IDLE_SECONDS,
      routes: {
        '/status.json': async () => Response.json(await status()),
        '/metrics': async () => new Response(await text(), { headers: { 'content-type': contentType } }),
      },
      fetch: () => new Response('Not found. There are /metrics and /status.json.\n', { status: 404 }),
    });
    const url = urlOf({ hostname: address.hostname, port: server.port ?? address.port });
    return { kind: 'listening', url, close: () => server.stop(true) } as const;
  } catch (error) {
    return { kind: 'refused', sentence: listenComplaint('gateway.metrics', address, error) } as const;
  }
}

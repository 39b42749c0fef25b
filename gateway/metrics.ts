import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Backend } from './backend/backend.ts';
import type { Failure } from './backend/failure.ts';
import { gaugeBackends } from './backend-gauges.ts';
import type { MethodClass } from './route/methods.ts';
import { gaugeStore, type StoreLink } from './store-gauges.ts';
import { type MetricJson, metricsFrom } from './supervisor/metric-json.ts';

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
  /** The values of this process, for a supervisor that adds up those of several. */
  values(): Promise<readonly MetricJson[]>;
  text(): Promise<string>;
  contentType: string;
}>;

export function createMetrics(backends: readonly Backend[]): Metrics {
  const registry = new Registry();
  const registers = [registry];
  const requests = new Counter({
    name: 'sluice_gateway_requests_total',
    help: 'Requests by how they ended: answered, or the kind of refusal.',
    labelNames: ['outcome'],
    registers,
  });
  const calls = new Counter({
    name: 'sluice_gateway_calls_total',
    help: 'Calls sent to backends, by method and outcome.',
    labelNames: ['method', 'outcome'],
    registers,
  });
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
  const head = new Histogram({
    name: 'sluice_gateway_first_byte_seconds',
    help: 'Time from a call being let in to its backend beginning an answer, by class of method.',
    labelNames: ['class'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120],
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
    outcome: (kind) => requests.inc({ outcome: kind }),
    call: (method, outcome) => calls.inc({ method, outcome }),
    failure: ({ config }, kind) => failures.inc({ backend: config.name, kind }),
    cut: ({ config }, reason) => cuts.inc({ backend: config.name, reason }),
    retry: (made) => retries.inc({ outcome: made ? 'made' : 'refused' }),
    firstByte: (kind, seconds) => head.observe({ class: kind }, seconds),
    showStore: (link) => gaugeStore(registry, link),
    values: async () => metricsFrom(await registry.getMetricsAsJSON()),
    text: () => registry.metrics(),
    contentType: registry.contentType,
  };
}

import { AggregatorRegistry, type Registry } from 'prom-client';
import { type MetricJson, metricsFrom } from './metric-json.ts';

/**
 * The metrics of a crew as one text. What processes have counted is added up, and goes on being counted when they are
 * gone: a sum that fell would look like a restart of everything to who computes a rate from it.
 */
export type Tally = Readonly<{
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

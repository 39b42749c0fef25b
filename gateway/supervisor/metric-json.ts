/** One metric of a process with its values, in prom-client's own shape; it goes from process to process as JSON. */
export type MetricJson = Readonly<{
  name: string;
  /** `counter`, `gauge`, `histogram` or `summary`. */
  type: string;
  values: readonly Readonly<{ value: number; labels: Readonly<Record<string, string | number>> }>[];
}>;

/** The metrics of a registry; prom-client declares `type` to be a number, and writes the word. */
export function metricsFrom(values: readonly Readonly<{ name: string }>[]): readonly MetricJson[] {
  return values as readonly MetricJson[]; // the shape is the one that prom-client's own aggregation reads
}

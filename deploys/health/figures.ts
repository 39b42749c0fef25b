import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

/** Makes metrics in `registry`. Label values are the `kind`s of the code's own unions. */
export function createFigures(registry: Registry) {
  const registers = [registry];
  return {
    counter: (name: string, help: string, ...labelNames: string[]) =>
      new Counter({ name, help, labelNames, registers }),
    gauge: (name: string, help: string, ...labelNames: string[]) =>
      new Gauge({ name, help, labelNames, registers }),
    histogram: (name: string, help: string, buckets: number[]) =>
      new Histogram({ name, help, buckets, registers }),
    /** A gauge whose value is read at every scrape; absent while it is `undefined`. */
    reading: (name: string, help: string, read: () => number | undefined) =>
      new Gauge({
        name,
        help,
        registers,
        collect() {
          const value = read();
          if (value === undefined) this.remove();
          else this.set(value);
        },
      }),
  };
}

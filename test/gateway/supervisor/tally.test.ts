import { expect, test } from 'bun:test';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { metricsFrom } from '../../../gateway/workers.ts';
import { createTally } from '../../../gateway/supervisor.ts';

/** A process's registry with one metric of each kind. */
function counting(calls: number, tip: number, resident: number) {
  const registry = new Registry();
  const registers = [registry];
  const help = 'For a test.';
  new Counter({ name: 'calls_total', help, labelNames: ['method'], registers }).inc({ method: 'a' }, calls);
  new Gauge({ name: 'in_flight', help, registers }).set(calls);
  new Gauge({ name: 'tip', help, registers, aggregator: 'max' }).set(tip);
  new Gauge({ name: 'process_resident_memory_bytes', help, registers }).set(resident);
  const seconds = new Histogram({ name: 'seconds', help, buckets: [1, 10], registers });
  for (let i = 0; i < calls; i++) seconds.observe(5);
  // By way of JSON, as it comes over the channel.
  return registry.getMetricsAsJSON().then((values) => metricsFrom(JSON.parse(JSON.stringify(values))));
}

const NONE = new Registry();
const rows = (text: string) => text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));

test('counters, gauges and buckets of all processes are added up, a gauge that says so is the greatest, and memory stays apart', async () => {
  const tally = createTally();
  tally.note(1, await counting(2, 7, 100));
  tally.note(2, await counting(3, 5, 300));
  const text = await tally.text(NONE);
  expect(rows(text)).toEqual([
    'calls_total{method="a"} 5',
    'in_flight 5',
    'tip 7',
    'process_resident_memory_bytes{process="1"} 100',
    'process_resident_memory_bytes{process="2"} 300',
    'seconds_bucket{le="1"} 0',
    'seconds_bucket{le="10"} 5',
    'seconds_bucket{le="+Inf"} 5',
    'seconds_sum 25',
    'seconds_count 5',
  ]);
  expect(text).toContain('# TYPE seconds histogram');
});

test('what a process counted stays when it is gone, so that no sum ever falls; its gauges go', async () => {
  const tally = createTally();
  tally.note(1, await counting(2, 7, 100));
  tally.note(2, await counting(3, 5, 300));
  tally.close(2);
  tally.note(2, await counting(1, 1, 200));
  tally.close(2);
  tally.close(2);
  expect(rows(await tally.text(NONE))).toEqual(
    expect.arrayContaining([
      'calls_total{method="a"} 6',
      'in_flight 2',
      'tip 7',
      'seconds_count 6',
      'seconds_sum 30',
    ]),
  );
  tally.note(2, await counting(10, 9, 50));
  expect(rows(await tally.text(NONE))).toEqual(
    expect.arrayContaining(['calls_total{method="a"} 16', 'tip 9']),
  );
});

test("the supervisor's own stand beside them", async () => {
  const own = new Registry();
  new Gauge({ name: 'processes', help: 'For a test.', registers: [own] }).set(2);
  expect(rows(await createTally().text(own))).toEqual(['processes 2']);
});

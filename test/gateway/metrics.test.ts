import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { Histogram, Registry } from 'prom-client';
import { createMetrics, listenForMetrics } from '../../gateway/metrics.ts';
import { startBackend } from '../fakes/backend.ts';
import { startGateway } from '../started/gateway.ts';

/** The value of a sample by its full name and labels; `undefined` when it is not there. */
const valueOf = (text: string, sample: string) =>
  text
    .split('\n')
    .find((line) => line.startsWith(`${sample} `))
    ?.slice(sample.length + 1);

describe('the metrics text', () => {
  test('shows the store of shared limits as it is when it is asked', async () => {
    const link = { out: true, counted: { messages: 7, asks: 30, failed: 2 } };
    const metrics = createMetrics([], {
      failure: () => undefined,
      isOut: () => link.out,
      counts: () => link.counted,
    });
    const shown = async () => {
      const text = await metrics.text();
      const names = [
        'out',
        'messages_total{outcome="answered"}',
        'messages_total{outcome="failed"}',
        'asks_total',
      ];
      return names.map((name) => valueOf(text, `sluice_gateway_store_${name}`));
    };
    expect(await shown()).toEqual(['1', '5', '2', '30']);
    Object.assign(link, { out: false, counted: { messages: 8, asks: 31, failed: 2 } });
    expect(await shown()).toEqual(['0', '6', '2', '31']);
    expect(valueOf(await createMetrics([]).text(), 'sluice_gateway_store_out')).toBeUndefined();
  });

  test('of the first byte is what a histogram of prom-client gives, in the text and in the values', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.tuple(
            fc.constantFrom('light', 'scan', 'history'),
            fc.oneof(fc.double({ min: 0, max: 200, noNaN: true }), fc.constantFrom(0.001, 0.25, 120, 121)),
          ),
        ),
        async (times) => {
          const metrics = createMetrics([]);
          const registry = new Registry();
          const name = 'sluice_gateway_first_byte_seconds';
          const wanted = new Histogram({
            name,
            help: 'Time from a call being let in to its backend beginning an answer, by class of method.',
            labelNames: ['class'],
            buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120],
            registers: [registry],
          });
          for (const [kind, seconds] of times) {
            metrics.firstByte(kind, seconds);
            wanted.observe({ class: kind }, seconds);
          }
          const text = (await metrics.text()).split('\n').filter((line) => line.includes(name));
          expect(text).toEqual((await registry.metrics()).trim().split('\n'));
          const values = await registry.getMetricsAsJSON();
          const found = (await metrics.values()).find((metric) => metric.name === name);
          expect(found).toEqual(
            JSON.parse(JSON.stringify(values[0], (key, value) => (key === 'exemplar' ? undefined : value))),
          );
        },
      ),
      { numRuns: 100 },
    );
  });
});

test('metrics and the status are told beside each other, and the status nowhere else (§7)', async () => {
  await using backend = startBackend();
  await using started = await startGateway({ backends: [{ name: 'a', url: backend.url }] });
  const { gateway, url } = started;
  const listening = listenForMetrics({ hostname: '127.0.0.1', port: 0 }, gateway.metrics, gateway.status);
  if (listening.kind === 'refused') throw new Error(listening.sentence);
  const ask = async (path: string) => {
    const response = await fetch(new URL(path, listening.url));
    return [response.status, response.headers.get('content-type'), await response.text()] as const;
  };
  const [status, type, text] = await ask('/status.json');
  expect([status, type?.split(';')[0]]).toEqual([200, 'application/json']);
  expect(JSON.parse(text)).toMatchObject({ processes: 1, backends: [{ name: 'a', in: true }] });
  expect((await ask('/metrics'))[2]).toContain('sluice_gateway_backend_in{backend="a"} 1');
  expect((await ask('/'))[0]).toBe(404);
  expect((await fetch(new URL('/status.json', url))).status).toBe(404);
  await listening.close();
});

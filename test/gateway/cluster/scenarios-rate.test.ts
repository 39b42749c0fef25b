import { describe, expect, test } from 'bun:test';
import { MICRO, perMsOf, refill, shortMs } from '../../../gateway/limits/bucket.ts';
import { planOf } from '../usage/started.ts';
import { mostIn, runLoad } from './load.ts';

// Scenarios on rates, on the virtual clock; numbers of test/faults/README.md.

const roundTrip = (ms: number) => () => ({ thereMs: ms / 2, backMs: ms / 2 });

describe('L1 L3 C1 ten times the rate for 30 s on four processes', () => {
  test.each([
    [5, 147, 159],
    [100, 2_940, 3_108],
    [1_000, 29_400, 31_080],
  ])(
    'a plan of %p calls a second gets from %p to %p, and its rate all the time (§6 RPC rate, burst, batch, scans, concurrent calls)',
    (rps, least, most) => {
      const { result, admitted } = runLoad(planOf(rps));
      expect(admitted(0, 30_000)).toBeWithin(least, most + 1);
      expect(admitted(2_000, 30_000)).toBeWithin(0.98 * rps * 28, 1.01 * rps * 28 + 1);
      if (rps !== 100) return;
      for (let ms = 2_000; ms <= 20_000; ms += 500) expect(admitted(ms, ms + 10_000)).toBeWithin(980, 1_011);
      expect(mostIn(result, 1_000, 2_000)).toBeLessThanOrEqual(110);
    },
  );

  test('a trial never has more than the one bucket, to the call', () => {
    const load = () => ({ price: { calls: 1, credits: 1 } });
    const { result, admitted } = runLoad(planOf(5, 5, 1e9), { load });
    expect(admitted(0, 30_000)).toBeLessThanOrEqual(155);
    expect(mostIn(result, 1_000, 0)).toBeLessThanOrEqual(10);
    expect(admitted(2_000, 30_000)).toBeWithin(138, 142);
  });

  test.each([[20], [90]])('L5 a round trip of %p ms changes nothing, and no admitted call waits', (ms) => {
    const { result, admitted } = runLoad(planOf(100), { fate: roundTrip(ms) });
    expect(admitted(0, 30_000)).toBeWithin(2_940, 3_109);
    expect(admitted(2_000, 30_000)).toBeWithin(2_744, 2_829);
    const waited = result.tookMs.filter((took) => took > 0).length;
    expect(waited / result.offered).toBeLessThan(0.01);
    expect(Math.max(...result.tookMs)).toBeLessThanOrEqual(50);
  });

  test('L2 97 in 100 calls at one process, and later at another, get the same', () => {
    const { admitted } = runLoad(planOf(100), {
      load: ({ nodes }, random) => ({
        nodeOf: (ms) => nodes[random() < 0.97 ? (ms < 15_000 ? 0 : 2) : Math.floor(random() * 4)],
      }),
    });
    expect(admitted(0, 30_000)).toBeLessThanOrEqual(3_108);
    expect(admitted(2_000, 15_000)).toBeGreaterThanOrEqual(0.98 * 1_300);
    expect(admitted(15_000, 16_000)).toBeGreaterThanOrEqual(60);
    expect(admitted(16_000, 30_000)).toBeGreaterThanOrEqual(0.98 * 1_400);
  });

  test('a burst below what comes in between two messages is still passed on', () => {
    const { admitted } = runLoad(planOf(100, 10));
    expect(admitted(2_000, 30_000)).toBeGreaterThanOrEqual(0.95 * 2_800);
    expect(admitted(0, 30_000)).toBeLessThanOrEqual(3_018);
  });
});

describe('L4 nine tenths of the rate', () => {
  test.each([
    [5, 8],
    [100, 4],
  ])(
    '%p calls a second over %p processes, evenly spaced never refused, by chance as by one bucket',
    (rps, nodes) => {
      const even = runLoad(planOf(rps), { nodes, load: () => ({ perSecond: () => 0.9 * rps }) });
      expect(even.result.kinds).toEqual({ charged: even.result.offered });
      const times: number[] = [];
      const { result } = runLoad(planOf(rps), {
        nodes,
        load: (world, random) => ({
          spacing: 'poisson',
          perSecond: () => 0.9 * rps,
          seconds: rps === 5 ? 1_000 : 100,
          nodeOf() {
            times.push(world.now());
            return world.nodes[Math.floor(random() * nodes)];
          },
        }),
      });
      const bucket = { micro: rps * MICRO, atMs: 0, perMs: perMsOf(rps), burst: rps };
      let refused = 0;
      for (const ms of times) {
        refill(bucket, ms);
        if (shortMs(bucket, 1) > 0) refused++;
        else bucket.micro -= MICRO;
      }
      expect(result.kinds['over-rate'] ?? 0).toBeLessThanOrEqual(refused + 0.001 * result.offered);
    },
  );
});

test('L14 a call at rest takes one message, and a flood of refused ones five a second and process', () => {
  const messages = (nodes: number, perSecond: number, seconds: number) =>
    runLoad(planOf(100), { nodes, load: () => ({ perSecond: () => perSecond, seconds }) }).world.counts
      .messages;
  expect(messages(1, 1, 10)).toBeLessThanOrEqual(20);
  expect(messages(4, 20_000, 5)).toBeLessThanOrEqual(4 * 6 * 5 + 4 * 8);
});

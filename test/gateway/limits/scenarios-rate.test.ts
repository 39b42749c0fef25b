import { describe, expect, test } from 'bun:test';
import { refill, shortMs } from '../../../gateway/limits/charge.ts';
import { admittedIn, type Load, mostIn, put, type Result, seeded } from './load.ts';
import { createWorld, type World, type WorldOptions } from './world.ts';

// Scenarios on rates, on the virtual clock; numbers of test/faults/README.md.

const planOf = (rps: number, burst = rps, credits?: number) => ({
  rps,
  burst,
  credits,
  batchMax: 100,
  scans: 1,
  inFlight: 16,
});
const roundTrip = (ms: number) => () => ({ thereMs: ms / 2, backMs: ms / 2 });

function run(options: WorldOptions, load: (world: World, random: () => number) => Partial<Load>) {
  const world = createWorld(options);
  const random = seeded(42);
  const anyNode = () => world.nodes[Math.floor(random() * world.nodes.length)];
  const whole: Load = {
    perSecond: () => 10 * options.plan.rps,
    seconds: 30,
    nodeOf: anyNode,
    spacing: 'even',
    random,
    ...load(world, random),
  };
  const result = put(world, whole);
  world.run(whole.seconds * 1_000 + 1_000);
  expect(result.tookMs.length).toBe(result.offered);
  return { result, world };
}

/** Within -2/+1 % of the rate from the third second on: over every 10 s, and over all. */
function expectSteady(result: Result, rps: number, seconds = 30) {
  const whole = seconds - 2;
  expect(admittedIn(result, 2_000, seconds * 1_000)).toBeGreaterThanOrEqual(0.98 * rps * whole);
  expect(admittedIn(result, 2_000, seconds * 1_000)).toBeLessThanOrEqual(1.01 * rps * whole);
}

describe('L1 L3 C1 ten times the rate for 30 s on four processes', () => {
  test.each([
    [5, 147, 159],
    [100, 2_940, 3_108],
    [1_000, 29_400, 31_080],
  ])(
    'a plan of %p calls a second gets from %p to %p, and its rate in the steady state',
    (rps, least, most) => {
      const { result } = run({ plan: planOf(rps), nodes: 4 }, () => ({}));
      expect(admittedIn(result, 0, 30_000)).toBeGreaterThanOrEqual(least);
      expect(admittedIn(result, 0, 30_000)).toBeLessThanOrEqual(most);
      expectSteady(result, rps);
    },
  );

  test('a trial never has more than the one bucket, to the call', () => {
    const { result } = run({ plan: planOf(5, 5, 1e9), nodes: 4 }, () => ({
      price: { calls: 1, credits: 1 },
    }));
    expect(admittedIn(result, 0, 30_000)).toBeLessThanOrEqual(155);
    expect(mostIn(result, 1_000, 0)).toBeLessThanOrEqual(10);
    expectSteady(result, 5);
  });

  test('every ten seconds and every second keep to the rate', () => {
    const { result } = run({ plan: planOf(100), nodes: 4 }, () => ({}));
    for (let ms = 2_000; ms <= 20_000; ms += 500) {
      expect(admittedIn(result, ms, ms + 10_000)).toBeGreaterThanOrEqual(980);
      expect(admittedIn(result, ms, ms + 10_000)).toBeLessThanOrEqual(1_010);
    }
    expect(mostIn(result, 1_000, 2_000)).toBeLessThanOrEqual(110);
  });

  test.each([[20], [90]])('L5 a round trip of %p ms changes nothing, and no admitted call waits', (ms) => {
    const { result } = run({ plan: planOf(100), nodes: 4, fate: roundTrip(ms) }, () => ({}));
    expect(admittedIn(result, 0, 30_000)).toBeGreaterThanOrEqual(2_940);
    expect(admittedIn(result, 0, 30_000)).toBeLessThanOrEqual(3_108);
    expectSteady(result, 100);
    const waited = result.tookMs.filter((took) => took > 0).length;
    expect(waited / result.offered).toBeLessThan(0.01);
    expect(Math.max(...result.tookMs)).toBeLessThanOrEqual(50);
  });

  test('a round trip longer than the deadline leaves each process its share', () => {
    const { result } = run({ plan: planOf(100), nodes: 4, fate: roundTrip(200) }, () => ({}));
    expectSteady(result, 100);
    expect(admittedIn(result, 0, 30_000)).toBeLessThanOrEqual(3_108);
  });

  test('L2 97 in 100 calls at one process, and later at another, get the same', () => {
    const { result } = run({ plan: planOf(100), nodes: 4 }, (world, random) => ({
      nodeOf: (ms) => {
        const hot = ms < 15_000 ? 0 : 2;
        return world.nodes[random() < 0.97 ? hot : Math.floor(random() * 4)];
      },
    }));
    expect(admittedIn(result, 0, 30_000)).toBeLessThanOrEqual(3_108);
    expect(admittedIn(result, 2_000, 15_000)).toBeGreaterThanOrEqual(0.98 * 1_300);
    expect(admittedIn(result, 15_000, 16_000)).toBeGreaterThanOrEqual(60);
    expect(admittedIn(result, 16_000, 30_000)).toBeGreaterThanOrEqual(0.98 * 1_400);
  });

  test('a burst below what comes in between two messages is still passed on', () => {
    const { result } = run({ plan: planOf(100, 10), nodes: 4 }, () => ({}));
    expect(admittedIn(result, 2_000, 30_000)).toBeGreaterThanOrEqual(0.95 * 2_800);
    expect(admittedIn(result, 0, 30_000)).toBeLessThanOrEqual(3_018);
  });
});

describe('L4 below the rate', () => {
  test.each([
    [5, 1],
    [5, 4],
    [100, 4],
    [100, 8],
  ])('nine tenths of %p calls a second, evenly spaced over %p processes, are never refused', (rps, nodes) => {
    const { result } = run({ plan: planOf(rps), nodes }, () => ({ perSecond: () => 0.9 * rps }));
    expect(result.kinds).toEqual({ charged: result.offered });
  });

  test.each([
    [5, 1],
    [5, 4],
    [5, 8],
    [100, 1],
    [100, 4],
    [100, 8],
  ])(
    'nine tenths of %p calls a second by chance over %p processes are refused as by one bucket',
    (rps, nodes) => {
      const plan = planOf(rps);
      const times: number[] = [];
      const { result } = run({ plan, nodes }, (world, random) => ({
        spacing: 'poisson',
        perSecond: () => 0.9 * rps,
        seconds: rps === 5 ? 1_000 : 100,
        nodeOf: () => {
          times.push(world.now());
          return world.nodes[Math.floor(random() * nodes)];
        },
      }));
      const bucket = { tokens: plan.burst, atMs: 0, rps, burst: plan.burst };
      let refused = 0;
      for (const ms of times) {
        refill(bucket, ms);
        if (shortMs(bucket, 1) > 0) refused++;
        else bucket.tokens--;
      }
      expect(result.kinds['over-rate'] ?? 0).toBeLessThanOrEqual(refused + 0.001 * result.offered);
    },
  );
});

test('L14 a call at rest takes one message, and a flood of refused ones five a second and process', () => {
  const quiet = run({ plan: planOf(100), nodes: 1 }, () => ({ perSecond: () => 1, seconds: 10 }));
  expect(quiet.world.counts.messages).toBeLessThanOrEqual(20);
  const flood = run({ plan: planOf(100), nodes: 4 }, () => ({ perSecond: () => 20_000, seconds: 5 }));
  expect(flood.world.counts.messages).toBeLessThanOrEqual(4 * 6 * 5 + 4 * 8);
});

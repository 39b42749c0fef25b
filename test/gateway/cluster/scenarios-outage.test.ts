import { describe, expect, test } from 'bun:test';
import { planOf } from '../usage/started.ts';
import { seeded } from '../../fakes/seeded.ts';
import { mostIn, put, runLoad } from './load.ts';
import { createWorld, type Node, type World } from './world.ts';

// Scenarios on outages, clocks and plans, on the virtual clock; numbers of test/faults/README.md.

/** The store is away from second 10 to 20, as its processes know at once or have to find out. */
function awayForTen(isKnown: boolean, comesBack?: (world: World) => void) {
  const state = { isAway: false };
  const events = {
    10_000(world: World) {
      state.isAway = true;
      world.setStoreOut(isKnown);
    },
    20_000(world: World) {
      state.isAway = false;
      world.setStoreOut(false);
      comesBack?.(world);
    },
  };
  return { state, events };
}

describe('L6 a store that is away for ten seconds under ten times the load', () => {
  test.each([
    [100, 'dead', false],
    [100, 'silent', false],
    [1_000, 'silent', true],
  ] as const)('leaves each process its share of %p calls a second (%s, known: %p)', (rps, how, isKnown) => {
    const { state, events } = awayForTen(isKnown);
    const fate = () => ({
      thereMs: state.isAway && how === 'silent' ? undefined : 1,
      backMs: state.isAway ? undefined : 1,
    });
    const { result, admitted } = runLoad(planOf(rps), { seed: 5, fate, events });
    expect(admitted(10_000, 20_000)).toBeWithin(0.8 * rps * 10, 1.05 * rps * 10 + 1);
    expect(admitted(22_000, 30_000)).toBeWithin(0.98 * rps * 8, 1.01 * rps * 8 + 1);
    // After the return: what comes in meanwhile, a tenth of a second of the rate, and what the leases hold.
    expect(admitted(20_000, 21_000)).toBeLessThanOrEqual(1.1 * rps + rps / 2);
    expect(Math.max(...result.tookMs)).toBeLessThanOrEqual(50);
    const waited = result.tookMs.filter((ms) => ms > 0).length;
    expect(waited / result.offered).toBeLessThan(0.01);
  });
});

test.each([
  ['is known to be away', true, false],
  ['is silent', false, false],
  ['is silent and comes back empty', false, true],
])('L6 calls at a third of the rate are all let in while the store %s', (_, isKnown, isEmptied) => {
  const ways = [
    [25, 25, 25, 25],
    [97, 1, 1, 1],
    [60, 38, 1, 1],
    [100, 0, 0, 0],
  ];
  for (const [i, parts] of [...ways, ...ways].entries()) {
    const { state, events } = awayForTen(isKnown, (world) => {
      if (isEmptied) world.restore(undefined, 2_000);
    });
    const fate = () => ({ thereMs: state.isAway ? undefined : 1, backMs: 1 });
    const load = ({ nodes }: World, random: () => number) => ({
      perSecond: () => 350,
      seconds: 28,
      spacing: 'poisson' as const,
      nodeOf() {
        let at = 100 * random();
        return nodes[parts.findIndex((part) => (at -= part) < 0)];
      },
    });
    const { result } = runLoad(planOf(1_000), { seed: 8 + i, fate, events, load });
    expect(result.kinds).toEqual({ charged: result.offered });
  }
});

test('a burst that was spent while the store is away is not there again after a rest', () => {
  const world = createWorld({ plan: planOf(5, 200), nodes: 1 });
  world.setStoreOut(true);
  const burst = () => {
    let admitted = 0;
    for (let i = 0; i < 250; i++)
      world.request(world.node(0), { calls: 1, credits: 0 }, ({ kind }) => {
        if (kind === 'charged') admitted++;
      });
    return admitted;
  };
  expect(burst()).toBe(200);
  world.run(20_000);
  expect(burst()).toBe(100);
  world.run(40_000);
  expect(burst()).toBe(200);
});

describe('L6 a store that replies now and then', () => {
  /** Messages of a process are lost on their way so often. */
  const lossy = (lossOf: (node: number, ms: number) => number, seed: number, events = {}) =>
    runLoad(planOf(100), {
      seed,
      events,
      fate: (random, from, world) =>
        random() < lossOf(from, world.now())
          ? { thereMs: undefined, backMs: undefined }
          : { thereMs: 1, backMs: 1 },
    }).admitted;

  test('lets in what one does that always replies', () => {
    const each = Array.from({ length: 10 }, (_, seed) => lossy(() => 0.5, seed)(0, 30_000));
    const mean = each.reduce((sum, admitted) => sum + admitted, 0) / each.length;
    expect(mean).toBeWithin(2_940, 3_109);
    // A process that has no reply for seconds while others have has its share beside them.
    expect(Math.max(...each)).toBeLessThanOrEqual(3_108 + 100);
  });

  test.each([1, 2, 3])('and is found again by one process after the other lets in no more (%p)', (seed) => {
    const found = lossy((node, ms) => (ms > 11_000 && ms < 14_000 + 900 * node ? 1 : 0), seed);
    expect(found(13_000, 17_000)).toBeLessThanOrEqual(400 + 60);
    expect(found(18_000, 28_000)).toBeGreaterThanOrEqual(0.98 * 1_000);
    const empty = lossy((node, ms) => (ms > 11_000 && ms < 14_000 + 400 * node ? 1 : 0), seed, {
      13_000: (world: World) => world.restore(undefined, 0),
    });
    expect(empty(13_000, 15_000)).toBeLessThanOrEqual(200 + 30);
    expect(empty(16_000, 26_000)).toBeGreaterThanOrEqual(0.98 * 1_000);
  });
});

test.each([
  ['an hour ahead gives one burst and the leases once', 3_600_000, 100 + 100 + 4 * 25],
  ['an hour back gives nothing and stops no call for longer than a moment', -3_600_000, 110],
])('L11 C8 a wall clock of the store that steps %s', (_, stepMs, most) => {
  const { result, admitted } = runLoad(planOf(100), {
    seed: 6,
    events: { 10_000: (world) => world.stepStoreClock(stepMs) },
    load: () => ({ seconds: 20 }),
  });
  expect(mostIn(result, 1_000, 2_000)).toBeLessThanOrEqual(most);
  expect(admitted(10_000, 11_000)).toBeGreaterThanOrEqual(70);
  expect(admitted(12_000, 20_000)).toBeWithin(0.98 * 800, 1.01 * 800 + 1);
});

/** A refused request may come again after so many milliseconds. */
const retryMs = (waitMs: number) => Math.max(1, Math.ceil(waitMs / 1_000)) * 1_000;

test.each([
  [1, 5, 5],
  [50, 100, 100],
  [400, 100, 100],
])(
  'L15 C7 a refused request of %p calls at %p a second and a burst of %p succeeds after its Retry-After, at any process',
  (calls, rps, burst) => {
    const random = seeded(calls + rps);
    let refusals = 0;
    for (let turn = 0; turn < 150; turn++) {
      const world = createWorld({ plan: planOf(rps, burst, random() < 0.5 ? 1e9 : undefined), nodes: 4 });
      const any = () => world.node(Math.floor(random() * 4));
      const load = 0.5 + 9 * random();
      put(world, { perSecond: () => load * rps, seconds: 2, nodeOf: any, spacing: 'poisson', random });
      world.run(2_000);
      let waitMs: number | undefined;
      world.request(any(), { calls, credits: 0 }, (charge) => {
        if (charge.kind === 'over-rate') waitMs = retryMs(charge.waitMs);
      });
      world.run(60);
      if (waitMs === undefined) continue;
      refusals++;
      world.run(waitMs - 60);
      let kind = 'nothing';
      world.request(any(), { calls, credits: 0 }, (charge) => (kind = charge.kind));
      world.run(60);
      expect(kind).toBe('charged');
    }
    expect(refusals).toBeGreaterThan(20);
  },
);

test('L16 a batch of half the burst gets through within two seconds beside a hundred small callers', () => {
  const delays: number[] = [];
  const ask = (world: World, sinceMs: number, to: () => Node | undefined) => {
    world.request(to() ?? world.node(0), { calls: 50, credits: 0 }, (charge) => {
      if (charge.kind === 'charged') delays.push(world.now() - sinceMs);
      const againMs = charge.kind === 'over-rate' ? retryMs(charge.waitMs) : 2_000;
      const since = charge.kind === 'charged' ? world.now() + againMs : sinceMs;
      world.at(world.now() + againMs, () => ask(world, since, to));
    });
  };
  runLoad(planOf(100), {
    seed: 9,
    load(world, random) {
      const anyNode = () => world.nodes[Math.floor(random() * 4)];
      world.at(world.now() + 2_000, () => ask(world, world.now(), anyNode));
      return { seconds: 60 };
    },
  });
  expect(delays.length).toBeGreaterThan(10);
  expect(Math.max(...delays)).toBeLessThanOrEqual(2_100);
});

test('L16 C3 a batch that one limit refuses takes nothing from the other', () => {
  const world = createWorld({ plan: planOf(10, 10, 100), nodes: 1, total: 100 });
  const kinds: string[] = [];
  const ask = (calls: number, credits: number) => {
    world.request(world.node(0), { calls, credits }, ({ kind }) => void kinds.push(kind));
    world.run(20);
  };
  ask(5, 101);
  ask(10, 100);
  ask(1, 0);
  world.run(3_000);
  ask(10, 1);
  ask(10, 0);
  expect(kinds).toEqual(['out-of-credits', 'charged', 'over-rate', 'out-of-credits', 'charged']);
});

test('L19 a plan that changes under load is everywhere in a second: 100, 10, 1000', () => {
  const { admitted } = runLoad(planOf(100), {
    seed: 10,
    events: {
      10_000: (world) => world.setPlan(planOf(10)),
      20_000: (world) => world.setPlan(planOf(1_000)),
    },
    load: () => ({ perSecond: () => 10_000 }),
  });
  expect(admitted(5_000, 10_000)).toBeLessThanOrEqual(505);
  expect(admitted(11_100, 20_000)).toBeLessThanOrEqual(1.1 * 89);
  expect(admitted(12_000, 20_000)).toBeGreaterThanOrEqual(0.7 * 80);
  expect(admitted(21_100, 30_000)).toBeWithin(0.98 * 8_900, 1.01 * 8_900 + 1);
});

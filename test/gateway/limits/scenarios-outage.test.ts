import { describe, expect, test } from 'bun:test';
import { admittedIn, mostIn, put, type Result, seeded } from './load.ts';
import { createWorld, type World } from './world.ts';

// Scenarios on outages, clocks and plans, on the virtual clock; numbers of test/faults/README.md.

const planOf = (rps: number, burst = rps, credits?: number) => ({
  rps,
  burst,
  credits,
  batchMax: 100,
  scans: 1,
  inFlight: 16,
});

/** Ten times the rate at four processes; the store is away from second 10 to 20, or its answers are. */
function outage(rps: number, how: 'dead' | 'silent' | 'lossy', known: boolean) {
  const random = seeded(5);
  let away = false;
  const fate = () => {
    const thereMs = away && how === 'silent' ? undefined : 1;
    return { thereMs, backMs: away || random() < (how === 'lossy' ? 0.1 : 0) ? undefined : 1 };
  };
  const world = createWorld({ plan: planOf(rps), nodes: 4, fate });
  world.at(world.now() + 10_000, () => {
    away = how !== 'lossy';
    world.setStoreOut(known);
  });
  world.at(world.now() + 20_000, () => {
    away = false;
    world.setStoreOut(false);
  });
  const nodeOf = () => world.nodes[Math.floor(random() * 4)];
  const result = put(world, { perSecond: () => 10 * rps, seconds: 30, nodeOf, spacing: 'even', random });
  world.run(31_000);
  return { result, world };
}

describe('L6 a store that is away for ten seconds under ten times the load', () => {
  test.each([
    [100, 'dead', true],
    [100, 'dead', false],
    [100, 'silent', false],
    [1_000, 'silent', true],
  ] as const)('leaves each process its share of %p calls a second (%s, known: %p)', (rps, how, known) => {
    const { result } = outage(rps, how, known);
    expect(admittedIn(result, 10_000, 20_000)).toBeGreaterThanOrEqual(0.8 * rps * 10);
    expect(admittedIn(result, 10_000, 20_000)).toBeLessThanOrEqual(1.05 * rps * 10);
    expect(admittedIn(result, 22_000, 30_000)).toBeGreaterThanOrEqual(0.98 * rps * 8);
    expect(admittedIn(result, 22_000, 30_000)).toBeLessThanOrEqual(1.01 * rps * 8);
    // After the return: what comes in meanwhile, a tenth of a second of the rate, and what the leases hold.
    expect(admittedIn(result, 20_000, 21_000)).toBeLessThanOrEqual(1.1 * rps + rps / 2);
    expect(Math.max(...result.tookMs)).toBeLessThanOrEqual(50);
    const waited = result.tookMs.filter((ms) => ms > 0).length;
    expect(waited / result.offered).toBeLessThan(0.01);
  });

  test('a network that loses one answer in ten changes neither rate nor waits', () => {
    const { result } = outage(100, 'lossy', false);
    expect(admittedIn(result, 2_000, 30_000)).toBeGreaterThanOrEqual(0.95 * 2_800);
    expect(admittedIn(result, 0, 30_000)).toBeLessThanOrEqual(3_108);
  });
});

describe('L6 calls at a third of the rate', () => {
  const outages = [
    ['is known to be away', true, false],
    ['is silent', false, false],
    ['is silent and comes back empty', false, true],
  ] as const;
  const places: readonly (readonly [where: string, parts: readonly number[]])[] = [
    ['at all processes alike', [25, 25, 25, 25]],
    ['nearly all at one process', [97, 1, 1, 1]],
    ['nearly all at two processes', [60, 38, 1, 1]],
    ['at one process alone', [100, 0, 0, 0]],
  ];
  const cases = outages.flatMap(([how, ...outage]) =>
    places.map(([where, parts]) => [where, how, parts, ...outage] as const),
  );

  test.each(cases)('%s are all let in while the store %s', (_where, _how, parts, known, isEmptied) => {
    for (const seed of [1, 8, 29, 36]) {
      const random = seeded(seed);
      let away = false;
      const fate = () => ({ thereMs: away ? undefined : 1, backMs: 1 });
      const world = createWorld({ plan: planOf(1_000), nodes: 4, fate });
      const nodeOf = () => {
        let at = 100 * random();
        return world.nodes[parts.findIndex((part) => (at -= part) < 0)];
      };
      world.at(world.now() + 10_000, () => {
        away = true;
        world.setStoreOut(known);
      });
      world.at(world.now() + 20_000, () => {
        away = false;
        world.setStoreOut(false);
        if (isEmptied) world.restore(undefined, 2_000);
      });
      const result = put(world, { perSecond: () => 350, seconds: 28, nodeOf, spacing: 'poisson', random });
      world.run(29_000);
      expect(result.kinds).toEqual({ charged: result.offered });
    }
  });
});

test('a burst that was spent while the store is away is not there again after a rest', () => {
  const world = createWorld({ plan: planOf(5, 200), nodes: 1 });
  world.setStoreOut(true);
  const burst = () => {
    let admitted = 0;
    for (let i = 0; i < 250; i++)
      world.request(world.nodes[0] ?? never(), { calls: 1, credits: 0 }, ({ kind }) => {
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

describe('L6 a store that answers now and then', () => {
  /** Ten times the rate at four processes for 30 s; messages of a process are lost on their way so often. */
  function lossy(
    lossOf: (node: number, ms: number) => number,
    seed: number,
    prepare: (world: World) => void = () => undefined,
  ): Result {
    const random = seeded(seed);
    const world: World = createWorld({
      plan: planOf(100),
      nodes: 4,
      fate(from) {
        const isLost = random() < lossOf(world.nodes.indexOf(from), world.now());
        return isLost ? { thereMs: undefined, backMs: undefined } : { thereMs: 1, backMs: 1 };
      },
    });
    prepare(world);
    const nodeOf = () => world.nodes[Math.floor(random() * 4)];
    const result = put(world, { perSecond: () => 1_000, seconds: 30, nodeOf, spacing: 'even', random });
    world.run(31_000);
    return result;
  }

  test('lets in what one does that always answers', () => {
    const seeds = Array.from({ length: 10 }, (_, seed) => seed);
    const each = seeds.map((seed) =>
      admittedIn(
        lossy(() => 0.5, seed),
        0,
        30_000,
      ),
    );
    const mean = each.reduce((sum, admitted) => sum + admitted, 0) / each.length;
    expect(mean).toBeLessThanOrEqual(3_108);
    expect(mean).toBeGreaterThanOrEqual(2_940);
    // Who hears nothing for seconds while others do has its share beside them.
    expect(Math.max(...each)).toBeLessThanOrEqual(3_108 + 100);
  });

  test.each([1, 2, 3, 4, 5])(
    'and is found again by one process after the other lets in no more (%p)',
    (seed) => {
      const result = lossy((node, ms) => (ms > 11_000 && ms < 14_000 + 900 * node ? 1 : 0), seed);
      expect(admittedIn(result, 13_000, 17_000)).toBeLessThanOrEqual(400 + 60);
      expect(admittedIn(result, 18_000, 28_000)).toBeGreaterThanOrEqual(0.98 * 1_000);
    },
  );

  test.each([1, 2, 3, 4, 5])('nor when it has forgotten everything (%p)', (seed) => {
    const result = lossy(
      (node, ms) => (ms > 11_000 && ms < 14_000 + 400 * node ? 1 : 0),
      seed,
      (world) => world.at(14_000, () => world.restore(undefined, 0)),
    );
    expect(admittedIn(result, 13_000, 15_000)).toBeLessThanOrEqual(200 + 30);
    expect(admittedIn(result, 16_000, 26_000)).toBeGreaterThanOrEqual(0.98 * 1_000);
  });
});

describe('L11 C8 a wall clock of the store that steps', () => {
  const steps = (ms: number) => {
    const world = createWorld({ plan: planOf(100), nodes: 4 });
    const random = seeded(6);
    world.at(world.now() + 10_000, () => world.stepStoreClock(ms));
    const nodeOf = () => world.nodes[Math.floor(random() * 4)];
    const result = put(world, { perSecond: () => 1_000, seconds: 20, nodeOf, spacing: 'even', random });
    world.run(21_000);
    return result;
  };

  test('an hour ahead gives one burst and the leases once', () => {
    const result = steps(3_600_000);
    expect(admittedIn(result, 10_000, 11_000)).toBeLessThanOrEqual(100 + 100 + 4 * 25);
    expect(admittedIn(result, 12_000, 20_000)).toBeLessThanOrEqual(1.01 * 800);
    expect(admittedIn(result, 12_000, 20_000)).toBeGreaterThanOrEqual(0.98 * 800);
  });

  test('an hour back gives nothing and stops no call for longer than a moment', () => {
    const result = steps(-3_600_000);
    expect(mostIn(result, 1_000, 2_000)).toBeLessThanOrEqual(110);
    expect(admittedIn(result, 10_000, 11_000)).toBeGreaterThanOrEqual(70);
    expect(admittedIn(result, 11_000, 20_000)).toBeGreaterThanOrEqual(0.98 * 900);
  });
});

describe('L15 C7 a refused request', () => {
  test.each([
    [1, 5, 5],
    [1, 100, 200],
    [3, 5, 10],
    [50, 100, 100],
    [100, 100, 100],
    [101, 100, 100],
    [400, 100, 100],
  ])(
    'of %p calls at %p a second and a burst of %p succeeds after its Retry-After, at any process',
    (calls, rps, burst) => {
      const random = seeded(calls + rps);
      let refusals = 0;
      for (let turn = 0; turn < 150; turn++) {
        const world = createWorld({ plan: planOf(rps, burst, random() < 0.5 ? 1e9 : undefined), nodes: 4 });
        const any = () => world.nodes[Math.floor(random() * 4)];
        const load = 0.5 + 9 * random();
        put(world, { perSecond: () => load * rps, seconds: 2, nodeOf: any, spacing: 'poisson', random });
        world.run(2_000);
        const node = any();
        let waitMs: number | undefined;
        if (node !== undefined)
          world.request(node, { calls, credits: 0 }, (charge) => {
            if (charge.kind === 'over-rate') waitMs = Math.max(1, Math.ceil(charge.waitMs / 1_000)) * 1_000;
          });
        world.run(60);
        if (waitMs === undefined) continue;
        refusals++;
        world.run(waitMs - 60);
        let kind = 'nothing';
        const other = any();
        if (other !== undefined)
          world.request(other, { calls, credits: 0 }, (charge) => (kind = charge.kind));
        world.run(60);
        expect(kind).toBe('charged');
      }
      expect(refusals).toBeGreaterThan(20);
    },
  );
});

describe('L16 a batch', () => {
  test('of half the burst gets through within two seconds beside a hundred small callers', () => {
    const world = createWorld({ plan: planOf(100), nodes: 4 });
    const random = seeded(9);
    const nodeOf = () => world.nodes[Math.floor(random() * 4)];
    put(world, { perSecond: () => 1_000, seconds: 60, nodeOf, spacing: 'even', random });
    const delays: number[] = [];
    const ask = (sinceMs: number) => {
      const node = nodeOf();
      if (node === undefined) return;
      world.request(node, { calls: 50, credits: 0 }, (charge) => {
        if (charge.kind === 'charged') delays.push(world.now() - sinceMs);
        const againMs =
          charge.kind === 'over-rate' ? Math.max(1, Math.ceil(charge.waitMs / 1_000)) * 1_000 : 2_000;
        const since = charge.kind === 'charged' ? world.now() + againMs : sinceMs;
        world.at(world.now() + againMs, () => ask(since));
      });
    };
    world.at(world.now() + 2_000, () => ask(world.now()));
    world.run(60_000);
    expect(delays.length).toBeGreaterThan(10);
    expect(Math.max(...delays)).toBeLessThanOrEqual(2_100);
  });

  test('C3 refused by one limit takes nothing from the other', () => {
    const world = createWorld({ plan: planOf(10, 10, 100), nodes: 1, total: 100 });
    const kinds: string[] = [];
    const ask = (calls: number, credits: number) => {
      const node = world.nodes[0];
      if (node !== undefined) world.request(node, { calls, credits }, ({ kind }) => void kinds.push(kind));
      world.run(20);
    };
    ask(5, 101);
    ask(10, 100);
    expect(kinds).toEqual(['out-of-credits', 'charged']);
    ask(1, 0);
    world.run(3_000);
    ask(10, 1);
    ask(10, 0);
    expect(kinds).toEqual(['out-of-credits', 'charged', 'over-rate', 'out-of-credits', 'charged']);
  });
});

test('L19 a plan that changes under load is everywhere in a second: 100, 10, 1000', () => {
  const world = createWorld({ plan: planOf(100), nodes: 4 });
  const random = seeded(10);
  const nodeOf = () => world.nodes[Math.floor(random() * 4)];
  world.at(world.now() + 10_000, () => world.setPlan(planOf(10)));
  world.at(world.now() + 20_000, () => world.setPlan(planOf(1_000)));
  const result = put(world, { perSecond: () => 10_000, seconds: 30, nodeOf, spacing: 'even', random });
  world.run(31_000);
  expect(admittedIn(result, 5_000, 10_000)).toBeLessThanOrEqual(505);
  expect(admittedIn(result, 11_100, 20_000)).toBeLessThanOrEqual(1.1 * 89);
  expect(admittedIn(result, 12_000, 20_000)).toBeGreaterThanOrEqual(0.7 * 80);
  expect(admittedIn(result, 21_100, 30_000)).toBeGreaterThanOrEqual(0.98 * 8_900);
  expect(admittedIn(result, 21_100, 30_000)).toBeLessThanOrEqual(1.01 * 8_900);
});

function never(): never {
  throw new Error('there is no such node');
}

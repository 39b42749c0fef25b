import { describe, expect, test } from 'bun:test';
import type { Charge } from '../../../gateway/limits/charge.ts';
import type { Plan } from '../../../shared/config/plans.ts';
import { seeded } from './load.ts';
import { createWorld, type Node, type WorldOptions } from './world.ts';

// Scenarios on credits, on the virtual clock; numbers of test/faults/README.md.

const WIDE = { rps: 10_000, burst: 10_000, batchMax: 100, scans: 1, inFlight: 16 };

/** What came of a call that was offered `atMs` and answered `ms` after the start, and what was left then and was said to be. */
type Answer = Readonly<{
  kind: Charge['kind'];
  cost: number;
  atMs: number;
  ms: number;
  left: number;
  stated: number | undefined;
  node: string | undefined;
}>;

/** Calls at random nodes, evenly spaced, until `seconds` have passed; what came of each, in order. */
function spend(
  options: Partial<WorldOptions> & { total: number },
  costs: readonly number[],
  perSecond: number,
  seconds: number,
) {
  const world = createWorld({ plan: { ...WIDE, credits: options.total }, nodes: 4, ...options });
  const random = seeded(11);
  const startMs = world.now();
  const answers: Answer[] = [];
  const gone: Node[] = [];
  const spentBy = ({ memory: { charged, refunded } }: Node) => charged - refunded;
  const spent = () => [...gone, ...world.nodes].reduce((sum, node) => sum + spentBy(node), 0);
  const next = () => {
    const node = world.nodes[Math.floor(random() * 4)];
    const cost = costs[Math.floor(random() * costs.length)] ?? 0;
    const atMs = world.now() - startMs;
    const answer = (charge: Charge) => {
      const stated = node && world.stated(node, charge);
      const [ms, left] = [world.now() - startMs, options.total - spent()];
      answers.push({ kind: charge.kind, cost, atMs, ms, left, stated, node: node?.id });
    };
    if (node !== undefined) world.request(node, { calls: 1, credits: cost }, answer);
    if (world.now() - startMs < seconds * 1_000) world.at(world.now() + 1_000 / perSecond, next);
  };
  world.at(startMs, next);
  const kinds = () => {
    const counts: Partial<Record<Charge['kind'], number>> = {};
    for (const { kind } of answers) counts[kind] = (counts[kind] ?? 0) + 1;
    return counts;
  };
  return { world, answers, spent, random, gone, kinds, run: () => world.run(seconds * 1_000 + 20_000) };
}

describe('a trial on four processes', () => {
  test.each([
    [1, 20_000],
    [10, 20_000],
    [50, 20_000],
    [7, 1_003],
  ])(
    'at %p credits a call spends %p credits to the last whole call, and is refused with 402 not before',
    (cost, total) => {
      const run = spend({ total }, [cost], 1_000, 2 + (2 * total) / cost / 1_000);
      run.run();
      const whole = Math.floor(total / cost) * cost;
      expect(run.spent()).toBe(whole);
      const first = run.answers.find(({ kind }) => kind === 'out-of-credits');
      expect(first?.left).toBe(total - whole);
      expect(run.kinds()['credits-unavailable']).toBeUndefined();
    },
  );

  test('D1 with calls of 1, 10 and 50 credits is refused with 402 only for what no node has', () => {
    const run = spend({ total: 30_000 }, [1, 10, 50], 1_000, 6);
    run.run();
    for (const { kind, cost, left } of run.answers)
      if (kind === 'out-of-credits') expect(left).toBeLessThan(cost);
    expect(run.spent()).toBe(30_000);
    expect(run.kinds()['credits-unavailable']).toBeUndefined();
  });

  test('waits for the store at the start and at the end, and hardly between', () => {
    const run = spend({ total: 1_000_000 }, [10], 1_000, 30);
    run.run();
    expect(run.kinds()).toEqual({ charged: run.answers.length });
    expect(run.world.counts.messages).toBeLessThan(0.03 * 30_000);
  });
});

describe('L20 the credits left that a process states', () => {
  /** What each node stated never rose. */
  function expectFalling(answers: readonly Answer[]) {
    const stated = Map.groupBy(answers, ({ node }) => node);
    for (const each of stated.values()) {
      const numbers = each.flatMap(({ stated: left }) => left ?? []);
      expect(numbers).toEqual(numbers.toSorted((a, b) => b - a));
    }
  }

  test('are those that are left, on one host', () => {
    const run = spend({ total: 5_000 }, [1, 10, 50], 500, 4);
    run.run();
    expectFalling(run.answers);
    const other = run.answers.filter(({ stated, left }) => stated !== undefined && stated !== left);
    expect(other).toEqual([]);
    expect(run.kinds()['out-of-credits']).toBeGreaterThan(0);
  });

  test('do not rise when a process of the host gives credits back, and are those that are left once as many are spent', () => {
    const run = spend({ total: 10_000 }, [1, 10, 50], 50, 8);
    const { world } = run;
    const [node] = world.nodes;
    if (node === undefined) throw new Error('a world has nodes');
    const kinds: Charge['kind'][] = [];
    for (let i = 1; i <= 3; i++) {
      const price = { calls: 1, credits: 1_000 };
      world.at(i * 1_000 + world.now(), () => world.request(node, price, ({ kind }) => kinds.push(kind)));
      world.at(i * 1_000 + world.now() + 500, () => world.refund(node, { calls: 0, credits: price.credits }));
    }
    run.run();
    expect(kinds).toEqual(['charged', 'charged', 'charged']);
    expectFalling(run.answers);
    for (const { stated = 0, left } of run.answers) expect(stated).toBeLessThanOrEqual(left);
    const last = run.answers.at(-1);
    expect(last?.stated).toBe(last?.left);
  });

  test('do not rise after a rest in which another host returned what it held', () => {
    const run = createWorld({ plan: { ...WIDE, credits: 100_000 }, nodes: 2, areHosts: true });
    const stated: (number | undefined)[] = [];
    const call = (node: Node | undefined, note: (left: number | undefined) => void) => {
      if (node === undefined) throw new Error('a world has nodes');
      const answer = (charge: Charge) => note(run.stated(node, charge));
      run.request(node, { calls: 1, credits: 10 }, answer);
    };
    const startMs = run.now();
    for (let ms = 0; ms < 3_000; ms += 20) run.at(startMs + ms, () => call(run.nodes[1], () => undefined));
    for (const ms of [0, 1_500, 2_900, 10_000, 40_000, 41_000, 120_000])
      run.at(startMs + ms, () => call(run.nodes[0], (left) => stated.push(left)));
    run.run(130_000);
    expect(stated).toEqual(stated.toSorted((a = 0, b = 0) => b - a));
    expect(stated).not.toContain(undefined);
  });

  test('are never more than were left a second ago, on several hosts', () => {
    const run = spend({ total: 20_000, areHosts: true }, [1, 10, 50], 100, 4);
    run.run();
    expectFalling(run.answers);
    const { answers } = run;
    let before = 0;
    for (const { ms, stated = 0 } of answers) {
      while ((answers[before + 1]?.ms ?? ms) <= ms - 1_100) before++;
      expect(stated).toBeLessThanOrEqual(answers[before]?.left ?? 0);
    }
    expect(answers.at(-1)?.stated).toBeGreaterThan(20_000 * 0.3);
  });
});

describe('L21 when the last credit is spent', () => {
  /** What was answered to calls that came `laterMs` after the last one that was charged, or later. */
  function kindsAfter(plan: Omit<Plan, 'credits'>, perSecond: number, areHosts: boolean, laterMs: number) {
    const total = Math.min(1_000, 5 * plan.rps);
    const run = spend({ total, plan: { ...plan, credits: total }, areHosts }, [1], perSecond, 15);
    run.run();
    expect(run.spent()).toBe(total);
    const last = run.answers.findLastIndex(({ kind }) => kind === 'charged');
    const sinceMs = (run.answers[last]?.ms ?? Infinity) + laterMs;
    const after = run.answers.slice(last + 1).filter(({ atMs }) => atMs >= sinceMs);
    expect(new Set(after.map(({ node }) => node)).size).toBe(4);
    return new Set(after.map(({ kind }) => kind));
  }

  test.each([
    ['a wide rate', WIDE, 1_000],
    ['calls far above the rate', { ...WIDE, rps: 50, burst: 50 }, 500],
    ['one call at a time', { ...WIDE, rps: 5, burst: 1 }, 50],
  ])('every process says 402 and never 429, on other hosts within a second: %s', (_, plan, perSecond) => {
    expect(kindsAfter(plan, perSecond, false, 0)).toEqual(new Set(['out-of-credits']));
    expect(kindsAfter(plan, perSecond, true, 1_000)).toEqual(new Set(['out-of-credits']));
  });
});

describe('L7 L8 processes that are killed each half second', () => {
  test('on their disks lose no charge and spend no credit twice', () => {
    const run = spend({ total: 100_000 }, [1, 10, 50], 2_000, 60);
    killEach(run, 500, 60, () => true);
    run.run();
    expect(run.spent()).toBe(100_000);
    for (const { kind, cost, left } of run.answers) {
      if (kind === 'out-of-credits' && left >= cost) expect(left).toBeLessThanOrEqual(4 * 1_000);
    }
  });

  test('and lose ten disks overspend nothing, and leave what those held', () => {
    const run = spend({ total: 100_000 }, [1, 10, 50], 2_000, 60);
    let disks = 0;
    killEach(run, 500, 60, () => ++disks % 12 !== 0);
    run.run();
    const { credits } = run.world.state();
    const names = new Set(run.world.nodes.map(({ id }) => id));
    let stranded = 0;
    for (const { node, granted, returned, charged, refunded } of credits?.nodes ?? []) {
      if (!names.has(node)) stranded += granted - returned - (charged - refunded);
    }
    expect(run.gone.length).toBe(10);
    expect(run.spent()).toBeLessThanOrEqual(100_000);
    expect(run.spent()).toBeGreaterThanOrEqual(100_000 - stranded);
  });

  /** Kills a node and starts it again at once; `hasDisk` says whether on its disk. */
  function killEach(
    { world, random, gone }: ReturnType<typeof spend>,
    everyMs: number,
    seconds: number,
    hasDisk: () => boolean,
  ) {
    for (let ms = everyMs; ms <= seconds * 1_000; ms += everyMs) {
      world.at(world.now() + ms, () => {
        const i = Math.floor(random() * 4);
        const node = world.nodes[i];
        if (node === undefined) return;
        world.crash(node);
        const keeps = hasDisk();
        if (!keeps) gone.push(node);
        world.restart(i, keeps);
      });
    }
  }
});

test('L9 a store that lost its tail twenty times overspends nothing', () => {
  const total = 50_000;
  const run = spend({ total }, [1, 10, 50], 1_000, 70);
  const states = [run.world.blob()];
  run.world.onExecuted.push(() => void states.push(run.world.blob()));
  for (let i = 1; i <= 20; i++) {
    run.world.at(run.world.now() + i * 3_000, () => {
      const back = i % 3 === 0 ? states.length : 1 + Math.floor(run.random() * 200);
      run.world.restore(states.at(-back), 2_000);
    });
  }
  run.run();
  expect(run.spent()).toBe(total);
});

test('a store that is away leaves what is held, then 503, and never 402', () => {
  const run = spend({ total: 100_000 }, [10], 100, 20);
  run.world.at(run.world.now() + 5_000, () => run.world.setStoreOut(true));
  run.world.at(run.world.now() + 15_000, () => run.world.setStoreOut(false));
  run.run();
  expect(run.kinds()['out-of-credits']).toBeUndefined();
  const kindsIn = (fromMs: number, untilMs: number) =>
    new Set(run.answers.filter(({ ms }) => ms >= fromMs && ms < untilMs).map(({ kind }) => kind));
  expect(kindsIn(5_000, 6_000)).toEqual(new Set(['charged']));
  expect(kindsIn(14_000, 15_000)).toContain('credits-unavailable');
  expect(kindsIn(15_500, 20_000)).toEqual(new Set(['charged']));
});

import { describe, expect, test } from 'bun:test';
import type { Charge } from '../../../gateway/limits/charge.ts';
import type { Plan } from '../../../shared/config/plans.ts';
import { planOf } from '../usage/started.ts';
import { seeded } from '../../fakes/seeded.ts';
import { createWorld, type WorldOptions } from './world.ts';

// Scenarios on credits, on the virtual clock; numbers of test/faults/README.md.

const WIDE = planOf(10_000);

/** What came of a call that was offered `atMs` and answered `ms` after the start, with the credits left then and those stated. */
type Answer = Readonly<{
  kind: Charge['kind'];
  cost: number;
  atMs: number;
  ms: number;
  left: number;
  stated: number | undefined;
  node: string;
}>;

/** Calls at random nodes, evenly spaced, until `seconds` have passed; what came of each, in order. */
function spend(
  total: number,
  costs: readonly number[],
  perSecond: number,
  seconds: number,
  options: Partial<WorldOptions> = {},
) {
  const world = createWorld({ plan: { ...WIDE, credits: total }, nodes: 4, total, ...options });
  const random = seeded(11);
  const startMs = world.now();
  const answers: Answer[] = [];
  const spent = () =>
    world.nodes.reduce((sum, { memory: { charged, refunded } }) => sum + charged - refunded, 0);
  const next = () => {
    const node = world.node(Math.floor(random() * 4));
    const cost = costs[Math.floor(random() * costs.length)] ?? 0;
    const atMs = world.now() - startMs;
    world.request(node, { calls: 1, credits: cost }, (charge) => {
      const [ms, left] = [world.now() - startMs, total - spent()];
      const stated = world.stated(node, charge);
      answers.push({ kind: charge.kind, cost, atMs, ms, left, stated, node: node.id });
    });
    if (world.now() - startMs < seconds * 1_000) world.at(world.now() + 1_000 / perSecond, next);
  };
  world.at(startMs, next);
  const kinds = () => new Set(answers.map(({ kind }) => kind));
  const after = (ms: number, act: () => void) => world.at(startMs + ms, act);
  const run = () => world.run(seconds * 1_000 + 20_000);
  return { world, answers, spent, kinds, after, run };
}

describe('a trial on four processes', () => {
  test.each([
    [[7], 1_003],
    [[1, 10, 50], 30_000],
  ])(
    'D1 at %p credits a call spends %p to the last whole call, and is refused with 402 not before',
    (costs, total) => {
      const run = spend(total, costs, 1_000, 2 + (2 * total) / (costs[0] ?? 1) / 1_000);
      run.run();
      expect(run.spent()).toBe(costs.length > 1 ? total : total - (total % (costs[0] ?? 1)));
      const refused = run.answers.filter(({ kind }) => kind === 'out-of-credits');
      expect(refused.length).toBeGreaterThan(0);
      expect(refused.every(({ cost, left }) => left < cost)).toBe(true);
      expect(run.kinds()).not.toContain('credits-unavailable');
    },
  );

  test('waits for the store at the start and at the end, and hardly between', () => {
    const run = spend(1_000_000, [10], 1_000, 30);
    run.run();
    expect(run.kinds()).toEqual(new Set(['charged']));
    expect(run.world.counts.messages).toBeLessThan(0.03 * 30_000);
  });
});

describe('L20 the credits left that a process states', () => {
  const isFalling = (stated: readonly (number | undefined)[]) =>
    expect(stated).toEqual(stated.toSorted((a = 0, b = 0) => b - a));
  const expectFalling = (answers: readonly Answer[]) =>
    Map.groupBy(answers, ({ node }) => node).forEach((each) =>
      isFalling(each.flatMap(({ stated }) => stated ?? [])),
    );

  test('are those that are left, on one host', () => {
    const run = spend(5_000, [1, 10, 50], 500, 4);
    run.run();
    expectFalling(run.answers);
    const other = run.answers.filter(({ stated, left }) => stated !== undefined && stated !== left);
    expect(other).toEqual([]);
    expect(run.kinds()).toContain('out-of-credits');
  });

  test('do not rise when a process of the host gives credits back, and are those that are left once as many are spent (§2.2.5)', () => {
    const run = spend(10_000, [1, 10, 50], 50, 8);
    const [node, kinds] = [run.world.node(0), [] as string[]];
    for (const ms of [1_000, 2_000, 3_000]) {
      run.after(ms, () =>
        run.world.request(node, { calls: 1, credits: 1_000 }, ({ kind }) => kinds.push(kind)),
      );
      run.after(ms + 500, () => run.world.refund(node, { calls: 0, credits: 1_000 }));
    }
    run.run();
    expect(kinds).toEqual(['charged', 'charged', 'charged']);
    expectFalling(run.answers);
    for (const { stated = 0, left } of run.answers) expect(stated).toBeLessThanOrEqual(left);
    const last = run.answers.at(-1);
    expect(last?.stated).toBe(last?.left);
  });

  test('do not rise after a rest in which another host returned what it held', () => {
    const world = createWorld({ plan: { ...WIDE, credits: 100_000 }, nodes: 2, areHosts: true });
    const stated: (number | undefined)[] = [];
    const callAt = (ms: number, i: number, note?: (left?: number) => void) =>
      world.at(1_000 + ms, () =>
        world.request(world.node(i), { calls: 1, credits: 10 }, (charge) =>
          note?.(world.stated(world.node(i), charge)),
        ),
      );
    for (let ms = 0; ms < 3_000; ms += 20) callAt(ms, 1);
    for (const ms of [0, 1_500, 2_900, 10_000, 40_000, 41_000, 120_000])
      callAt(ms, 0, (left) => void stated.push(left));
    world.run(130_000);
    isFalling(stated);
    expect(stated).not.toContain(undefined);
  });

  test('are never more than were left a second ago, on several hosts', () => {
    const run = spend(20_000, [1, 10, 50], 100, 4, { areHosts: true });
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

describe('L24 what a dead process holds', () => {
  /** Spends all that can be had while node 1 is dead with what it held; gives what node 0 said at the end, and what is left. */
  function spendBesideDead(areHosts: boolean | 'told') {
    const total = 1_000;
    const world = createWorld({ plan: { ...WIDE, credits: total }, nodes: 2, areHosts });
    const said: { kind: Charge['kind']; stated: number | undefined }[] = [];
    const call = (ms: number, i: number, note = false) =>
      world.at(1_001 + ms, () =>
        world.request(world.node(i), { calls: 1, credits: 1 }, (charge) => {
          if (note) said.push({ kind: charge.kind, stated: world.stated(world.node(i), charge) });
        }),
      );
    for (let ms = 0; ms < 3_000; ms += 10) for (const i of [0, 1]) call(ms, i, i === 0);
    world.at(4_001, () => world.crash(world.node(1)));
    for (let ms = 3_000; ms < 20_000; ms += 10) call(ms, 0, true);
    world.run(25_000);
    const left = world.nodes.reduce(
      (sum, { memory: { charged, refunded } }) => sum - charged + refunded,
      total,
    );
    return { said, left };
  }

  test.each([[false], [true], ['told' as const]])(
    'is neither spent nor to be had, and 402 never says that so much is left as was refused, with hosts %p',
    (areHosts) => {
      const { said, left } = spendBesideDead(areHosts);
      expect(left).toBeGreaterThan(0); // what the dead one holds
      const refused = said.filter(({ kind }) => kind === 'out-of-credits');
      expect(refused.length).toBeGreaterThan(0);
      expect(new Set(refused.map(({ stated }) => stated))).toEqual(new Set([0]));
      const stated = said.flatMap((each) => each.stated ?? []);
      expect(stated).toEqual(stated.toSorted((a, b) => b - a));
      // On hosts the last admitted call says it as well: what other hosts hold may be spent.
      const admitted = said.findLast(({ kind }) => kind === 'charged');
      if (areHosts !== false) expect(admitted?.stated).toBe(0);
    },
  );
});

describe('L21 when the last credit is spent', () => {
  /** What was answered to calls that came `laterMs` after the last one that was charged, or later. */
  function kindsAfter(plan: Plan, perSecond: number, areHosts: boolean, laterMs: number) {
    const total = Math.min(1_000, 5 * plan.rps);
    const run = spend(total, [1], perSecond, 15, { plan: { ...plan, credits: total }, areHosts });
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
    ['calls far above the rate', planOf(50), 500],
    ['one call at a time', planOf(5, 1), 50],
  ])('every process says 402 and never 429, on other hosts within a second: %s', (_, plan, perSecond) => {
    expect(kindsAfter(plan, perSecond, false, 0)).toEqual(new Set(['out-of-credits']));
    expect(kindsAfter(plan, perSecond, true, 1_000)).toEqual(new Set(['out-of-credits']));
  });
});

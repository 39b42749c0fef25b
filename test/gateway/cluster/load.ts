import type { Charge, Price } from '../../../gateway/limits/charge.ts';
import type { Plan } from '../../../shared/config/plans.ts';
import { seeded } from '../../fakes/seeded.ts';
import { createWorld, type Fate, type Node, type World } from './world.ts';

export type Load = Readonly<{
  /** Requests a second at `ms` since the start. */
  perSecond(ms: number): number;
  seconds: number;
  /** The node that gets a request. */
  nodeOf(ms: number): Node | undefined;
  /** Evenly spaced, or as chance has it (Poisson). */
  spacing: 'even' | 'poisson';
  random: () => number;
  price?: Price;
}>;

/** What came of a load: instants since its start in milliseconds, per kind of answer. */
export type Result = {
  offered: number;
  readonly admittedMs: number[];
  readonly kinds: Partial<Record<Charge['kind'], number>>;
  readonly tookMs: number[];
};

/** Puts a load on a world; the result fills while the world runs. */
export function put(world: World, load: Load): Result {
  const { spacing, random, price = { calls: 1, credits: 0 } } = load;
  const startMs = world.now();
  const result: Result = { offered: 0, admittedMs: [], kinds: {}, tookMs: [] };
  const next = () => {
    const ms = world.now() - startMs;
    const node = load.nodeOf(ms);
    result.offered++;
    if (node !== undefined) {
      world.request(node, price, ({ kind }, tookMs) => {
        result.kinds[kind] = (result.kinds[kind] ?? 0) + 1;
        result.tookMs.push(tookMs);
        if (kind === 'charged') result.admittedMs.push(world.now() - startMs);
      });
    }
    const gapMs = (1_000 / load.perSecond(ms)) * (spacing === 'even' ? 1 : -Math.log(1 - random()));
    if (ms + gapMs < load.seconds * 1_000) world.at(world.now() + gapMs, next);
  };
  world.at(startMs, next);
  return result;
}

type Run = Readonly<{
  nodes?: number;
  seed?: number;
  fate?: (random: () => number, from: number, world: World) => Fate;
  /** What happens so many milliseconds after the start. */
  events?: Readonly<Record<number, (world: World) => void>>;
  /** What differs from ten times the rate, evenly spaced over all nodes, for thirty seconds. */
  load?: (world: World, random: () => number) => Partial<Load>;
}>;

/** Runs a load on a world of four nodes to its end. */
export function runLoad(plan: Plan, { nodes = 4, seed = 42, fate, events = {}, load }: Run = {}) {
  const random = seeded(seed);
  const world: World = createWorld({
    plan,
    nodes,
    ...(fate && { fate: (from: Node) => fate(random, world.nodes.indexOf(from), world) }),
  });
  for (const [ms, act] of Object.entries(events)) world.at(world.now() + Number(ms), () => act(world));
  const whole: Load = {
    perSecond: () => 10 * plan.rps,
    seconds: 30,
    nodeOf: () => world.nodes[Math.floor(random() * nodes)],
    spacing: 'even',
    random,
    ...load?.(world, random),
  };
  const result = put(world, whole);
  world.run(whole.seconds * 1_000 + 1_000);
  if (result.tookMs.length !== result.offered) throw new Error('a request was not answered');
  return {
    result,
    world,
    /** How many were admitted from `fromMs` on and before `untilMs`. */
    admitted: (fromMs: number, untilMs: number) =>
      result.admittedMs.filter((ms) => ms >= fromMs && ms < untilMs).length,
  };
}

/** The most that was admitted in any span of so many milliseconds. */
export function mostIn({ admittedMs }: Result, spanMs: number, fromMs: number): number {
  let [most, first] = [0, 0];
  for (const [i, ms] of admittedMs.entries()) {
    while ((admittedMs[first] ?? 0) < Math.max(fromMs, ms - spanMs)) first++;
    most = Math.max(most, i - first + 1);
  }
  return most;
}

import fc from 'fast-check';
import { planOf } from '../usage/started.ts';
import { CALLS_MAX, type Op, runModel, Violation } from './model.ts';
import type { Authority } from './world.ts';

const node = fc.nat(3);

/** Operations of one kind, and how often they are among others. */
export function weighted<K extends string, Rest extends object>(
  weight: number,
  kind: K,
  rest: { [P in keyof Rest]: fc.Arbitrary<Rest[P]> },
) {
  return { weight, arbitrary: fc.record(rest).map((each) => ({ kind, ...each })) };
}

const op: fc.Arbitrary<Op> = fc.oneof(
  weighted(10, 'requests', {
    node,
    count: fc.integer({ min: 1, max: 40 }),
    calls: fc.constantFrom(1, 1, 1, 1, 1, 2, 5, CALLS_MAX),
    credits: fc.constantFrom(0, 1, 10, 50),
  }),
  weighted(8, 'wait', {
    ms: fc.oneof(fc.integer({ min: 1, max: 900 }), fc.integer({ min: 1_000, max: 4_000 })),
  }),
  weighted(2, 'refund', { node }),
  weighted(1, 'crash', { node }),
  weighted(2, 'restart', { node, hasDisk: fc.boolean() }),
  weighted(2, 'network', {
    loss: fc.constantFrom(0, 0, 0, 0.2, 0.6),
    twice: fc.constantFrom(0, 0.5),
    delayMs: fc.constantFrom(2, 45, 45, 1_500),
  }),
  weighted(1, 'clock', { ms: fc.constantFrom(-3_600_000, -50, 3_600_000) }),
  weighted(1, 'plan', { rps: fc.constantFrom(10, 100), burst: fc.constantFrom(10, 100) }),
  weighted(1, 'failover', { messages: fc.constantFrom(0, 5, 40, 100_000) }),
);

const PAID = planOf(50);
const TRIAL = planOf(40, 40, 700);

/** Things that matter together: a process that starts again at once, and calls at every process at once. */
const ops: fc.Arbitrary<readonly Op[]> = fc.oneof(
  { weight: 30, arbitrary: op.map((one) => [one]) },
  {
    weight: 3,
    arbitrary: node.map((at): readonly Op[] => [
      { kind: 'crash', node: at },
      { kind: 'restart', node: at, hasDisk: true },
      { kind: 'requests', node: at, count: 15, calls: 1, credits: 1 },
    ]),
  },
  {
    weight: 6,
    arbitrary: fc
      .integer({ min: 5, max: 40 })
      .map((count): readonly Op[] =>
        [0, 1, 2, 3].map((at) => ({ kind: 'requests', node: at, count, calls: 1, credits: 1 })),
      ),
  },
);

/** Calls that go on for a while, so that leases are held. */
const stream: fc.Arbitrary<readonly Op[]> = fc
  .tuple(node, fc.integer({ min: 1, max: 4 }), fc.constantFrom(1, 1, 10, 50))
  .map(([at, count, credits]) =>
    Array.from({ length: 12 }, (): readonly Op[] => [
      { kind: 'requests', node: at, count, calls: 1, credits },
      { kind: 'requests', node: at + 1, count: 1, calls: 1, credits },
      { kind: 'wait', ms: 40 },
    ]).flat(),
  );

/** Things that a run does without: what one of them allows would hide what another breaks. */
const without = fc.subarray(['refund', 'crash', 'restart', 'network', 'clock', 'plan', 'failover']);

const schedule = fc
  .tuple(
    fc.array(fc.oneof({ weight: 6, arbitrary: ops }, { weight: 1, arbitrary: stream }), {
      minLength: 5,
      maxLength: 40,
      size: 'max',
    }),
    without,
    fc.nat(1_000_000),
    fc.constantFrom(PAID, TRIAL, TRIAL, { ...TRIAL, credits: 2_500 }),
  )
  .map(
    ([many, kinds, seed, plan]) =>
      [many.flat().filter(({ kind }) => !kinds.includes(kind)), seed, plan] as const,
  );

/** The sentence of the first violation that random schedules find, or nothing. The same in every run. */
export function firstViolation(authority: Authority, runs: number): string | undefined {
  const property = fc.property(schedule, ([ops, seed, plan]) => {
    runModel(ops, { authority, plan, nodes: 4, seed });
  });
  const found = fc.check(property, { numRuns: runs, seed: 7, endOnFailure: true });
  if (!found.failed) return undefined;
  const { errorInstance: error } = found;
  if (error instanceof Violation) return error.message;
  throw error;
}

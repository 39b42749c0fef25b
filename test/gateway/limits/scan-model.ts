import fc from 'fast-check';
import { SCAN_LIFE_MS } from '../../../gateway/limits/authority.ts';
import { seeded } from './load.ts';
import { type Authority, createWorld, type World } from './world.ts';

export type ScanOp =
  | Readonly<{ kind: 'scans'; node: number; count: number; takesMs: number }>
  | Readonly<{ kind: 'wait'; ms: number }>
  | Readonly<{ kind: 'crash' | 'restart'; node: number }>
  | Readonly<{ kind: 'again'; back: number }>
  | Readonly<{ kind: 'lose' }>
  | Readonly<{ kind: 'network'; loss: number; delayMs: number; twice: number }>;

const NODES = 4;
const LEARN_MS = 2_000;
/** All that may wait at once, one after the other, and the leases of the dead; less than what makes them forgotten. */
const SETTLED_MS = 12 * 3_000 + 2 * SCAN_LIFE_MS;
const node = fc.nat(NODES - 1);

const kindOf = <K extends ScanOp['kind']>(kind: K) => fc.constant(kind);
const op: fc.Arbitrary<ScanOp> = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({
      kind: kindOf('scans'),
      node,
      count: fc.integer({ min: 1, max: 9 }),
      takesMs: fc.constantFrom(5, 50, 400, 3_000),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({ kind: kindOf('wait'), ms: fc.constantFrom(5, 60, 300, 1_200, 6_000) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: kindOf('crash'), node }) },
  { weight: 2, arbitrary: fc.record({ kind: kindOf('restart'), node }) },
  { weight: 2, arbitrary: fc.record({ kind: kindOf('again'), back: fc.nat(20) }) },
  { weight: 1, arbitrary: fc.record({ kind: kindOf('lose') }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: kindOf('network'),
      loss: fc.constantFrom(0, 0, 0.3),
      delayMs: fc.constantFrom(2, 40, 700),
      twice: fc.constantFrom(0, 0.5),
    }),
  },
);

/** A plan with so many scans at once. */
export const scanPlan = (scans: number) => ({
  rps: 100,
  burst: 100,
  credits: undefined,
  batchMax: 1,
  scans,
  inFlight: 16,
});

/** Runs of operations in which scans are often more than there are places. */
export const scanRuns = fc.record({
  scans: fc.constantFrom(1, 2, 3, 8),
  seed: fc.nat(1_000_000),
  ops: fc.array(op, { minLength: 20, maxLength: 60, size: 'max' }),
});

export type ScanRun = Readonly<{ scans: number; seed: number; ops: readonly ScanOp[] }>;

/**
 * Walks through a run and gives the first promise that was broken, or `undefined`: never more scans at once than the
 * plan says, and one more per other process once messages were lost or came late, or the store lost its state; a
 * message that comes again changes nothing; and when all is well again everybody's scans run, in all places.
 */
export async function brokenPromise(
  { scans, seed, ops }: ScanRun,
  authority?: Authority,
): Promise<string | undefined> {
  const random = seeded(seed);
  const network = { loss: 0, delayMs: 1, twice: 0 };
  const world = createWorld({
    plan: scanPlan(scans),
    nodes: NODES,
    ...(authority && { authority }),
    fate() {
      const { loss, delayMs, twice } = network;
      return {
        thereMs: random() < loss ? undefined : random() * delayMs,
        backMs: random() < loss ? undefined : random() * delayMs,
        ...(random() < twice && { again: random() * 3_000 }),
      };
    },
  });
  let most = scans;
  let late = false;
  for (const each of ops) {
    const before = world.counts.mostScans;
    switch (each.kind) {
      case 'scans':
        for (let i = 0; i < each.count; i++) {
          const to = world.nodes[each.node];
          if (to !== undefined) void world.scan(to, () => random() * each.takesMs);
        }
        await world.runTurns(1);
        break;
      case 'wait':
        await world.runTurns(each.ms);
        break;
      case 'again': {
        const before = world.blob();
        world.executeAgain(each.back);
        if (before !== world.blob()) return 'a message that came again changed something';
        break;
      }
      case 'lose':
        // Without a state nothing tells a late message from a new one.
        if (!late) {
          world.restore(undefined, LEARN_MS);
          most = scans + NODES - 1;
          await world.runTurns(LEARN_MS);
        }
        break;
      case 'network':
        Object.assign(network, each);
        late ||= each.twice > 0 || each.delayMs > 40;
        if (each.loss > 0 || each.delayMs > 40) most = scans + NODES - 1;
        break;
      case 'restart':
        world.restart(each.node, true);
        break;
      case 'crash': {
        const node = world.nodes[each.node];
        if (node !== undefined) world.crash(node);
      }
    }
    if (world.counts.mostScans > most)
      return `${world.counts.mostScans} scans at once (${before} before), of ${most}, at ${each.kind}`;
  }
  return isWellAgain(world, network, scans);
}

async function isWellAgain(
  world: World,
  network: { loss: number; delayMs: number; twice: number },
  scans: number,
): Promise<string | undefined> {
  Object.assign(network, { loss: 0, delayMs: 1, twice: 0 });
  world.restart(0, true);
  await world.runTurns(SETTLED_MS);
  world.keepBusy(0, scans, () => 100);
  await world.runTurns(2_000);
  if (world.running() < scans) return `${world.running()} scans run of ${scans} at last`;
  world.restart(1, true);
  world.keepBusy(1, 1, () => 100);
  const before = world.nodes[1]?.done ?? 0;
  await world.runTurns(5_000);
  return (world.nodes[1]?.done ?? 0) > before ? undefined : 'a process has no turn at last';
}

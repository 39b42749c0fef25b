import fc from 'fast-check';
import { SCAN_LIFE_MS } from '../../../gateway/cluster/authority.ts';
import { planOf } from '../usage/started.ts';
import { seeded } from '../../fakes/seeded.ts';
import { weighted } from './model-runs.ts';
import { createWorld, type World } from './world.ts';

const NODES = 4;
const LEARN_MS = 2_000;
/** All that may wait at once, one after the other, and the leases of the dead; less than what makes them forgotten. */
const SETTLED_MS = 12 * 3_000 + 2 * SCAN_LIFE_MS;
const node = fc.nat(NODES - 1);
const oneOf = fc.constantFrom<number[]>;

const op = fc.oneof(
  weighted(10, 'scans', { node, count: fc.integer({ min: 1, max: 9 }), takesMs: oneOf(5, 50, 400, 3_000) }),
  weighted(8, 'wait', { ms: oneOf(5, 60, 300, 1_200, 6_000) }),
  weighted(1, 'crash', { node }),
  weighted(2, 'restart', { node }),
  weighted(2, 'again', { back: fc.nat(20) }),
  weighted(1, 'lose', {}),
  weighted(1, 'network', { loss: oneOf(0, 0, 0.3), delayMs: oneOf(2, 40, 700), twice: oneOf(0, 0.5) }),
);

/** Runs of operations in which scans are often more than there are places. */
export const scanRuns = fc.record({
  scans: fc.constantFrom(1, 2, 3, 8),
  seed: fc.nat(1_000_000),
  ops: fc.array(op, { minLength: 20, maxLength: 60, size: 'max' }),
});

type ScanRun = typeof scanRuns extends fc.Arbitrary<infer T> ? T : never;

/**
 * Walks through a run and gives the first promise that was broken, or `undefined`: never more scans at once than the
 * plan says, and one more per other process once messages were lost or came late, or the store lost its state; a
 * message that comes again changes nothing; and when all is well again everybody's scans run, in all places.
 */
export async function brokenPromise({ scans, seed, ops }: ScanRun): Promise<string | undefined> {
  const random = seeded(seed);
  const network = { loss: 0, delayMs: 1, twice: 0 };
  const world = createWorld({
    plan: planOf(100, 100, undefined, scans),
    nodes: NODES,
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
        for (let i = 0; i < each.count; i++)
          void world.scan(world.node(each.node), () => random() * each.takesMs);
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
      case 'crash':
        world.crash(world.node(each.node));
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
  const before = world.node(1).done;
  await world.runTurns(5_000);
  return world.node(1).done > before ? undefined : 'a process has no turn at last';
}

import { describe, expect, test } from 'bun:test';
import { planOf } from '../usage/started.ts';
import { seeded } from '../../fakes/seeded.ts';
import { createWorld, type World } from './world.ts';

const scanWorld = (scans: number, nodes: number) =>
  createWorld({ plan: planOf(100, 100, undefined, scans), nodes });
const done = (world: World) => world.nodes.map((node) => node.done);

describe('scans of one account over several processes', () => {
  test.each([
    [1, 2],
    [3, 4],
    [2, 9],
  ])('%i at once over %i processes are never more, and nearly always as many', async (scans, nodes) => {
    const world = scanWorld(scans, nodes);
    const random = seeded(scans * 100 + nodes);
    for (let i = 0; i < nodes; i++) world.keepBusy(i, scans * 3, () => 20 + random() * 200);
    let [sum, looks] = [0, 0];
    for (let ms = 0; ms < 20_000; ms += 50) {
      await world.runTurns(50);
      sum += world.running();
      looks++;
    }
    expect(world.counts.mostScans).toBe(scans);
    expect(sum / looks).toBeGreaterThan(scans * 0.7);
    // None starves: the least has at least a third of what each would have.
    const even = done(world).reduce((a, b) => a + b, 0) / nodes;
    expect(Math.min(...done(world))).toBeGreaterThan(even / 3);
  });

  test("what a process does not use is another one's within half a second", async () => {
    const world = scanWorld(4, 2);
    world.keepBusy(0, 4, () => 100, world.now() + 500);
    await world.runTurns(700);
    world.keepBusy(1, 4, () => 100);
    await world.runTurns(500);
    expect(world.node(1).running).toBe(4);
  });

  test('long streams cost one message a second, and an account at rest none: it is forgotten', async () => {
    const world = scanWorld(4, 1);
    world.keepBusy(0, 4, () => 11_000, world.now() + 200);
    await world.runTurns(1_000);
    const { messages } = world.counts;
    expect(messages).toBeLessThan(6);
    await world.runTurns(10_000);
    expect(world.counts.messages - messages).toBeLessThanOrEqual(10);
    await world.runTurns(2_000);
    const after = world.counts.messages;
    await world.runTurns(10_000);
    expect([world.counts.messages, world.node(0).scans.size()]).toEqual([after, 0]);
  });

  test('a plan that shrinks or grows counts within a second and the scans under way', async () => {
    const world = scanWorld(8, 2);
    for (const i of [0, 1]) world.keepBusy(i, 24, () => 50);
    await world.runTurns(2_000);
    world.setPlan(planOf(100, 100, undefined, 2));
    await world.runTurns(1_500);
    expect(world.running()).toBeLessThanOrEqual(2);
    world.setPlan(planOf(100, 100, undefined, 6));
    await world.runTurns(1_500);
    expect(world.running()).toBe(6);
  });
});

test.each([
  [4, 4],
  [1, 4],
])(
  'while the store does not reply %i scans over %i processes become at most one more per other process',
  async (scans, nodes) => {
    const world = scanWorld(scans, nodes);
    const random = seeded(7);
    world.keepBusy(0, scans, () => 300 + random() * 3_000);
    await world.runTurns(1_000);
    expect(world.running()).toBe(scans);
    world.setStoreOut(true);
    for (let i = 1; i < nodes; i++) world.keepBusy(i, scans * 3, () => 50 + random() * 3_000);
    // A scan waits no longer than a message may take.
    await world.runTurns(130);
    expect(world.running()).toBe(scans + nodes - 1);
    await world.runTurns(20_000);
    expect(world.counts.mostScans).toBe(scans + nodes - 1);
    for (const node of world.nodes) expect(node.done).toBeGreaterThan(2);
    world.setStoreOut(false);
    await world.runTurns(5_000);
    expect(world.running()).toBeLessThanOrEqual(scans);
    expect(world.nodes.every(({ scans: held }) => held.size() <= 1)).toBe(true);
  },
);

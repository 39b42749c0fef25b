import { describe, expect, test } from 'bun:test';
import { SCAN_LIFE_MS } from '../../../gateway/lease/centre-scans.ts';
import { seeded } from './load.ts';
import { createScanWorld } from './scan-world.ts';

const done = (world: ReturnType<typeof createScanWorld>) => world.nodes.map((node) => node.done);

describe('scans of one account over several processes', () => {
  test.each([
    [1, 2],
    [4, 4],
    [3, 4],
    [16, 4],
    [2, 9],
  ])('%i at once over %i processes are never more, and nearly always as many', async (scans, nodes) => {
    const world = createScanWorld({ scans, nodes });
    const random = seeded(scans * 100 + nodes);
    for (let i = 0; i < nodes; i++) world.keepBusy(i, scans * 3, () => 20 + random() * 200);
    let [sum, looks] = [0, 0];
    for (let ms = 0; ms < 20_000; ms += 50) {
      await world.run(50);
      sum += world.running();
      looks++;
    }
    expect(world.counts.most).toBe(scans);
    expect(sum / looks).toBeGreaterThan(scans * 0.7);
    // Nobody starves: the least has at least a third of what each would have.
    const all = done(world);
    const even = all.reduce((a, b) => a + b, 0) / nodes;
    expect(Math.min(...all)).toBeGreaterThan(even / 3);
  });

  test('an odd place goes from one to the other in turn', async () => {
    const world = createScanWorld({ scans: 3, nodes: 2 });
    for (const i of [0, 1]) world.keepBusy(i, 9, () => 40);
    await world.run(20_000);
    expect(Math.min(...done(world)) / Math.max(...done(world))).toBeGreaterThan(0.8);
  });

  test('one process alone has them all', async () => {
    const world = createScanWorld({ scans: 4, nodes: 3 });
    world.keepBusy(0, 12, () => 100);
    await world.run(1_000);
    expect(world.running()).toBe(4);
    expect(done(world)[0]).toBeGreaterThan(34);
  });

  test('a process whose scans wait gets its turn, though another always has more to do', async () => {
    const world = createScanWorld({ scans: 1, nodes: 2 });
    world.keepBusy(0, 3, () => 30);
    await world.run(2_000);
    world.keepBusy(1, 1, () => 30, world.now() + 5);
    await world.run(2_000);
    expect(done(world)[1]).toBe(1);
  });

  test("what a process does not use is another one's within half a second", async () => {
    const world = createScanWorld({ scans: 4, nodes: 2 });
    world.keepBusy(0, 4, () => 100, world.now() + 500);
    await world.run(700);
    world.keepBusy(1, 4, () => 100);
    await world.run(500);
    expect(world.nodes[1]?.running).toBe(4);
  });

  test('places of a dead process come back when its lease ends, and at once when it is started again', async () => {
    const world = createScanWorld({ scans: 2, nodes: 2 });
    world.keepBusy(0, 2, () => 60_000);
    await world.run(500);
    world.crash(0);
    world.keepBusy(1, 2, () => 60_000);
    await world.run(SCAN_LIFE_MS - 1_500);
    expect(world.running()).toBe(0);
    await world.run(2_500);
    expect(world.running()).toBe(2);
    world.crash(1);
    world.restart(1);
    await world.run(100);
    expect(world.running()).toBe(2);
  });

  test('an account at rest says nothing and is forgotten', async () => {
    const world = createScanWorld({ scans: 4, nodes: 1 });
    world.keepBusy(0, 2, () => 50, world.now() + 200);
    await world.run(1_000);
    const { messages } = world.counts;
    expect(messages).toBeLessThan(6);
    await world.run(10_000);
    expect(world.counts.messages).toBe(messages);
    expect(world.nodes[0]?.places.size).toBe(0);
  });

  test('long streams cost one message a second', async () => {
    const world = createScanWorld({ scans: 4, nodes: 1 });
    world.keepBusy(0, 4, () => 60_000);
    await world.run(1_000);
    const { messages } = world.counts;
    await world.run(10_000);
    expect(world.counts.messages - messages).toBeLessThanOrEqual(10);
  });

  test('a plan that shrinks or grows counts within a second and the scans under way', async () => {
    const world = createScanWorld({ scans: 8, nodes: 2 });
    for (const i of [0, 1]) world.keepBusy(i, 24, () => 50);
    await world.run(2_000);
    world.setPlan(2);
    await world.run(1_500);
    expect(world.running()).toBeLessThanOrEqual(2);
    world.setPlan(6);
    await world.run(1_500);
    expect(world.running()).toBe(6);
  });
});

describe('while the centre does not answer', () => {
  test.each([
    [4, 4],
    [1, 4],
    [16, 3],
  ])('%i scans over %i processes become at most one more per other process', async (scans, nodes) => {
    const world = createScanWorld({ scans, nodes });
    const random = seeded(7);
    world.keepBusy(0, scans, () => 300 + random() * 3_000);
    await world.run(1_000);
    expect(world.running()).toBe(scans);
    world.setStoreOut(true);
    for (let i = 1; i < nodes; i++) world.keepBusy(i, scans * 3, () => 50 + random() * 3_000);
    await world.run(20_000);
    expect(world.counts.most).toBe(scans + nodes - 1);
    for (const node of world.nodes) expect(node.done).toBeGreaterThan(2);
    world.setStoreOut(false);
    await world.run(5_000);
    expect(world.running()).toBeLessThanOrEqual(scans);
    expect(world.nodes.every(({ places }) => places.size <= 1)).toBe(true);
  });

  test('a scan waits no longer than a message may take', async () => {
    const world = createScanWorld({ scans: 2, nodes: 1 });
    world.setStoreOut(true);
    world.keepBusy(0, 1, () => 60_000);
    await world.run(130);
    expect(world.running()).toBe(1);
  });
});

test('a centre that lost everything hears all processes before it grants places again', async () => {
  const world = createScanWorld({ scans: 3, nodes: 3 });
  world.keepBusy(0, 3, () => 60_000);
  await world.run(1_000);
  world.lose(2_000);
  for (const i of [1, 2]) world.keepBusy(i, 9, () => 60_000);
  await world.run(8_000);
  expect(world.counts.most).toBeLessThanOrEqual(3 + 2);
});

import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { Redis } from 'ioredis';
import type { CreditGrant, LeaseStore } from '../../../gateway/limits/messages.ts';
import { LEARNING_MS } from '../../../gateway/limits/authority-credits.ts';
import { leaseKey } from '../../../gateway/limits/store-redis.ts';
import { systemClock } from '../../../shared/clock.ts';
import { startTcpProxy } from '../../fakes/tcp-proxy.ts';
import { type StartedRedis, startRedis } from '../../started/redis.ts';
import { answers, type creditMessage, creditsFrom, openedRedis, rateMessage, senderOf } from './stores.ts';

/** A Redis that forgets what it answered: no credit is granted twice. */
let server: StartedRedis;
let proxy: ReturnType<typeof startTcpProxy>;
const nodes = new Map<string, Node>();
type Node = { store: LeaseStore; seq: number; losses: number };

beforeEach(async () => {
  server = await startRedis(['--repl-diskless-sync-delay', '0']);
  proxy = startTcpProxy(server.port);
});
const LONG_MS = 60_000;

afterEach(async () => {
  await Promise.all([...nodes.values()].map(({ store }) => store.close()));
  nodes.clear();
  proxy[Symbol.dispose]();
  await server[Symbol.asyncDispose]();
});

/** A process whose server has been there for long: the start of the test is no loss. */
async function join(name: string): Promise<void> {
  let laterMs = 0;
  const clock = { ...systemClock, monotonic: () => performance.now() + laterMs };
  const store = openedRedis({ url: proxy.url, clock, onLoss: () => void node.losses++ });
  const node: Node = { store, seq: 0, losses: 0 };
  await answers(store);
  laterMs = LONG_MS;
  node.losses = 0;
  nodes.set(name, node);
}

async function send(
  name: string,
  part: Parameters<typeof creditMessage>[0] & object,
): Promise<CreditGrant | undefined> {
  const node = nodes.get(name);
  if (node === undefined) throw new Error(`${name} has not joined`);
  return creditsFrom(node.store, senderOf(name, ++node.seq), part);
}

async function sendUntilHeard(
  name: string,
  part: Parameters<typeof creditMessage>[0] & object,
): Promise<CreditGrant> {
  const untilMs = performance.now() + 3_000;
  for (;;) {
    const grant = await send(name, part);
    if (grant !== undefined) return grant;
    if (performance.now() > untilMs) throw new Error('the store does not answer');
    await Bun.sleep(10);
  }
}

const losses = (name: string) => nodes.get(name)?.losses;

describe('a server that starts again empty', () => {
  test('grants nothing until it has heard what was spent, and then what is left to the unit', async () => {
    await Promise.all([join('a'), join('b')]);
    expect(await sendUntilHeard('a', { wanted: 400 })).toMatchObject({ allowance: 400 });
    expect(await sendUntilHeard('b', { wanted: 100 })).toMatchObject({ allowance: 100 });
    await server.restart('empty');
    const early = await sendUntilHeard('b', { charged: 60, wanted: 500, needed: 10 });
    expect(early).toMatchObject({ allowance: 0, learning: true });
    expect(await sendUntilHeard('a', { charged: 390, wanted: 10 })).toMatchObject({
      allowance: 0,
      learning: true,
    });
    expect([losses('a'), losses('b')].every((count) => (count ?? 0) > 0)).toBe(true);
    await Bun.sleep(LEARNING_MS + 50);
    const late = await sendUntilHeard('b', { charged: 60, wanted: 1_000, needed: 550 });
    expect(late).toMatchObject({ learning: false, allowance: 550, available: 0 });
  });
});

test('a server whose keys were deleted under it is found out by the first who held some', async () => {
  await Promise.all([join('a'), join('b')]);
  await sendUntilHeard('a', { wanted: 400 });
  await server.cli('FLUSHALL');
  expect(await sendUntilHeard('a', { charged: 5, wanted: 400 })).toMatchObject({
    allowance: 0,
    learning: true,
  });
  expect(await sendUntilHeard('b', { wanted: 100, needed: 10 })).toMatchObject({
    allowance: 0,
    learning: true,
  });
  expect([losses('a'), losses('b')]).toEqual([1, 0]);
});

test('a balance that went back in time is found out by the node whose answered message it lacks', async () => {
  await Promise.all([join('a'), join('b')]);
  const admin = new Redis(server.port);
  await sendUntilHeard('a', { wanted: 100 });
  const older = await admin.get(leaseKey(1));
  await sendUntilHeard('a', { held: 100, wanted: 300 });
  await admin.set(leaseKey(1), older ?? '');
  admin.disconnect();
  expect(await sendUntilHeard('a', { held: 300, wanted: 300 })).toMatchObject({
    allowance: 100,
    learning: true,
  });
  expect(await sendUntilHeard('b', { wanted: 700, needed: 700 })).toMatchObject({
    allowance: 0,
    learning: true,
  });
  expect([losses('a'), losses('b')]).toEqual([1, 0]);
});

test('a rate that a server forgot starts again near empty, and one it never knew starts full', async () => {
  await join('a');
  const tokens = async (accountId: number) => {
    const [reply] = (await nodes.get('a')?.store.sync(senderOf('a', 1), [rateMessage({}, accountId)])) ?? [];
    return reply?.rate?.remaining;
  };
  expect(await tokens(1)).toBe(100);
  await server.restart('empty');
  let left: number | undefined;
  while ((left = await tokens(1)) === undefined) await Bun.sleep(5);
  expect(left).toBe(10);
});

test('L9 a replica that takes over without the last grants does not grant them again', async () => {
  await using replica = await startRedis();
  using replication = startTcpProxy(server.port);
  await Promise.all([join('a'), join('b')]);
  await sendUntilHeard('a', { wanted: 100 });
  await replica.cli('REPLICAOF', '127.0.0.1', String(replication.port));
  while (!(await replica.cli('INFO', 'replication')).includes('master_link_status:up')) await Bun.sleep(20);
  while ((await replica.cli('EXISTS', leaseKey(1))) !== '1') await Bun.sleep(20);
  replication.become('black-hole');
  expect(await sendUntilHeard('a', { wanted: 450 })).toMatchObject({ allowance: 450 });
  await server.die();
  await replica.cli('REPLICAOF', 'NO', 'ONE');
  proxy.leadTo(replica.port);
  proxy.cut();
  // The other asks first: the new primary believes that 900 are free, and they are 550.
  expect(await sendUntilHeard('b', { wanted: 900, needed: 900 })).toMatchObject({
    allowance: 0,
    learning: true,
  });
  expect(await sendUntilHeard('a', { charged: 450 })).toMatchObject({ learning: true, allowance: 0 });
  await Bun.sleep(LEARNING_MS + 50);
  const grant = await sendUntilHeard('b', { wanted: 900, needed: 550 });
  expect(grant).toMatchObject({ learning: false, allowance: 550, available: 0 });
}, 15_000);

test('L10 what is cut between its execution and its reply is neither granted nor charged twice', async () => {
  await Promise.all([join('a'), join('b')]);
  const charged = { a: 0, b: 0 };
  let slowestMs = 0;
  for (let turn = 0; turn < 40; turn++) {
    const name = turn % 2 === 0 ? 'a' : 'b';
    proxy.cutAtNextReply();
    const startMs = performance.now();
    expect(await send(name, { charged: charged[name], wanted: 20 })).toBeUndefined();
    slowestMs = Math.max(slowestMs, performance.now() - startMs);
    const { allowance } = await sendUntilHeard(name, { charged: charged[name], wanted: 20 });
    expect(allowance).toBeLessThanOrEqual(20);
    charged[name] += Math.min(7, allowance);
  }
  const [a, b] = [
    await sendUntilHeard('a', { charged: charged.a }),
    await sendUntilHeard('b', { charged: charged.b }),
  ];
  expect([a.allowance, b.allowance]).toEqual([0, 0]);
  expect(b.available).toBe(1_000 - charged.a - charged.b);
  expect(slowestMs).toBeLessThan(500);
}, 15_000);

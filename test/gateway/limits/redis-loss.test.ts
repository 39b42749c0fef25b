import { afterEach, beforeEach, expect, test } from 'bun:test';
import { Redis } from 'ioredis';
import { LEARNING_MS } from '../../../gateway/limits/authority-credits.ts';
import type { CreditGrant, CreditReport } from '../../../gateway/limits/messages.ts';
import { leaseKey } from '../../../gateway/limits/store-redis.ts';
import { systemClock } from '../../../shared/clock.ts';
import { startTcpProxy } from '../../fakes/tcp-proxy.ts';
import { type StartedRedis, startRedis } from '../../started/redis.ts';
import { answers, creditsFrom, openedRedis, rateMessage, senderOf } from './stores.ts';

/** A Redis that forgets what it answered: no credit is granted twice. */
let server: StartedRedis;
let proxy: ReturnType<typeof startTcpProxy>;
let a: Joined;
let b: Joined;
type Joined = Awaited<ReturnType<typeof joined>>;

beforeEach(async () => {
  server = await startRedis();
  proxy = startTcpProxy(server.port);
  [a, b] = await Promise.all([joined('a'), joined('b')]);
});
afterEach(async () => {
  await Promise.all([a.store.close(), b.store.close()]);
  proxy[Symbol.dispose]();
  await server[Symbol.asyncDispose]();
});

/** A process whose server has been there for long: the start of the test is no loss. */
async function joined(name: string) {
  let [laterMs, losses, seq] = [0, 0, 0];
  const clock = { ...systemClock, monotonic: () => performance.now() + laterMs };
  const store = openedRedis({ url: proxy.url, clock, onLoss: () => void losses++ });
  await answers(store);
  [laterMs, losses] = [60_000, 0];
  const send = (part: Partial<CreditReport>) => creditsFrom(store, senderOf(name, ++seq), part);
  return {
    store,
    send,
    losses: () => losses,
    /** Sends until there is a reply. */
    async heard(part: Partial<CreditReport>): Promise<CreditGrant> {
      const untilMs = performance.now() + 3_000;
      for (;;) {
        const grant = await send(part);
        if (grant !== undefined) return grant;
        if (performance.now() > untilMs) throw new Error('the store does not answer');
        await Bun.sleep(10);
      }
    },
  };
}

const LEARNING = { allowance: 0, learning: true };

test('a server that starts again empty grants nothing until it has heard what was spent, and then what is left to the unit', async () => {
  expect(await a.heard({ wanted: 400 })).toMatchObject({ allowance: 400 });
  expect(await b.heard({ wanted: 100 })).toMatchObject({ allowance: 100 });
  await server.restart('empty');
  expect(await b.heard({ charged: 60, wanted: 500, needed: 10 })).toMatchObject(LEARNING);
  expect(await a.heard({ charged: 390, wanted: 10 })).toMatchObject(LEARNING);
  expect(Math.min(a.losses(), b.losses())).toBeGreaterThan(0);
  await Bun.sleep(LEARNING_MS + 50);
  const late = await b.heard({ charged: 60, wanted: 1_000, needed: 550 });
  expect(late).toMatchObject({ learning: false, allowance: 550, available: 0 });
});

test('a server whose keys were deleted under it is found out by the first who held some', async () => {
  await a.heard({ wanted: 400 });
  await server.cli('FLUSHALL');
  expect(await a.heard({ charged: 5, wanted: 400 })).toMatchObject(LEARNING);
  expect(await b.heard({ wanted: 100, needed: 10 })).toMatchObject(LEARNING);
  expect([a.losses(), b.losses()]).toEqual([1, 0]);
});

test('a balance that went back in time is found out by the node whose answered message it lacks', async () => {
  const admin = new Redis(server.port);
  await a.heard({ wanted: 100 });
  const older = await admin.get(leaseKey(1));
  await a.heard({ held: 100, wanted: 300 });
  await admin.set(leaseKey(1), older ?? '');
  admin.disconnect();
  expect(await a.heard({ held: 300, wanted: 300 })).toMatchObject({ allowance: 100, learning: true });
  expect(await b.heard({ wanted: 700, needed: 700 })).toMatchObject(LEARNING);
  expect([a.losses(), b.losses()]).toEqual([1, 0]);
});

test('a rate that a server forgot starts again near empty, and one it never knew starts full', async () => {
  const tokens = async () => {
    const [reply] = await a.store.sync(senderOf('a', 1), [rateMessage()]);
    return reply?.rate?.remaining;
  };
  expect(await tokens()).toBe(100);
  await server.restart('empty');
  let left: number | undefined;
  while ((left = await tokens()) === undefined) await Bun.sleep(5);
  expect(left).toBe(10);
});

test('L10 what is cut between its execution and its reply is neither granted nor charged twice', async () => {
  const charged = new Map([
    [a, 0],
    [b, 0],
  ]);
  for (let turn = 0; turn < 40; turn++) {
    const node = turn % 2 === 0 ? a : b;
    const report = { charged: charged.get(node) ?? 0, wanted: 20 };
    proxy.cutAtNextReply();
    expect(await node.send(report)).toBeUndefined();
    const { allowance } = await node.heard(report);
    expect(allowance).toBeLessThanOrEqual(20);
    charged.set(node, report.charged + Math.min(7, allowance));
  }
  const [ofA = 0, ofB = 0] = charged.values();
  expect(await a.heard({ charged: ofA })).toMatchObject({ allowance: 0 });
  expect(await b.heard({ charged: ofB })).toMatchObject({ allowance: 0, available: 1_000 - ofA - ofB });
}, 15_000);

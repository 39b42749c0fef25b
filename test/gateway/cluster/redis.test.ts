import { afterEach, beforeEach, expect, test } from 'bun:test';
import { Redis } from 'ioredis';
import { CREDIT_RELEASE_MS, LEARNING_MS } from '../../../gateway/cluster/authority-credits.ts';
import { RATE_LIFE_MS } from '../../../gateway/cluster/authority-rate.ts';
import { SCAN_FORGET_MS, SCAN_LIFE_MS } from '../../../gateway/cluster/authority.ts';
import type { CreditGrant, CreditReport, Released } from '../../../gateway/cluster/messages.ts';
import { leaseKey } from '../../../gateway/cluster/store-redis.ts';
import { systemClock } from '../../../shared/clock.ts';
import { startTcpProxy } from '../../started/tcp-proxy.ts';
import { type StartedRedis, startRedis } from '../../started/redis.ts';
import {
  answers,
  creditMessage,
  creditsFrom,
  openedRedis,
  rateMessage,
  scanMessage,
  senderOf,
} from './stores.ts';

/** What a store leaves in Redis and what it costs there; and a Redis that forgets: no credit is granted twice. */
let server: StartedRedis;
let proxy: ReturnType<typeof startTcpProxy>;
let admin: Redis;
let a: Joined;
let b: Joined;
type Joined = Awaited<ReturnType<typeof joined>>;

beforeEach(async () => {
  server = await startRedis();
  proxy = startTcpProxy(server.port);
  admin = new Redis(server.port);
  [a, b] = await Promise.all([joined('a'), joined('b')]);
});
afterEach(async () => {
  await Promise.all([a.store.close(), b.store.close()]);
  admin.disconnect();
  proxy[Symbol.dispose]();
  await server[Symbol.asyncDispose]();
});

/** A process whose server has been there for long: the start of the test is no loss. */
async function joined(name: string) {
  let [laterMs, losses, seq] = [0, 0, 0];
  const clock = { ...systemClock, monotonic: () => performance.now() + laterMs };
  const released: [number, Released][] = [];
  const store = openedRedis({
    url: proxy.url,
    clock,
    onLoss: () => void losses++,
    onReleased: (accountId, each) => void released.push([accountId, each]),
  });
  await answers(store);
  [laterMs, losses] = [60_000, 0];
  const send = (part: Partial<CreditReport>) => creditsFrom(store, senderOf(name, ++seq), part);
  return {
    store,
    send,
    losses: () => losses,
    released,
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
  // A rate that would take 40 seconds to fill up starts again near empty.
  const [forgotten] = await a.store.sync(senderOf('a', 100), [rateMessage({ rps: 10, burst: 400 }, 2)]);
  expect(forgotten?.rate?.remaining).toBe(1);
  await Bun.sleep(LEARNING_MS + 50);
  const late = await b.heard({ charged: 60, wanted: 1_000, needed: 550 });
  expect(late).toMatchObject({ learning: false, allowance: 550, available: 0 });
});

test('a balance that went back in time is found out by a node whose answered message it lacks', async () => {
  await a.heard({ wanted: 100 });
  const older = await admin.get(leaseKey(1));
  await a.heard({ held: 100, wanted: 300 });
  await admin.set(leaseKey(1), older ?? '');
  expect(await a.heard({ held: 300, wanted: 300 })).toMatchObject({ allowance: 100, learning: true });
  expect(await b.heard({ wanted: 700, needed: 700 })).toMatchObject(LEARNING);
  expect([a.losses(), b.losses()]).toEqual([1, 0]);
});

test('a balance that was deleted is found out by a node that charged some, which need not have been answered', async () => {
  await a.heard({ wanted: 400 });
  await server.cli('FLUSHALL');
  expect(await b.heard({ charged: 5, wanted: 400 })).toMatchObject(LEARNING);
  expect(await a.heard({ held: 400, wanted: 600 })).toMatchObject(LEARNING);
  expect([a.losses(), b.losses()]).toEqual([1, 1]);
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

const NODE = '11111111-1111-4111-8111-111111111111';

test('L13 every account has one key with its tag, which ends when it equals none, and never with credits', async () => {
  const plans = [5, 0.5].map((rps) => ({ rps, burst: 100 }));
  const messages = plans.map((plan, at) => rateMessage({ ...plan, wanted: plan.burst, spent: at * 7 }, at));
  await admin.flushall();
  for (let seq = 1; seq <= 3; seq++) await a.store.sync(senderOf(NODE, seq), messages);
  await a.store.sync(senderOf(NODE, 4), [scanMessage({ wanted: 2 }, 7), creditMessage({ wanted: 10 }, 8)]);
  expect((await admin.keys('*')).toSorted()).toEqual([0, 1, 7, 8].map((id) => `{sluice:${id}}:lease`));
  for (const [at, { rps, burst }] of plans.entries()) {
    const ttlMs = await admin.pttl(leaseKey(at));
    // Twice the time that fills the bucket, from as far below zero as what was spent without a grant, and a minute.
    const longestMs = Math.ceil(((2 * burst + at * 7) / rps) * 1_000) + 2 * RATE_LIFE_MS + 60_000;
    expect(ttlMs).toBeLessThanOrEqual(longestMs);
    expect(ttlMs).toBeGreaterThan((burst / rps) * 1_000);
  }
  const scansMs = await admin.pttl(leaseKey(7));
  expect(scansMs > 0 && scansMs <= SCAN_LIFE_MS + SCAN_FORGET_MS).toBe(true);
  expect(await admin.pttl(leaseKey(8))).toBe(-1);
});

test('a hundred messages that come together cost two commands, and a script that the server forgot is sent again by itself', async () => {
  await admin.config('RESETSTAT');
  const messages = Array.from({ length: 100 }, (_, accountId) => rateMessage({ wanted: 1 }, accountId));
  for (let seq = 1; seq <= 10; seq++) await a.store.sync(senderOf(NODE, seq), messages);
  const stats = await admin.info('commandstats');
  const calls = (name: string) => Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
  expect([calls('evalsha'), calls('eval'), calls('set')]).toEqual([20, 0, 1_000]);
  await admin.script('FLUSH');
  const again = await a.store.sync(senderOf(NODE, 11), messages);
  expect(again.filter((reply) => reply !== undefined).length).toBe(messages.length);
});

test('an account that one node touched takes at most 300 bytes for its rate, and no more for its credits', async () => {
  const sender = senderOf(NODE, 1_000_000, 1_763_755_000_000);
  const rate = rateMessage({ wanted: 20, spent: 900 }, 100_001);
  await a.store.sync(sender, [rate, creditMessage({ total: 250_000, wanted: 500 }, 100_002)]);
  for (const id of [100_001, 100_002]) {
    expect(await admin.memory('USAGE', leaseKey(id))).toBeWithin(100, 300);
  }
});

test('a value of a later version is left alone', async () => {
  await admin.set(leaseKey(1), '[3,"other"]');
  const replies = await a.store.sync(senderOf(NODE, 1), [rateMessage(), rateMessage({}, 2)]);
  expect(replies).toMatchObject([undefined, { rate: { granted: 0 } }]);
  expect(await admin.get(leaseKey(1))).toBe('[3,"other"]');
});

test('L8 what a node held that never came back is released once, and reported', async () => {
  await a.store.sync(senderOf('dead', 1), [creditMessage({ wanted: 100, needed: 100 })]);
  const [format, rate, credits, scans] = JSON.parse((await admin.get(leaseKey(1))) ?? '');
  // The account's clock, which goes on in small steps; here it goes on a day at once.
  credits[1] += CREDIT_RELEASE_MS;
  await admin.set(leaseKey(1), JSON.stringify([format, rate, credits, scans]));
  const [reply] = await a.store.sync(senderOf(NODE, 1), [creditMessage()]);
  expect(reply?.credits).toMatchObject({ available: 1_000, heldByOthers: 0 });
  await a.store.sync(senderOf(NODE, 2), [creditMessage()]);
  expect(a.released).toEqual([[1, { node: 'dead', credits: 100 }]]);
  // Its journal counts when it comes back.
  const [late] = await a.store.sync(senderOf('dead', 2, 2), [creditMessage({ charged: 250 })]);
  expect(late?.credits).toMatchObject({ allowance: 0, available: 750 });
});

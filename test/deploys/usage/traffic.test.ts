import { expect, test } from 'bun:test';
import { createReadTraffic } from '../../../deploys/usage/traffic.ts';
import { createVirtualClock, START_MS } from '../../fakes/chain-clock.ts';
import { cellOf, createTakeCells, HOUR_MS, startLedger } from './ledger.ts';

const NOW = START_MS / HOUR_MS;
const PLANS = new Map([
  [1, 'pro'],
  [2, 'pro'],
  [3, 'trial'],
]);

function started() {
  const books = startLedger();
  const clock = createVirtualClock();
  const deps = { clock, planOf: (id: number) => PLANS.get(id), signal: new AbortController().signal };
  return {
    ...books,
    deps,
    clock,
    take: createTakeCells(books.ledger),
    readTraffic: createReadTraffic({ ...deps, ledger: books.connect() }),
  };
}

test('traffic is that of the last hours, by method and plan, and of the accounts with the most of it', async () => {
  using books = started();
  books.take([
    cellOf({ hour: NOW, accountId: 1, calls: 10, credits: 10, refunded: 4, errors: 1 }),
    cellOf({ hour: NOW, accountId: 2, calls: 1, credits: 50, method: 'getBlock', node: 'n2' }),
    cellOf({ hour: NOW, accountId: 3, calls: 0, credits: 0, refused: 9 }),
    cellOf({ hour: NOW, accountId: 9, calls: 2, credits: 2 }),
    cellOf({ hour: NOW - 1, accountId: 3, calls: 1_000, credits: 1_000 }),
    cellOf({ hour: NOW - 24, accountId: 3, calls: 1_000_000 }),
  ]);
  const hour = await books.readTraffic(1);
  expect(hour).toMatchObject({
    atMs: START_MS,
    total: { calls: 13, credits: 58, refused: 9, errors: 1 },
    byMethod: [
      { method: 'getSlot', done: { calls: 12, credits: 8 } },
      { method: 'getBlock', done: { calls: 1, credits: 50 } },
    ],
    byPlan: [
      { plan: 'pro', done: { calls: 11 } },
      { plan: undefined, done: { calls: 2 } },
      { plan: 'trial', done: { refused: 9 } },
    ],
  });
  const ids = (figure: 'calls' | 'credits' | 'refused') => hour.top[figure].map(({ accountId }) => accountId);
  expect([ids('calls'), ids('credits'), ids('refused')]).toEqual([[1, 9, 2], [2, 1, 9], [3]]);
  expect((await books.readTraffic(24)).total.calls).toBe(1_013);
});

test('of many cells it is added up in portions, all of them once', async () => {
  using books = started();
  books.take(
    Array.from({ length: 9_001 }, (_, i) => cellOf({ hour: NOW - (i % 3), accountId: i, keyId: `k${i}` })),
  );
  const reading = books.readTraffic(24);
  await books.clock.advance(10);
  const { total, top } = await reading;
  expect([total.calls, top.calls.length]).toEqual([9_001, 20]);
});

test('an answer stands for ten seconds, that of a day for a minute, and a failure for no time', async () => {
  using books = started();
  const calls = async (hours: 1 | 24) => (await books.readTraffic(hours)).total.calls;
  expect([await calls(1), await calls(24)]).toEqual([0, 0]);
  books.take([cellOf({ hour: NOW })]);
  await books.clock.advance(9_999);
  expect(await calls(1)).toBe(0);
  await books.clock.advance(1);
  expect([await calls(1), await calls(24)]).toEqual([1, 0]);
  await books.clock.advance(50_000);
  expect(await calls(24)).toBe(1);
  await books.clock.advance(10_000);
  books.ledger.run('ALTER TABLE usage_hours RENAME TO away');
  await expect(books.readTraffic(1)).rejects.toThrow('usage_hours');
  books.ledger.run('ALTER TABLE away RENAME TO usage_hours');
  expect(await calls(1)).toBe(1);
});

import { describe, expect, test } from 'bun:test';
import { CALLER, callerOf, HOUR_MS, LIMITED, rowOf, startUsage, UNLIMITED } from './started.ts';

const admitted = (usage: ReturnType<typeof startUsage>, ...methods: string[]) => {
  const { counted } = usage.charge(UNLIMITED, ...methods);
  counted.admit();
  return counted;
};

describe('a request', () => {
  test('is counted in the hour in which it came, also what is known of it later', () => {
    using usage = startUsage();
    const counted = admitted(usage, 'getBlock');
    usage.usage.flush();
    usage.advance(HOUR_MS);
    counted.bytes(0, 5);
    admitted(usage, 'getBlock');
    usage.usage.flush();
    expect(usage.rows(500_000)).toEqual([rowOf('getBlock', { calls: 1, credits: 1, bytes_out: 5 })]);
    expect(usage.rows(500_001)).toEqual([rowOf('getBlock', { calls: 1, credits: 1 })]);
  });

  test('is counted by how late its answer was, over restarts', () => {
    let usage = startUsage();
    for (const ms of [0, 10, 11, 50, 51, 250, 251, 1_000, 1_001]) {
      const counted = admitted(usage, 'getBlock');
      usage.advance(ms);
      counted.answered(0, 0);
      usage.usage.flush();
      usage = usage.again();
    }
    const counts = 'SELECT within_10ms, within_50ms, within_250ms, within_1s, slower FROM usage_hours';
    expect(usage.ledger.query(counts).values()).toEqual([[2, 2, 2, 2, 1]]);
    usage[Symbol.dispose]();
  });
});

describe('on a plan with a credit limit', () => {
  test('calls and credits are written with the journal, in its transaction and not before (§5)', async () => {
    using usage = startUsage();
    const { charge } = usage.charge(LIMITED, 'getSlot', 'getBlock');
    usage.usage.flush();
    expect(usage.rows()).toEqual([]);
    usage.endTurn();
    expect((await charge).kind).toBe('charged');
    expect(usage.rows()).toEqual([
      rowOf('getBlock', { calls: 1, credits: 1, charged: 1 }),
      rowOf('getSlot', { calls: 1, credits: 1, charged: 1 }),
    ]);
    expect(usage.spent()).toBe(2);
  });

  test('neither is written when one of them cannot be, and the refused request counts as refused', async () => {
    for (const table of ['spent', 'usage_hours'] as const) {
      using usage = startUsage();
      const mend = usage.break(table);
      const { charge } = usage.charge(LIMITED, 'getSlot');
      usage.endTurn();
      expect(await charge).toEqual({ kind: 'credits-unavailable' });
      usage.usage.refused(CALLER, [{ label: 'getSlot' }]);
      expect([usage.rows(), usage.spent()]).toEqual([[], null] as never); // SQL's sum of nothing is null
      mend();
      usage.journal.flush();
      usage.usage.flush();
      expect(usage.spent()).toBe(0);
      expect(usage.rows()).toEqual([
        rowOf('getSlot', { credits: 1, refunded: 1, charged: 1, returned: 1, refused: 1 }),
      ]);
    }
  });

  test('a refund is written with the refund of the journal', async () => {
    using usage = startUsage();
    const { counted, charge } = usage.charge(LIMITED, 'getSlot');
    usage.endTurn();
    await charge;
    usage.charging.refund(CALLER, LIMITED, { calls: 0, credits: 1 });
    counted.refund(0);
    usage.usage.flush();
    expect(usage.rows()).toEqual([rowOf('getSlot', { calls: 1, credits: 1, charged: 1 })]);
    usage.endTurn();
    expect([usage.rows()[0]?.returned, usage.spent()]).toEqual([1, 0]);
  });
});

describe('written cells', () => {
  test('that could not be written are made up for, and the third failure in a row is a trouble', () => {
    using usage = startUsage();
    const mend = usage.break('usage_hours');
    admitted(usage, 'getSlot');
    const flushed = () => (usage.usage.flush(), usage.usage.failure());
    expect([flushed(), flushed(), flushed()]).toEqual([undefined, undefined, 'disk full']);
    mend();
    expect([flushed(), usage.rows()[0]?.calls]).toEqual([undefined, 1]);
  });

  test('are written every second, in portions', async () => {
    using usage = startUsage();
    const over = new AbortController();
    const tending = usage.usage.maintain(over.signal);
    for (let account = 1; account <= 1_200; account++)
      usage.usage.begin(callerOf(account), [{ label: 'getSlot', credits: 1 }]).admit();
    const seen: number[] = [];
    usage.advance(999);
    for (const ms of [1, 5, 5, 5]) {
      seen.push(usage.rows().length);
      usage.advance(ms);
      await new Promise(setImmediate);
    }
    expect([...seen, usage.rows().length]).toEqual([0, 500, 1_000, 1_200, 1_200]);
    over.abort();
    await tending;
  });
});

test('when the ledger takes no writes for very long, memory is bounded and what is lost is said once a turn', async () => {
  using usage = startUsage();
  const mend = usage.break('usage_hours');
  const over = new AbortController();
  const tending = usage.usage.maintain(over.signal);
  const turn = async () => {
    usage.advance(1_000);
    await new Promise(setImmediate);
  };
  for (let id = 0; id < 200_003; id++) usage.usage.refused(callerOf(id));
  await turn();
  await turn();
  expect(usage.lost).toEqual([3]);
  mend();
  usage.usage.flush();
  expect(usage.ledger.query('SELECT count(*) AS rows, sum(refused) AS sum FROM usage_hours').get()).toEqual({
    rows: 200_000,
    sum: 200_000,
  });
  over.abort();
  await tending;
});

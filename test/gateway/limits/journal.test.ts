import { describe, expect, test } from 'bun:test';
import { spentBy } from '../../../gateway/limits/journal.ts';
import { openLedger, startUsage } from '../usage/started.ts';

/** The journal of node b, and a second connection that sees only what was committed. */
function started() {
  const usage = startUsage({ node: 'b' });
  const other = openLedger(usage.folder);
  return {
    ...usage,
    other,
    rows: () =>
      other.query('SELECT account_id, node, charged, refunded FROM spent ORDER BY account_id, node').values(),
    spend(account: number, credits: number) {
      const spending = usage.journal.spendingOf(account);
      if (spending !== undefined) spending.charged += credits;
      return usage.journal.append(account);
    },
    [Symbol.dispose]() {
      other.close();
      usage[Symbol.dispose]();
    },
  };
}

describe('a turn', () => {
  test('writes everything appended in it at its end and nothing before, and the next append begins another', async () => {
    using node = started();
    let resolved = 0;
    for (const turn of [1, 2]) {
      const appended = [node.spend(1, 5), node.spend(2, 7)].map((each) => each.then(() => resolved++));
      await new Promise(setImmediate);
      expect([resolved, node.waiting.length, node.rows().length]).toEqual([2 * turn - 2, 1, 2 * turn - 2]);
      node.endTurn();
      await Promise.all(appended);
    }
    expect(node.rows()).toEqual([
      [1, 'b', 10, 0],
      [2, 'b', 14, 0],
    ]);
  });
});

describe('counters', () => {
  test('are read once, with what others spent by then, and belong to their node', async () => {
    using node = started();
    node.ledger.run("INSERT INTO spent VALUES (1, 'a', 100, 30), (1, 'b', 40, 10), (1, 'c', 5, 0)");
    const spending = node.journal.spendingOf(1);
    expect(spending).toEqual({ charged: 40, refunded: 10, elsewhere: 75 });
    node.ledger.run('UPDATE spent SET charged = 50');
    expect(node.journal.spendingOf(1)).toBe(spending);
    const appended = node.spend(1, 9);
    node.endTurn();
    await appended;
    expect(node.rows()).toEqual([
      [1, 'a', 50, 30],
      [1, 'b', 49, 10],
      [1, 'c', 50, 0],
    ]);
    // Of a node without a start here deploys wrote what another host reported.
    node.ledger.run("INSERT INTO nodes VALUES ('c', 1)");
    const others = new Map([
      ['a', { charged: 50, refunded: 30, isOnHost: false }],
      ['c', { charged: 50, refunded: 0, isOnHost: true }],
    ]);
    expect(node.journal.spentByOthers(1)).toEqual(others);
    expect(node.journal.spentByOthers(2)).toEqual(new Map());
    const own = { accountId: 1, node: 'b', charged: 49, refunded: 10 };
    expect([spentBy(node.ledger, 'b'), spentBy(node.ledger, null).length]).toEqual([[own], 3]);
  });
});

describe('a write that fails', () => {
  test('M15 is a trouble when it fails for a second, until the next that succeeds', async () => {
    using node = started();
    const mend = node.break('spent');
    const fail = async () => {
      const appended = node.spend(1, 1);
      node.endTurn();
      await Promise.allSettled([appended]);
    };
    await fail();
    for (let retries = 0; retries < 4; retries++) node.journal.retry();
    // However many calls come meanwhile.
    for (let calls = 0; calls < 20; calls++) await fail();
    expect([node.journal.isFailing(), node.journal.failure()]).toEqual([true, undefined]);
    node.journal.retry();
    expect(node.journal.failure()).toBe('disk full');
    mend();
    node.journal.retry();
    expect([node.journal.isFailing(), node.journal.failure()]).toEqual([false, undefined]);
    expect(node.rows()).toEqual([[1, 'b', 21, 0]]);
    node.break('spent');
    await fail();
    expect(node.journal.failure()).toBeUndefined();
  });
});

describe('a ledger that another process holds', () => {
  test('holds up requests for 25 ms at a time, and charges until it is free', async () => {
    using node = started();
    expect(node.ledger.query('PRAGMA busy_timeout').values()).toEqual([[25]]);
    node.other.run('BEGIN IMMEDIATE');
    let resolved = 0;
    const first = node.spend(1, 5).then(() => resolved++);
    node.endTurn();
    const second = node.spend(2, 7).then(() => resolved++);
    node.endTurn();
    await new Promise(setImmediate);
    expect([resolved, node.waiting.length, node.journal.isDurable(1)]).toEqual([0, 1, false]);
    node.other.run('COMMIT');
    node.endTurn();
    await Promise.all([first, second]);
    expect(node.rows()).toHaveLength(2);
  });

  test('M15 for longer has charges refused, then after one try each, and none is lost', async () => {
    using node = started();
    node.other.run('BEGIN IMMEDIATE');
    const turns = [];
    for (let account = 1; account <= 3; account++) {
      const appended = node.spend(account, 1);
      let tries = 0;
      for (; node.waiting.length > 0; tries++) node.endTurn();
      expect(appended).rejects.toThrow('locked');
      await Promise.allSettled([appended]);
      turns.push(tries);
    }
    expect(turns).toEqual([12, 1, 1]);
    node.other.run('COMMIT');
    node.journal.retry();
    expect(node.rows()).toHaveLength(3);
  });

  test('at the end is tried once, and nothing is written after it', async () => {
    using node = started();
    node.other.run('BEGIN IMMEDIATE');
    const ended = Promise.allSettled([node.spend(1, 5)]);
    node.journal.close();
    node.other.run('COMMIT');
    node.endTurn();
    expect(await ended).toMatchObject([{ status: 'rejected' }]);
    expect([node.waiting, node.rows()]).toEqual([[], []]);
  });
});

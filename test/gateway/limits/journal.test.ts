import { describe, expect, test } from 'bun:test';
import { Database } from 'bun:sqlite';
import { join } from 'node:path';
import { createJournal, spentBy } from '../../../gateway/limits/journal.ts';
import { LEDGER_MIGRATIONS } from '../../../gateway/ledger.ts';
import { opened, temporaryFolder } from '../../started/gateway.ts';

/** The journal of node b, whose turn ends when the test says so, and a second connection that sees only what was committed. */
function started() {
  const folder = temporaryFolder();
  const path = join(folder.path, 'ledger.db');
  const store = opened(path, LEDGER_MIGRATIONS);
  const waiting: (() => void)[] = [];
  const journal = createJournal(store, 'b', (run) => void waiting.push(run));
  const other = new Database(path);
  return {
    store,
    journal,
    waiting,
    other,
    endTurn: () => waiting.splice(0).forEach((run) => run()),
    rows: () =>
      other.query('SELECT account_id, node, charged, refunded FROM spent ORDER BY account_id, node').values(),
    spend(account: number, credits: number) {
      const spending = journal.spendingOf(account);
      if (spending !== undefined) spending.charged += credits;
      return journal.append(account);
    },
    /** Makes writes fail until the returned function is called. */
    break(when = '1') {
      const fail = `WHEN ${when} BEGIN SELECT RAISE(ABORT, 'disk full'); END`;
      store.run(`CREATE TRIGGER broken BEFORE INSERT ON spent ${fail}`);
      return () => void store.run('DROP TRIGGER broken');
    },
    [Symbol.dispose]() {
      other.close();
      store.close();
      folder[Symbol.dispose]();
    },
  };
}

describe('a turn', () => {
  test('writes everything appended in it at its end and nothing before, and the next append begins another', async () => {
    using ledger = started();
    let resolved = 0;
    for (const turn of [1, 2]) {
      const appended = [ledger.spend(1, 5), ledger.spend(2, 7)].map((each) => each.then(() => resolved++));
      await new Promise(setImmediate);
      expect([resolved, ledger.waiting.length, ledger.rows().length]).toEqual([
        2 * turn - 2,
        1,
        2 * turn - 2,
      ]);
      ledger.endTurn();
      await Promise.all(appended);
    }
    expect(ledger.rows()).toEqual([
      [1, 'b', 10, 0],
      [2, 'b', 14, 0],
    ]);
  });

  test('is one transaction', async () => {
    using ledger = started();
    const appended = Array.from({ length: 500 }, (_, account) => ledger.spend(account, 1));
    ledger.break('new.account_id = 499');
    ledger.endTurn();
    const ended = await Promise.allSettled(appended);
    expect(new Set(ended.map(({ status }) => status))).toEqual(new Set(['rejected']));
    expect(ledger.rows()).toEqual([]);
  });

  test('with nothing appended writes nothing and does not fail', () => {
    using ledger = started();
    ledger.break();
    ledger.journal.flush();
    expect([ledger.rows(), ledger.journal.isFailing()]).toEqual([[], false]);
  });
});

describe('counters', () => {
  test('are read once, with what others spent by then, and belong to their node', async () => {
    using ledger = started();
    ledger.store.run("INSERT INTO spent VALUES (1, 'a', 100, 30), (1, 'b', 40, 10), (1, 'c', 5, 0)");
    const spending = ledger.journal.spendingOf(1);
    expect(spending).toEqual({ charged: 40, refunded: 10, elsewhere: 75 });
    ledger.store.run('UPDATE spent SET charged = 50');
    expect(ledger.journal.spendingOf(1)).toBe(spending);
    const appended = ledger.spend(1, 9);
    ledger.endTurn();
    await appended;
    expect(ledger.rows()).toEqual([
      [1, 'a', 50, 30],
      [1, 'b', 49, 10],
      [1, 'c', 50, 0],
    ]);
    const others = { a: { charged: 50, refunded: 30 }, c: { charged: 50, refunded: 0 } };
    expect(ledger.journal.spentByOthers(1)).toEqual(new Map(Object.entries(others)));
    expect(ledger.journal.spentByOthers(2)).toEqual(new Map());
    const own = { accountId: 1, node: 'b', charged: 49, refunded: 10 };
    expect([spentBy(ledger.store, 'b'), spentBy(ledger.store, null).length]).toEqual([[own], 3]);
  });

  test('that cannot be read are none, and do not begin at zero', () => {
    using ledger = started();
    ledger.store.run("INSERT INTO spent VALUES (1, 'b', 40, 10)");
    ledger.store.run('ALTER TABLE spent RENAME TO away');
    expect(ledger.journal.spendingOf(1)).toBeUndefined();
    ledger.store.run('ALTER TABLE away RENAME TO spent');
    expect(ledger.journal.spendingOf(1)).toMatchObject({ charged: 40, refunded: 10 });
  });
});

describe('a write that fails', () => {
  test('rejects every append of its turn, and is made up for by the next turn that succeeds', async () => {
    using ledger = started();
    const mend = ledger.break();
    const appended = [ledger.spend(1, 5), ledger.spend(2, 7)];
    ledger.endTurn();
    for (const each of appended) expect(each).rejects.toThrow('disk full');
    await Promise.allSettled(appended);
    mend();
    const later = ledger.spend(3, 1);
    ledger.endTurn();
    await later;
    expect(ledger.rows()).toEqual([
      [1, 'b', 5, 0],
      [2, 'b', 7, 0],
      [3, 'b', 1, 0],
    ]);
  });

  test('does not end the process when nothing waits for the append', async () => {
    using ledger = started();
    const unhandled: unknown[] = [];
    const note = (error: unknown) => void unhandled.push(error);
    process.on('unhandledRejection', note);
    ledger.break();
    void ledger.spend(1, 5);
    ledger.endTurn();
    for (let turn = 0; turn < 2; turn++) await new Promise(setImmediate);
    process.off('unhandledRejection', note);
    expect(unhandled).toEqual([]);
  });

  test('M15 is told when it fails for a second, and no more from the next that succeeds', async () => {
    using ledger = started();
    const mend = ledger.break();
    const fail = async () => {
      const appended = ledger.spend(1, 1);
      ledger.endTurn();
      await Promise.allSettled([appended]);
    };
    await fail();
    for (let retries = 0; retries < 4; retries++) ledger.journal.retry();
    // However many calls come meanwhile.
    for (let calls = 0; calls < 20; calls++) await fail();
    expect([ledger.journal.isFailing(), ledger.journal.failure()]).toEqual([true, undefined]);
    ledger.journal.retry();
    expect(ledger.journal.failure()).toBe('disk full');
    mend();
    ledger.journal.retry();
    expect([ledger.journal.isFailing(), ledger.journal.failure()]).toEqual([false, undefined]);
    expect(ledger.rows()).toEqual([[1, 'b', 21, 0]]);
    ledger.break();
    await fail();
    expect(ledger.journal.failure()).toBeUndefined();
  });
});

describe('a ledger that another process holds', () => {
  test('holds up requests for 25 ms at a time, and charges until it is free', async () => {
    using ledger = started();
    expect(ledger.store.query('PRAGMA busy_timeout').values()).toEqual([[25]]);
    ledger.other.run('BEGIN IMMEDIATE');
    let resolved = 0;
    const first = ledger.spend(1, 5).then(() => resolved++);
    ledger.endTurn();
    const second = ledger.spend(2, 7).then(() => resolved++);
    ledger.endTurn();
    await new Promise(setImmediate);
    expect([resolved, ledger.waiting.length, ledger.journal.isDurable(1)]).toEqual([0, 1, false]);
    ledger.other.run('COMMIT');
    ledger.endTurn();
    await Promise.all([first, second]);
    expect(ledger.rows()).toHaveLength(2);
  });

  test('M15 for longer has charges refused, then after one try each, and none is lost', async () => {
    using ledger = started();
    ledger.other.run('BEGIN IMMEDIATE');
    const turns = [];
    for (let account = 1; account <= 3; account++) {
      const appended = ledger.spend(account, 1);
      let tries = 0;
      for (; ledger.waiting.length > 0; tries++) ledger.endTurn();
      expect(appended).rejects.toThrow('locked');
      await Promise.allSettled([appended]);
      turns.push(tries);
    }
    expect(turns).toEqual([12, 1, 1]);
    ledger.other.run('COMMIT');
    ledger.journal.retry();
    expect(ledger.rows()).toHaveLength(3);
  });

  test('at the end is tried once, and nothing is written after it', async () => {
    using ledger = started();
    ledger.other.run('BEGIN IMMEDIATE');
    const ended = Promise.allSettled([ledger.spend(1, 5)]);
    ledger.journal.close();
    ledger.other.run('COMMIT');
    ledger.endTurn();
    expect(await ended).toMatchObject([{ status: 'rejected' }]);
    expect([ledger.waiting, ledger.rows()]).toEqual([[], []]);
  });
});

import { describe, expect, test } from 'bun:test';
import { Database } from 'bun:sqlite';
import { join } from 'node:path';
import { createJournal } from '../../../gateway/limits/journal.ts';
import { LEDGER_MIGRATIONS } from '../../../gateway/ledger.ts';
import { opened, temporaryFolder } from '../../started/gateway.ts';

/** A journal whose turn ends when the test says so, and a second connection that sees only what was committed. */
function started({ node = 'gateway' } = {}) {
  const folder = temporaryFolder();
  const path = join(folder.path, 'ledger.db');
  const store = opened(path, LEDGER_MIGRATIONS);
  const waiting: (() => void)[] = [];
  const journal = createJournal(store, node, (run) => void waiting.push(run));
  const eye = new Database(path);
  return {
    path,
    store,
    journal,
    waiting,
    endTurn: () => waiting.splice(0).forEach((run) => run()),
    rows: () =>
      eye.query('SELECT account_id, node, charged, refunded FROM spent ORDER BY account_id, node').values(),
    spend(account: number, credits: number) {
      const spending = journal.spendingOf(account);
      if (spending !== undefined) spending.charged += credits;
      return journal.append(account);
    },
    /** Makes writes fail until the returned function is called. */
    break() {
      store.run("CREATE TRIGGER broken BEFORE INSERT ON spent BEGIN SELECT RAISE(FAIL, 'disk full'); END");
      return () => void store.run('DROP TRIGGER broken');
    },
    [Symbol.dispose]() {
      eye.close();
      store.close();
      folder[Symbol.dispose]();
    },
  };
}

test('what other nodes of the host have spent of an account is read as it is now', async () => {
  using ledger = started({ node: 'a' });
  const other = createJournal(ledger.store, 'b', setImmediate);
  Object.assign(other.spendingOf(1) ?? {}, { charged: 9, refunded: 2 });
  await other.append(1);
  const own = ledger.spend(1, 5);
  ledger.endTurn();
  await own;
  expect([ledger.journal.spentByOthers(1), ledger.journal.spentByOthers(2)]).toEqual([
    new Map([['b', { charged: 9, refunded: 2 }]]),
    new Map(),
  ]);
  expect(other.spentByOthers(1)).toEqual(new Map([['a', { charged: 5, refunded: 0 }]]));
});

describe('a turn', () => {
  test('writes everything appended in it at its end, and nothing before', async () => {
    using ledger = started();
    const noted = [ledger.spend(1, 5), ledger.spend(2, 7), ledger.spend(1, 1)];
    expect(ledger.rows()).toEqual([]);
    ledger.endTurn();
    await Promise.all(noted);
    expect(ledger.rows()).toEqual([
      [1, 'gateway', 6, 0],
      [2, 'gateway', 7, 0],
    ]);
  });

  test('is ended once however much is appended, and is one transaction', async () => {
    using ledger = started();
    const noted = Array.from({ length: 500 }, (_, account) => ledger.spend(account, 1));
    expect(ledger.waiting.length).toBe(1);
    // One account that cannot be written takes the whole transaction with it, so it is one.
    ledger.store.run(
      "CREATE TRIGGER one BEFORE INSERT ON spent WHEN new.account_id = 499 BEGIN SELECT RAISE(ABORT, 'no'); END",
    );
    ledger.endTurn();
    const ended = await Promise.allSettled(noted);
    expect(new Set(ended.map(({ status }) => status))).toEqual(new Set(['rejected']));
    expect(ledger.rows()).toEqual([]);
  });

  test('is resolved only by its own write, and after it the next append begins another', async () => {
    using ledger = started();
    let resolved = 0;
    for (const turn of [1, 2]) {
      const noted = ledger.spend(1, 1).then(() => resolved++);
      await new Promise(setImmediate);
      expect([resolved, ledger.waiting.length]).toEqual([turn - 1, 1]);
      ledger.endTurn();
      await noted;
    }
    expect(ledger.rows()).toEqual([[1, 'gateway', 2, 0]]);
  });
});

describe('counters', () => {
  test('are read once and then owned in memory', () => {
    using ledger = started();
    ledger.store.run("INSERT INTO spent VALUES (1, 'gateway', 40, 10)");
    const spending = ledger.journal.spendingOf(1);
    expect(spending).toEqual({ charged: 40, refunded: 10 });
    ledger.store.run('UPDATE spent SET charged = 0');
    expect(ledger.journal.spendingOf(1)).toBe(spending);
  });

  test('belong to their node: those of another are neither read nor overwritten', async () => {
    using ledger = started({ node: 'b' });
    ledger.store.run("INSERT INTO spent VALUES (1, 'a', 100, 0)");
    expect(ledger.journal.spendingOf(1)).toEqual({ charged: 0, refunded: 0 });
    const noted = ledger.spend(1, 9);
    ledger.endTurn();
    await noted;
    expect(ledger.rows()).toEqual([
      [1, 'a', 100, 0],
      [1, 'b', 9, 0],
    ]);
  });

  test('that cannot be read are none, and do not begin at zero', () => {
    using ledger = started();
    ledger.store.run("INSERT INTO spent VALUES (1, 'gateway', 40, 10)");
    ledger.store.run('ALTER TABLE spent RENAME TO away');
    expect(ledger.journal.spendingOf(1)).toBeUndefined();
    ledger.store.run('ALTER TABLE away RENAME TO spent');
    expect(ledger.journal.spendingOf(1)).toEqual({ charged: 40, refunded: 10 });
  });
});

describe('a write that fails', () => {
  test('rejects every append of its turn, and is made up for by the next turn that succeeds', async () => {
    using ledger = started();
    const mend = ledger.break();
    const noted = [ledger.spend(1, 5), ledger.spend(2, 7)];
    ledger.endTurn();
    for (const note of noted) expect(note).rejects.toThrow('disk full');
    await Promise.allSettled(noted);
    expect(ledger.rows()).toEqual([]);
    mend();
    const later = ledger.spend(3, 1);
    ledger.endTurn();
    await later;
    expect(ledger.rows()).toEqual([
      [1, 'gateway', 5, 0],
      [2, 'gateway', 7, 0],
      [3, 'gateway', 1, 0],
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
    await new Promise(setImmediate);
    await new Promise(setImmediate);
    process.off('unhandledRejection', note);
    expect(unhandled).toEqual([]);
  });
});

describe('a ledger that another process holds', () => {
  test('holds up requests for 25 ms at a time, and charges until it is free', async () => {
    using ledger = started();
    expect(ledger.store.query('PRAGMA busy_timeout').values()).toEqual([[25]]);
    using other = new Database(ledger.path);
    other.run('BEGIN IMMEDIATE');
    let resolved = 0;
    const first = ledger.spend(1, 5).then(() => resolved++);
    ledger.endTurn();
    const second = ledger.spend(2, 7).then(() => resolved++);
    ledger.endTurn();
    await new Promise(setImmediate);
    expect([resolved, ledger.waiting.length, ledger.journal.isDurable(1)]).toEqual([0, 1, false]);
    other.run('COMMIT');
    ledger.endTurn();
    await Promise.all([first, second]);
    expect(ledger.rows()).toEqual([
      [1, 'gateway', 5, 0],
      [2, 'gateway', 7, 0],
    ]);
  });

  test('for longer has charges refused, and none is lost', async () => {
    using ledger = started();
    using other = new Database(ledger.path);
    for (const round of [1, 2]) {
      other.run('BEGIN IMMEDIATE');
      const noted = ledger.spend(round, 5);
      while (ledger.waiting.length > 0) ledger.endTurn();
      expect(ledger.waiting).toEqual([]);
      expect(noted).rejects.toThrow('locked');
      await Promise.allSettled([noted]);
      other.run('COMMIT');
    }
    ledger.journal.retry();
    expect(ledger.rows()).toEqual([
      [1, 'gateway', 5, 0],
      [2, 'gateway', 5, 0],
    ]);
  });
});

test('M15 while writes fail a charge is refused after one try, however long the ledger is held', async () => {
  using ledger = started();
  using other = new Database(ledger.path);
  other.run('BEGIN IMMEDIATE');
  const turns = [];
  for (let account = 1; account <= 3; account++) {
    const noted = ledger.spend(account, 1);
    let tries = 0;
    for (; ledger.waiting.length > 0; tries++) ledger.endTurn();
    await Promise.allSettled([noted]);
    turns.push(tries);
  }
  expect(turns).toEqual([12, 1, 1]);
});

test('the last write is tried once, and nothing is written after it', async () => {
  using ledger = started();
  using other = new Database(ledger.path);
  other.run('BEGIN IMMEDIATE');
  const ended = Promise.allSettled([ledger.spend(1, 5)]);
  ledger.journal.close();
  other.run('COMMIT');
  ledger.endTurn();
  expect(await ended).toMatchObject([{ status: 'rejected' }]);
  expect([ledger.waiting, ledger.rows()]).toEqual([[], []]);
});

test('M15 a write that fails is told when it fails for a second, and no more from the next that succeeds', async () => {
  using ledger = started();
  const mend = ledger.break();
  const fail = async () => {
    const noted = ledger.spend(1, 1);
    ledger.endTurn();
    await Promise.allSettled([noted]);
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
  expect(ledger.rows()).toEqual([[1, 'gateway', 21, 0]]);
  ledger.break();
  await fail();
  expect(ledger.journal.failure()).toBeUndefined();
});

test('a flush with nothing appended writes nothing and does not fail', () => {
  using ledger = started();
  ledger.break();
  ledger.journal.flush();
  expect(ledger.rows()).toEqual([]);
});

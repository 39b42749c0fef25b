import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import { randomBytes } from 'node:crypto';
import {
  type AccountFilter,
  createAccountRows,
  LOOKED_AT_MAX,
  type Page,
} from '../../../deploys/accounts/account-row.ts';
import { createAccounts } from '../../../deploys/accounts/accounts.ts';
import { createKeys } from '../../../deploys/accounts/keys.ts';
import { PLANS_BY_DEFAULT } from '../../../shared/config/plans.ts';
import { ACCOUNTS_MIGRATIONS } from '../../../shared/keys/schema.ts';
import type { Store } from '../../../shared/store/open.ts';
import { createVirtualClock } from '../../fakes/chain-clock.ts';
import { opened } from '../../started/gateway.ts';
import { explained } from '../explained.ts';

/** Accounts named `n1` to `n50`; the odd ones have a key of the same number, made two at a time, and `n1` has ten more. */
const store = opened(':memory:', ACCOUNTS_MIGRATIONS);
const deps = { store, clock: createVirtualClock(), note: () => undefined };
const accounts = createAccounts({ ...deps, plans: new Map(), spentOf: () => 0 });
const keys = createKeys({ ...deps, random: randomBytes });
beforeAll(() => {
  const account = store.prepare('INSERT INTO accounts (id, name, created_at_ms) VALUES (?, ?, 0)');
  const key = store.prepare(
    'INSERT INTO keys (id, account_id, name, hash, prefix, last4, created_at_ms) VALUES (?, ?, ?, ?, ?, ?, ?)',
  );
  for (let i = 1; i <= 50; i++) {
    account.run(i, `n${i}`);
    const id = `0a${String(i).padStart(2, '0')}`;
    key.run(id, i % 2 === 1 ? i : 1, `k_${i}`, randomBytes(8), 'sluice_xxxx', `Zz${i}`, Math.floor(i / 2));
  }
});
afterAll(() => store.close());

/** Every page of a list, from the first to the last. */
function pages<Item, Place>(read: (before?: Place) => Page<Item, Place>): readonly (readonly Item[])[] {
  const found: (readonly Item[])[] = [];
  for (let page = read(); ; page = read(page.next)) {
    found.push(page.items);
    if (page.next === undefined || found.length > 100) return found;
  }
}
const countDown = (from: number, to: number) => Array.from({ length: from - to + 1 }, (_, i) => from - i);

describe('accounts', () => {
  const read = (search: string, limit: number) =>
    pages<{ name: string }, number>((before) =>
      accounts.page({ search, limit, ...(before === undefined ? {} : { before }) }),
    ).map((page) => page.map(({ name }) => name));

  test('come newest first, each once, whatever the size of a page', () => {
    const all = countDown(50, 1).map((i) => `n${i}`);
    for (const limit of [1, 7, 25, 50, 51]) expect(read('', limit).flat()).toEqual(all);
    expect(read('', 25)).toHaveLength(2);
  });
  test('are found by any part of their name, in either case', () => {
    expect(read('N4', 6).flat()).toEqual([...countDown(49, 40), 4].map((i) => `n${i}`));
  });
  test('what stands for anything elsewhere is searched as it is written', () => {
    for (const search of ['%', '_', '\\', "'"]) expect(read(search, 10)).toEqual([[]]);
  });
  test('a page has a bound, whatever is asked for', () => {
    expect(accounts.page({ limit: 0 }).items).toHaveLength(1);
    expect(accounts.page({ limit: 1e9 }).items).toHaveLength(50);
  });
});

describe('accounts of a kind', () => {
  let empty: Store;
  let asked: number[];
  const spent = new Map<number, number>();
  const plans = new Map(Object.entries(PLANS_BY_DEFAULT));
  function spentOf(accountId: number): number {
    asked.push(accountId);
    return spent.get(accountId) ?? 0;
  }
  function add(name: string, plan: string | null, isSuspended = false): number {
    const put = 'INSERT INTO accounts (name, plan, suspended, created_at_ms) VALUES (?, ?, ?, 0)';
    return Number(empty.run(put, [name, plan, isSuspended ? 1 : 0]).lastInsertRowid);
  }
  /** Names of all pages, one page a list. */
  function pagesOf(wish: Omit<AccountFilter, 'before'>) {
    const { page } = createAccountRows(empty, plans, spentOf);
    const found = pages<{ name: string }, number>((before) =>
      page({ ...wish, ...(before === undefined ? {} : { before }) }),
    );
    return found.map((items) => items.map(({ name }) => name));
  }
  beforeEach(() => {
    empty = opened(':memory:', ACCOUNTS_MIGRATIONS);
    asked = [];
    spent.clear();
  });
  afterEach(() => empty.close());

  test('are filtered by plan, by none, and by being suspended, in pages', () => {
    for (let i = 1; i <= 9; i++) add(`a${i}`, i % 3 === 0 ? null : i % 3 === 1 ? 'pro' : 'trial', i > 5);
    expect(pagesOf({ limit: 2, plan: { name: 'pro' } })).toEqual([['a7', 'a4'], ['a1']]);
    expect(pagesOf({ limit: 2, plan: { name: undefined } })).toEqual([['a9', 'a6'], ['a3']]);
    expect(pagesOf({ limit: 3, isSuspended: true })).toEqual([['a9', 'a8', 'a7'], ['a6']]);
    expect(pagesOf({ limit: 9, isSuspended: true, plan: { name: 'pro' } })).toEqual([['a7']]);
    expect(pagesOf({ limit: 9, search: 'A4', plan: { name: 'pro' } })).toEqual([['a4']]);
    expect(pagesOf({ limit: 9, plan: { name: 'gold' } })).toEqual([[]]);
  });

  test('are found by having nothing left, and others are not', () => {
    const [poor, rich, none] = [add('poor', 'trial'), add('rich', 'trial'), add('none', 'pro')];
    for (const id of [poor, none]) spent.set(id, 250_000);
    spent.set(rich, 249_999);
    expect(pagesOf({ limit: 5, isOutOfCredits: true })).toEqual([['poor']]);
  });

  test('out of credits come once each, whatever the size of a page', () => {
    for (let i = 1; i <= 450; i++) if (i % 2 === 0) spent.set(add(`a${i}`, 'trial'), 250_000);
    const all = Array.from({ length: 225 }, (_, i) => `a${450 - 2 * i}`);
    for (const limit of [1, 7, 200]) {
      const pages = pagesOf({ limit: Math.max(limit, 10), isOutOfCredits: true });
      expect(pages.flat()).toEqual(all);
    }
  });

  test('out of credits are looked for among so many at a time, and the page says where to go on', () => {
    const add100 = empty.prepare('INSERT INTO accounts (name, plan, created_at_ms) VALUES (?, ?, 0)');
    empty.transaction(() => {
      for (let i = 1; i <= 3 * LOOKED_AT_MAX; i++) add100.run(`a${i}`, 'trial');
    })();
    spent.set(1, 250_000);
    const pages = pagesOf({ limit: 50, isOutOfCredits: true });
    expect(pages).toEqual([[], [], ['a1']]);
    expect(asked).toHaveLength(3 * LOOKED_AT_MAX);
  });

  test('every page is read by an index, backwards and without sorting', () => {
    const lists = explained(empty, (listening) => {
      const { page } = createAccountRows(listening, plans, spentOf);
      for (const plan of [{}, { plan: { name: 'pro' } }])
        for (const suspended of [{}, { isSuspended: true } as const])
          page({ limit: 1, ...plan, ...suspended });
    }).filter(({ sql }) => sql.includes('LIMIT'));
    expect(lists.map(({ steps }) => steps)).toEqual([
      ['SEARCH accounts USING INTEGER PRIMARY KEY (rowid<?)'],
      ['SEARCH accounts USING INDEX accounts_suspended (id<?)'],
      ['SEARCH accounts USING INDEX accounts_on_plan (plan=? AND id<?)'],
      [expect.stringMatching(/USING INDEX accounts_(on_plan|suspended) /)] as never, // a matcher for a text
    ]);
  });
});

describe('keys', () => {
  const read = (wish: { search?: string; accountId?: number }, limit: number) =>
    pages<{ name: string }, { createdAtMs: number; id: string }>((before) =>
      keys.page({ ...wish, limit, ...(before === undefined ? {} : { before }) }),
    ).flatMap((page) => page.map(({ name }) => name));

  test('come newest first, each once, also those of one instant', () => {
    const all = countDown(50, 1).map((i) => `k_${i}`);
    for (const limit of [1, 2, 7, 50]) expect(read({}, limit)).toEqual(all);
    expect(keys.list().map(({ name }) => name)).toEqual(all.toReversed());
    expect(keys.list('n1')).toHaveLength(26);
  });
  test('of one account are its own alone', () => {
    const own = [...countDown(50, 2).filter((i) => i % 2 === 0), 1].map((i) => `k_${i}`);
    for (const limit of [1, 10]) expect(read({ accountId: 1 }, limit)).toEqual(own);
    expect(read({ accountId: 2 }, 10)).toEqual([]);
  });
  test('are found by a part of their name or id, or by their last four', () => {
    expect(read({ search: 'K_4' }, 100)).toEqual([...countDown(49, 40), 4].map((i) => `k_${i}`));
    expect(read({ search: '0A13' }, 3)).toEqual(['k_13']);
    expect(read({ search: 'Zz13' }, 3)).toEqual(['k_13']);
    expect(read({ search: 'Zz13', accountId: 1 }, 3)).toEqual([]);
    expect(read({ search: '%' }, 3)).toEqual([]);
  });
});

test('a page of keys is read by an index, and the search itself reads nothing else', () => {
  const keyPages = explained(store, (listening) => {
    const { page } = createKeys({ ...deps, store: listening, random: randomBytes });
    for (const only of [{}, { accountId: 1 }]) page({ ...only, limit: 1 });
  }).filter(({ sql }) => sql.includes('LIMIT'));
  const ways = ['keys_by_age ((created_at_ms', 'keys_of_account_by_age (account_id=? AND (created_at_ms'];
  expect(keyPages.map(({ steps }) => steps)).toEqual(
    ways.map((way) => [
      'SEARCH keys USING PRIMARY KEY (id=?)',
      'LIST SUBQUERY 1',
      `SEARCH keys USING COVERING INDEX ${way},id)<(?,?))`,
      'SEARCH accounts USING INTEGER PRIMARY KEY (rowid=?)',
      'USE TEMP B-TREE FOR ORDER BY', // of the page's rows alone
    ]),
  );
});

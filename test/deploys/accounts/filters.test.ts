import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import {
  type AccountFilter,
  createAccountRows,
  LOOKED_AT_MAX,
} from '../../../deploys/accounts/account-row.ts';
import { PLANS_BY_DEFAULT } from '../../../shared/config/plans.ts';
import { ACCOUNTS_MIGRATIONS } from '../../../shared/keys/schema.ts';
import type { Store } from '../../../shared/store/open.ts';
import { opened } from '../../started/gateway.ts';
import { explained } from '../explained.ts';

let store: Store;
let asked: number[];
const spent = new Map<number, number>();
const plans = new Map(Object.entries(PLANS_BY_DEFAULT));
const rowsOf = () => createAccountRows(store, plans, spentOf);
function spentOf(accountId: number): number {
  asked.push(accountId);
  return spent.get(accountId) ?? 0;
}
function add(name: string, plan: string | null, isSuspended = false): number {
  const put = 'INSERT INTO accounts (name, plan, suspended, created_at_ms) VALUES (?, ?, ?, 0)';
  return Number(store.run(put, [name, plan, isSuspended ? 1 : 0]).lastInsertRowid);
}
/** Names of all pages, one page a list. */
function pagesOf(wish: Omit<AccountFilter, 'before'>): string[][] {
  const { page } = rowsOf();
  const found: string[][] = [];
  for (let before: number | undefined; ;) {
    const { items, next } = page({ ...wish, ...(before === undefined ? {} : { before }) });
    found.push(items.map(({ name }) => name));
    if (next === undefined || found.length > 50) return found;
    before = next;
  }
}

beforeEach(() => {
  store = opened(':memory:', ACCOUNTS_MIGRATIONS);
  asked = [];
  spent.clear();
});
afterEach(() => store.close());

describe('accounts', () => {
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
    const add100 = store.prepare('INSERT INTO accounts (name, plan, created_at_ms) VALUES (?, ?, 0)');
    store.transaction(() => {
      for (let i = 1; i <= 3 * LOOKED_AT_MAX; i++) add100.run(`a${i}`, 'trial');
    })();
    spent.set(1, 250_000);
    const pages = pagesOf({ limit: 50, isOutOfCredits: true });
    expect(pages).toEqual([[], [], ['a1']]);
    expect(asked).toHaveLength(3 * LOOKED_AT_MAX);
  });

  test('every page is read by an index, backwards and without sorting', () => {
    const lists = explained(store, (listening) => {
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

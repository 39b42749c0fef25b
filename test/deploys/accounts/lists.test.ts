import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { randomBytes } from 'node:crypto';
import {
  type AccountFilter,
  createAccountRows,
  LOOKED_AT_MAX,
  type Page,
} from '../../../deploys/accounts/account-row.ts';
import { createKeys } from '../../../deploys/accounts/keys.ts';
import { ACCOUNTS_MIGRATIONS } from '../../../shared/keys/schema.ts';
import type { Store } from '../../../shared/store/open.ts';
import { createVirtualClock } from '../../fakes/chain-clock.ts';
import { opened } from '../../started/gateway.ts';
import { explained } from '../explained.ts';
import { PLANS } from './books.ts';

let store: Store;
/** What accounts have spent, and of which it was asked. */
let spent: Map<number, number>;
let asked: number[];
beforeEach(() => {
  store = opened(':memory:', ACCOUNTS_MIGRATIONS);
  spent = new Map();
  asked = [];
});
afterEach(() => store.close());

function addAccount(name: string, plan: string | null = null, isSuspended = false): number {
  const put = 'INSERT INTO accounts (name, plan, suspended, created_at_ms) VALUES (?, ?, ?, 0)';
  return Number(store.run(put, [name, plan, isSuspended ? 1 : 0]).lastInsertRowid);
}
const accountsOf = (of: Store) =>
  createAccountRows(of, PLANS, (id) => {
    asked.push(id);
    return spent.get(id) ?? 0;
  });
const keysOf = (of: Store) =>
  createKeys({ store: of, clock: createVirtualClock(), random: randomBytes, note: () => undefined });

/** Names on every page of a list, from the first to the last. */
function pages<Place>(read: (before: { before?: Place }) => Page<{ name: string }, Place>): string[][] {
  const found: string[][] = [];
  for (let page = read({}); ; page = read({ before: page.next })) {
    found.push(page.items.map(({ name }) => name));
    if (page.next === undefined || found.length > 100) return found;
  }
}
const accountPages = (wish: Omit<AccountFilter, 'before'>) => {
  const { page } = accountsOf(store);
  return pages<number>((before) => page({ ...wish, ...before }));
};
const countDown = (from: number, to: number, letter: string) =>
  Array.from({ length: from - to + 1 }, (_, i) => `${letter}${from - i}`);

describe('accounts', () => {
  test('come newest first, each once, whatever the size of a page, which has a bound', () => {
    for (let i = 1; i <= 250; i++) addAccount(`n${i}`);
    const all = countDown(250, 1, 'n');
    for (const limit of [7, 125, 250, 1e9]) expect(accountPages({ limit }).flat()).toEqual(all);
    expect(accountPages({ limit: 125 })).toHaveLength(2);
    expect(accountPages({ limit: 1e9 })[0]).toHaveLength(200);
    expect(accountsOf(store).page({ limit: 0 }).items).toHaveLength(1);
  });

  test('are found by any part of their name as it is written, in either case', () => {
    for (let i = 1; i <= 50; i++) addAccount(`n${i}`);
    expect(accountPages({ search: 'N4', limit: 6 }).flat()).toEqual([...countDown(49, 40, 'n'), 'n4']);
    for (const search of ['%', '_', '\\', "'"]) expect(accountPages({ search, limit: 9 })).toEqual([[]]);
  });

  test('out of credits come once each, and no others', () => {
    const [rich, none] = [addAccount('rich', 'trial'), addAccount('none', 'pro')];
    spent.set(rich, 999).set(none, 1_000);
    for (let i = 1; i <= 450; i++) if (i % 2 === 0) spent.set(addAccount(`a${i}`, 'trial'), 1_000);
    const all = Array.from({ length: 225 }, (_, i) => `a${450 - 2 * i}`);
    for (const limit of [10, 200]) expect(accountPages({ limit, isOutOfCredits: true }).flat()).toEqual(all);
  });

  test('out of credits are looked for among so many at a time, and the page says where to go on', () => {
    store.transaction(() => {
      for (let i = 1; i <= 3 * LOOKED_AT_MAX; i++) addAccount(`a${i}`, 'trial');
    })();
    spent.set(1, 1_000);
    expect(accountPages({ limit: 50, isOutOfCredits: true })).toEqual([[], [], ['a1']]);
    expect(asked).toHaveLength(3 * LOOKED_AT_MAX);
  });

  test('are read by an index, backwards and without sorting', () => {
    const lists = explained(store, (listening) => {
      const { page } = accountsOf(listening);
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
  /** Fifty accounts; the odd ones have a key of the same number, made two at a time, and the first has those of the others. */
  beforeEach(() => {
    const key = store.prepare(
      'INSERT INTO keys (id, account_id, name, hash, prefix, last4, created_at_ms) VALUES (?, ?, ?, ?, ?, ?, ?)',
    );
    for (let i = 1; i <= 50; i++) {
      addAccount(`n${i}`);
      const id = `0a${String(i).padStart(2, '0')}`;
      key.run(id, i % 2 === 1 ? i : 1, `k_${i}`, randomBytes(8), 'sluice_xxxx', `Zz${i}`, Math.floor(i / 2));
    }
  });
  const keyPages = (wish: { search?: string; accountId?: number }, limit: number) => {
    const { page } = keysOf(store);
    return pages<{ createdAtMs: number; id: string }>((before) => page({ ...wish, limit, ...before })).flat();
  };

  test('come newest first, each once, also those of one instant; of one account its own alone', () => {
    const all = countDown(50, 1, 'k_');
    for (const limit of [1, 2, 7, 50]) expect(keyPages({}, limit)).toEqual(all);
    const { list } = keysOf(store);
    expect([list().map(({ name }) => name), list('n1').length]).toEqual([all.toReversed(), 26]);
    const own = [...countDown(50, 2, 'k_').filter((_, i) => i % 2 === 0), 'k_1'];
    for (const limit of [1, 10]) expect(keyPages({ accountId: 1 }, limit)).toEqual(own);
    expect(keyPages({ accountId: 2 }, 10)).toEqual([]);
  });

  test('are found by a part of their name or id, or by their last four', () => {
    expect(keyPages({ search: 'K_4' }, 100)).toEqual([...countDown(49, 40, 'k_'), 'k_4']);
    const found = ['0A13', 'Zz13', '%'].map((search) => keyPages({ search }, 3));
    expect(found).toEqual([['k_13'], ['k_13'], []]);
    expect(keyPages({ search: 'Zz13', accountId: 1 }, 3)).toEqual([]);
  });

  test('are read by an index, and the search itself reads nothing else', () => {
    const lists = explained(store, (listening) => {
      const { page } = keysOf(listening);
      for (const only of [{}, { accountId: 1 }]) page({ ...only, limit: 1 });
    }).filter(({ sql }) => sql.includes('LIMIT'));
    const ways = ['keys_by_age ((created_at_ms', 'keys_of_account_by_age (account_id=? AND (created_at_ms'];
    expect(lists.map(({ steps }) => steps)).toEqual(
      ways.map((way) => [
        'SEARCH keys USING PRIMARY KEY (id=?)',
        'LIST SUBQUERY 1',
        `SEARCH keys USING COVERING INDEX ${way},id)<(?,?))`,
        'SEARCH accounts USING INTEGER PRIMARY KEY (rowid=?)',
        'USE TEMP B-TREE FOR ORDER BY', // of the page's rows alone
      ]),
    );
  });
});

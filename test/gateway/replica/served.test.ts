import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { accountsSourceOf, createFollow } from '../../../gateway/replica/hosts.ts';
import type { FoundKeys, News, Published } from '../../../gateway/replica/published.ts';
import { createServed, type Served, SERVED_MIGRATIONS } from '../../../gateway/replica/served.ts';
import { keyIdOf } from '../../../shared/keys/api-key.ts';
import { ACCOUNTS_MIGRATIONS } from '../../../shared/keys/schema.ts';
import { accountText, keyText, type PublishedRow } from '../../../shared/publication.ts';
import { opened } from '../../started/gateway.ts';
import { NEWS } from './news.ts';

const ACCOUNT = "INSERT INTO accounts (name, created_at_ms) VALUES ('a', 0)";
const PUBLISHER = "INSERT INTO publishers VALUES ('t2', 0)";

/** The accounts database of a host, with some rows. */
function ownAccounts(...inserts: readonly string[]) {
  const own = opened(':memory:', ACCOUNTS_MIGRATIONS);
  for (const insert of inserts) own.run(insert);
  return own;
}

let served: Served;
beforeEach(() => {
  served = createServed(opened(':memory:', SERVED_MIGRATIONS));
  served.follow(NEWS);
});
afterEach(() => served.store.close());

const hash = (n: number) => Buffer.alloc(32, n);
const idOf = (n: number) => keyIdOf(hash(n));
const account = (plan = 'pro'): PublishedRow => [
  'a1',
  accountText({ plan, creditsGranted: null, suspended: false }),
];
const key = (n: number): PublishedRow => [
  `k${idOf(n)}`,
  keyText({ hash: hash(n).toString('hex'), accountId: 1, expiresAtMs: null }),
];
const gone = (n: number): PublishedRow => [`k${idOf(n)}`, ''];
/** Keys as they were at a version; a number below zero is a key that was not found. */
function found(version: number, ...numbers: number[]): FoundKeys {
  const keys = numbers.map((n) =>
    n > 0 ? { key: key(n), account: account() } : { key: gone(-n), account: ['a', ''] as const },
  );
  return { epoch: 'e1', version, isWhole: true, keys };
}
/** Changes behind a version. */
function changes(from: number, ...rows: PublishedRow[]): News {
  const upTo = from + rows.length;
  return { ...NEWS, from, rows, upTo, version: upTo };
}
const planOf = (n: number) => served.read(hash(n))?.identity.caller.plan;

describe('a change', () => {
  beforeEach(() => void served.take(found(0, 1, 2)));

  test('reaches the keys that were served, and makes no others known', () => {
    served.follow(changes(0, account('scale'), gone(1), key(3)));
    expect([planOf(1), planOf(2), planOf(3)]).toEqual([undefined, 'scale', undefined]);
    expect(served.state().position).toBe(3);
  });

  test('that comes again or late changes nothing', () => {
    served.follow(changes(0, gone(1)));
    const before = served.state();
    served.follow(changes(0, gone(2), gone(2)));
    expect([served.state(), planOf(2)]).toEqual([before, 'pro']);
  });

  test('outdates what was read before it', () => {
    served.follow(changes(0, gone(1)));
    expect([served.take(found(0, 1)), planOf(1)]).toEqual([false, undefined]);
    expect([served.take({ ...found(1, 1), epoch: 'e0' }), planOf(1)]).toEqual([false, undefined]);
    expect([served.take(found(1, 1)), planOf(1)]).toEqual([true, 'pro']);
  });
});

test('a key that Redis does not have is dropped when all are there, and kept while they are written', () => {
  served.take(found(0, 1));
  served.take({ ...found(0, -1), isWhole: false });
  expect(planOf(1)).toBe('pro');
  const { touched } = served.state();
  served.take(found(0, -1));
  expect([planOf(1), served.state().touched]).toEqual([undefined, touched + 1]);
});

test('a key is none whose row is of another, of an account that is not there, or not to be read', () => {
  for (const [row, of] of [
    [[`k${idOf(1)}`, key(2)[1]], account()],
    [key(1), ['a', '']],
    [key(1), ['a1', '{"later":1}']],
    [[`k${idOf(1)}`, '[1'], account()],
  ] as const) {
    expect(served.take({ ...found(0), keys: [{ key: row, account: of }] })).toBe(true);
    expect(planOf(1)).toBeUndefined();
  }
});

test('another epoch keeps what was served; another origin forgets it', () => {
  served.take(found(0, 1));
  served.follow({ ...changes(0, key(1)), config: 4, termsId: 'id', terms: '{}' });
  served.follow({ ...NEWS, epoch: 'e2' });
  expect([planOf(1), served.state()]).toMatchObject(['pro', { epoch: 'e2', position: 0, config: 4 }]);
  expect(served.state().unverified).toBeGreaterThan(0);
  served.follow({ ...NEWS, origin: 'elsewhere' });
  expect([planOf(1), served.state()]).toMatchObject([undefined, { epoch: 'e1', config: 1, terms: '' }]);
  served.noteUnpublished();
  expect(served.state().unpublished).toBe(0);
});

describe('following', () => {
  const own = ownAccounts(PUBLISHER, ACCOUNT);
  let news: News | undefined;
  let inRedis: number[];
  let finds: (readonly string[])[];
  let follow: () => Promise<number>;
  beforeEach(() => {
    [news, inRedis, finds] = [NEWS, [1, 2, 3], []];
    const published: Published = {
      news: (_, position) =>
        Promise.resolve(news && position >= news.upTo ? { ...news, rows: [], from: position } : news),
      find(ids) {
        finds.push(ids);
        const numbers = ids.map((id) => Number.parseInt(id.slice(0, 2), 16));
        return Promise.resolve(
          found(news?.version ?? 0, ...numbers.map((n) => (inRedis.includes(n) ? n : -n))),
        );
      },
      noteUses: () => Promise.resolve(),
      close: () => Promise.resolve(),
    };
    follow = createFollow(served, published, own);
  });
  /** Follows until there is nothing to hurry for. */
  async function settled(): Promise<number> {
    for (let restMs = 0; ;) if ((restMs = await follow()) > 1) return restMs;
  }

  test('compares again when the log no longer has all changes, also in the middle of a comparison', async () => {
    served.take(found(0, 1, 2));
    await follow(); // both are compared
    inRedis = [2];
    news = { ...NEWS, version: 20_000, upTo: 20_000, isGap: true };
    await settled();
    expect([planOf(1), planOf(2), served.state().position]).toEqual([undefined, 'pro', 20_000]);
  });

  test('looks four times a second, and every two seconds where the own database counts', async () => {
    expect(await settled()).toBe(250);
    news = { ...NEWS, holder: 't2' };
    expect(await follow()).toBe(2_000);
    news = undefined;
    expect(await follow()).toBe(250);
    served.store.run('UPDATE state SET holder = NULL');
    expect(await follow()).toBe(2_000);
  });
});

test.each([
  ['Redis was never reached, and nobody here ever published', null, 0, [ACCOUNT], 'unknown'],
  ['Redis was never reached, and deploys beside published', null, 0, [PUBLISHER], 'local'],
  ['nobody publishes', null, 1, [ACCOUNT], 'local'],
  ['nobody publishes, and there is no account here', null, 1, [], 'unknown'],
  ['nobody publishes, and deploys beside did without an account', null, 1, [PUBLISHER], 'local'],
  ['deploys beside publishes', 't2', 0, [PUBLISHER], 'local'],
  ['another publishes', 't9', 0, [PUBLISHER, ACCOUNT], 'remote'],
] as const)('where keys are read when %s', (_, holder, unpublished, rows, source) => {
  expect(accountsSourceOf({ holder, unpublished }, ownAccounts(...rows))).toBe(source);
});

import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { createFollow, createSharedAccounts } from '../../../gateway/cluster/hosts.ts';
import type { FoundKeys, News, Published } from '../../../gateway/cluster/published.ts';
import { createServed, type Served, SERVED_MIGRATIONS } from '../../../gateway/cluster/served.ts';
import { hashOf, keyIdOf, makeApiKey } from '../../../shared/keys/api-key.ts';
import { ACCOUNTS_MIGRATIONS } from '../../../shared/keys/schema.ts';
import { accountText, keyText, type PublishedRow } from '../../../shared/publication.ts';
import { createVirtualClock } from '../../fakes/chain-clock.ts';
import { opened, silentLog } from '../../started/gateway.ts';

/** What Redis says where everything is published and nothing has changed since. */
const NEWS: News = {
  origin: 'there',
  holder: 't1',
  generation: 1,
  epoch: 'e1',
  isWhole: true,
  version: 0,
  seq: 0,
  config: 1,
  termsId: '',
  terms: '',
  from: 0,
  rows: [],
  upTo: 0,
  isGap: false,
  noted: { generation: 0, seen: 0 },
};

const ownAccounts = () => opened(':memory:', ACCOUNTS_MIGRATIONS);

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
const rowOf = (of: Buffer): [name: string, text: string] => [
  `k${keyIdOf(of)}`,
  keyText({ hash: of.toString('hex'), accountId: 1, expiresAtMs: null }),
];
const key = (n: number) => rowOf(hash(n));
const gone = (n: number): PublishedRow => [`k${idOf(n)}`, ''];
/** Keys as they were at a version; a number below zero is a key that was not found. */
function found(version: number, ...numbers: number[]): FoundKeys {
  const keys = numbers.map((n) =>
    n > 0 ? { key: key(n), account: account() } : { key: gone(-n), account: ['a', ''] as const },
  );
  return { epoch: 'e1', version, generation: 1, seq: 0, isWhole: true, keys };
}
/** Changes behind a version. */
function changes(from: number, ...rows: PublishedRow[]): News {
  const upTo = from + rows.length;
  return { ...NEWS, from, rows, upTo, version: upTo };
}
const planOf = (n: number) => served.read(hash(n))?.identity.caller.plan;
const publishedBy = (parts: Pick<Published, 'news' | 'find'>): Published => ({
  ...parts,
  noteUses: () => Promise.resolve(),
  close: () => Promise.resolve(),
});

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

describe('what Redis has less than it had', () => {
  const late = { ...changes(0, key(3)), generation: 2, seq: 7 };
  beforeEach(() => void served.take(found(0, 1, 2)));

  test.each<[string, News]>([
    ['a revision', { ...late, seq: 6 }],
    ['a generation', { ...late, generation: 1 }],
    ['a revision, in another epoch', { ...late, epoch: 'e0', from: 0, rows: [gone(1)], seq: 6 }],
    ['a revision, of a start that is known here', { ...late, holder: 't0', seq: 6 }],
  ])('is not taken: %s', (_, older) => {
    served.follow(late);
    const before = served.state();
    expect(served.follow(older)).toBe('older');
    expect(served.take({ ...found(1, 3), ...older, keys: found(1, 3).keys })).toBe(false);
    expect([served.state(), planOf(1), planOf(3)]).toEqual([before, 'pro', undefined]);
    // It is as late as before, or later.
    expect(served.follow({ ...late, ...changes(1, gone(1)), generation: 2, seq: 7 })).toBe('taken');
    expect(planOf(1)).toBeUndefined();
  });

  test('is not taken by a host that was not there, when another one has noted what it had', () => {
    const fresh = createServed(opened(':memory:', SERVED_MIGRATIONS));
    const noted = { generation: 2, seen: 7 };
    expect([fresh.follow({ ...late, seq: 6, noted }), fresh.state().origin]).toEqual(['older', null]);
    expect(fresh.follow({ ...late, noted })).toBe('taken');
    fresh.store.close();
  });

  test('is that of the same accounts: those of another database begin anew', () => {
    served.follow(late);
    expect(served.follow({ ...NEWS, origin: 'elsewhere', seq: 1 })).toBe('taken');
    expect(served.state()).toMatchObject({ generation: 1, seen: 1 });
  });

  test('is noted while changes up to it have not all come', () => {
    served.follow({ ...late, version: 9 });
    expect(served.follow({ ...late, version: 9, seq: 6 })).toBe('older');
  });
});

test('what is served is compared again when the log no longer has all changes, also in the middle of a comparison', async () => {
  let [news, inRedis] = [NEWS, [1, 2, 3]];
  const published = publishedBy({
    news: ({ position }) =>
      Promise.resolve(position >= news.upTo ? { ...news, rows: [], from: position } : news),
    find(ids) {
      const numbers = ids.map((id) => Number.parseInt(id.slice(0, 2), 16));
      const there = numbers.map((n) => (inRedis.includes(n) ? n : -n));
      return Promise.resolve(found(news.version, ...there));
    },
  });
  const follow = createFollow(served, published, ownAccounts());
  served.take(found(0, 1, 2));
  await follow(); // both are compared
  inRedis = [2];
  news = { ...NEWS, version: 20_000, upTo: 20_000, isGap: true };
  while ((await follow()).restMs < 250);
  expect([planOf(1), planOf(2), served.state().position]).toEqual([undefined, 'pro', 20_000]);
});

describe('a key that was not served yet', () => {
  /** A process of a host whose accounts are elsewhere, with a Redis that answers when it is let. */
  async function started() {
    const redis = { finds: 0, rows: new Map<string, string>(), isWhole: true };
    const answers = Promise.withResolvers<void>();
    const published = publishedBy({
      news: () => Promise.resolve(NEWS),
      async find(ids) {
        redis.finds++;
        await answers.promise;
        const keys = ids.map((id) => ({
          key: [`k${id}`, redis.rows.get(`k${id}`) ?? ''] as const,
          account: account(),
        }));
        return { ...found(0), isWhole: redis.isWhole, keys };
      },
    });
    const file = createServed(opened(':memory:', SERVED_MIGRATIONS));
    const parts = { served: file, published, clock: createVirtualClock(), log: silentLog() };
    const shared = createSharedAccounts({ accounts: ownAccounts(), ...parts });
    await shared.settle(new AbortController().signal);
    function newKey(isPublished: boolean): string {
      const text = makeApiKey((bytes) => crypto.getRandomValues(new Uint8Array(bytes)));
      if (isPublished) redis.rows.set(...rowOf(hashOf(text)));
      return text;
    }
    const identify = (text: string) => shared.keys.identify({ kind: 'text', text });
    return { redis, newKey, identify, answer: answers.resolve, [Symbol.asyncDispose]: shared.close };
  }

  test('is looked up once for all requests that wait for it, also when it is none, and again while it may still come', async () => {
    await using host = await started();
    const { redis, newKey, identify, answer } = host;
    const [text, none, later] = [newKey(true), newKey(false), newKey(false)];
    const waiting = Array.from({ length: 100 }, () => identify(text));
    expect(redis.finds).toBe(1);
    answer();
    for (const each of waiting) expect((await each).kind).toBe('known');
    expect(identify(text)).toMatchObject({ kind: 'known', caller: { accountId: 1, plan: 'pro' } });
    expect((await identify(none)).kind).toBe('invalid-key');
    expect(identify(none)).toEqual({ kind: 'invalid-key' });
    redis.isWhole = false;
    for (let i = 0; i < 2; i++) expect((await identify(later)).kind).toBe('check-unavailable');
    expect(redis.finds).toBe(4);
  });

  test('is not called invalid on a row in Redis that cannot be read', async () => {
    await using host = await started();
    const text = host.newKey(true);
    for (const id of host.redis.rows.keys()) host.redis.rows.set(id, '[1');
    host.answer();
    expect((await host.identify(text)).kind).toBe('check-unavailable');
  });

  test('is looked up beside a thousand others, and further ones are not answered', async () => {
    await using host = await started();
    const { redis, newKey, identify, answer } = host;
    const waiting = Array.from({ length: 1_001 }, () => identify(newKey(true)));
    expect(redis.finds).toBe(1_000);
    expect((await waiting.at(-1))?.kind).toBe('check-unavailable');
    answer();
    expect((await waiting[0])?.kind).toBe('known');
  });
});

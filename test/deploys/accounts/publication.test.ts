import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import type { Redis } from 'ioredis';
import { createAudit } from '../../../deploys/accounts/audit.ts';
import { createChanges, PORTION } from '../../../deploys/accounts/changes.ts';
import {
  type Claiming,
  ENDED_MAX,
  LOG_MAX,
  type Put,
  type RedisHead,
} from '../../../deploys/accounts/redis-head.ts';
import { type Clock, systemClock } from '../../../shared/clock.ts';
import { ACCOUNTS, ENDED, HEAD, KEYS, LEASE, LOG, ROTATED, USES } from '../../../shared/publication.ts';
import type { Store } from '../../../shared/store/open.ts';
import { START_MS } from '../../fakes/chain-clock.ts';
import { waited } from '../../started/host.ts';
import { ADD_KEY, copyOf, headAt, newStore, publish as publishing, redisOfFile } from './publishing.ts';

/** What deploys writes to Redis, and what Redis takes from a deploys whose time is over. */
const redis = redisOfFile();
let admin: Redis;
let store: Store;
let running: (() => Promise<void>)[];
beforeEach(() => {
  admin = redis.admin();
  running = [];
  store = newStore();
});
afterEach(async () => {
  for (const end of running) await end();
  store.close();
});

const CLAIM: Claiming = { how: 'claim', announced: 100, turns: 0, generation: 1, over: '' };
const LOOK: Claiming = { ...CLAIM, how: 'look' };
/** One more start of a database that knows the holder before it. */
const over = (holder: string, generation: number): Claiming => ({ ...CLAIM, over: holder, generation });

async function headOf(holder: string, origin = 'here'): Promise<RedisHead> {
  const head = headAt(redis.url(), origin, holder);
  running.push(head.close);
  await waited(() => head.claim(LOOK).then(Boolean, () => false));
  return head;
}

/** Publishes the database until it is stopped or the test ends. */
function publish(options: Parameters<typeof publishing>[2] = {}) {
  const publisher = publishing(store, redis.url(), options);
  running.push(publisher.stop);
  return publisher;
}

const id = (n: number) => n.toString(16).padStart(16, '0');
function addKeys(from: number, upTo: number): void {
  const add = store.prepare<null, [string, Buffer]>(ADD_KEY);
  store.transaction(() => {
    for (let n = from; n <= upTo; n++) add.run(id(n), Buffer.from(id(n)));
  })();
}
const revoke = (n: number, atMs = 1) =>
  void store.run('UPDATE keys SET revoked_at_ms = ? WHERE id = ?', [atMs, id(n)]);
/** Names in the log, those that are gone with a minus. */
const logged = async () =>
  (await admin.xrange(LOG, '-', '+')).map(([, [name, text]]) => (text === '' ? '-' : '+') + name);
/** Whether Redis has all rows of this database and no others, and says so. */
async function isPublished(): Promise<boolean> {
  const idsOf = (sql: string) => store.query(sql).values().flat().toSorted();
  const [whole, keys, accounts] = await Promise.all([
    admin.hget(HEAD, 'whole'),
    admin.hkeys(KEYS),
    admin.hkeys(ACCOUNTS),
  ]);
  return (
    whole === '1' &&
    Bun.deepEquals(keys.toSorted(), idsOf('SELECT id FROM keys WHERE revoked_at_ms IS NULL')) &&
    Bun.deepEquals(accounts.toSorted(), idsOf('SELECT CAST(id AS TEXT) FROM accounts'))
  );
}

const ROWS: Put = {
  epoch: 'e1',
  puts: 0,
  seq: 3,
  log: 'all',
  isWhole: true,
  rows: [['a1', '["pro",null,0]']],
};

test('one claims at a time, also of one origin, and another origin never', async () => {
  const [first, second, stranger] = [await headOf('t1'), await headOf('t2'), await headOf('t3', 'there')];
  const nothing = { epoch: '', puts: 0, isWhole: false, seq: 0, config: 0, termsId: '', turns: 0, seen: 0 };
  expect(await first.claim(LOOK)).toEqual({ kind: 'free', holder: '', generation: 0 });
  expect(await first.claim(CLAIM)).toEqual({ kind: 'claimed', holder: 't1', generation: 1, ...nothing });
  expect(await second.claim(over('t1', 2))).toEqual({
    kind: 'held',
    holder: 't1',
    generation: 1,
    endsMs: expect.any(Number),
  });
  for (const how of ['claim', 'take-over'] as const)
    expect(await stranger.claim({ ...CLAIM, how })).toEqual({ kind: 'other-origin', origin: 'here' });
  await admin.del(LEASE);
  expect(await stranger.claim(CLAIM)).toEqual({ kind: 'other-origin', origin: 'here' });
  expect(await second.claim(over('t1', 2))).toMatchObject({ kind: 'claimed', generation: 2 });
  expect(await admin.hmget(HEAD, 'holder', 'generation')).toEqual(['t2', '2']);
});

test('a claim is made over the holder that was seen, and by what is level with Redis, or it takes nothing', async () => {
  const [first, second] = [await headOf('t1'), await headOf('t2')];
  await first.claim(CLAIM);
  await first.begin('e1');
  await first.put(ROWS);
  expect(await first.turn(7)).toBe(true);
  await first.close();
  const level = { ...over('t1', 2), announced: 3, turns: 7 };
  const free = { holder: 't1', generation: 1 };
  expect(await second.claim({ ...level, over: 't0' })).toEqual({ kind: 'free', ...free });
  expect(await second.claim({ ...level, announced: 2 })).toEqual({ kind: 'later', ...free });
  expect(await second.claim({ ...level, turns: 6 })).toEqual({ kind: 'later', ...free });
  expect([await admin.exists(LEASE), await second.turn(8)]).toEqual([0, false]);
  expect(await second.claim(level)).toMatchObject({ kind: 'claimed', seq: 3, turns: 7 });
  const third = await headOf('t3');
  // An operator's word counts more than a lease, and what is there stays the least.
  const taken = await third.claim({ ...over('t1', 3), how: 'take-over', announced: 1 });
  expect(taken).toMatchObject({ kind: 'claimed', seq: 3, turns: 7, generation: 3 });
  expect([await second.turn(8), await second.put({ ...ROWS, puts: 1, seq: 9 })]).toEqual([false, undefined]);
});

test('one whose claim has passed to another changes nothing, nor one that does not know the last write', async () => {
  const [first, second] = [await headOf('t1'), await headOf('t2')];
  await first.claim(CLAIM);
  await first.begin('e1');
  expect(await first.put(ROWS)).toBe(1);
  const before = await admin.hgetall(HEAD);
  const late: Put = { ...ROWS, seq: 9, rows: [['k1', '[1,"h",null]']] };
  expect(await first.put(late)).toBeUndefined();
  expect(await first.put({ ...late, epoch: 'e0', puts: 1 })).toBeUndefined();
  await admin.del(LEASE);
  await second.claim(over('t1', 2));
  expect(await first.put({ ...late, puts: 1 })).toBeUndefined();
  expect([await first.begin('e2'), await first.terms(9, 'id', '{}')]).toEqual([false, false]);
  expect(await admin.hgetall(HEAD)).toEqual({ ...before, holder: 't2', generation: '2' });
  expect([await admin.exists(KEYS), await logged()]).toEqual([0, ['+a1']]);
});

test('a write that changes nothing is none, and the versions of the log have no gaps', async () => {
  const head = await headOf('t1');
  await head.claim(CLAIM);
  await head.begin('e1');
  await head.put(ROWS);
  expect(await head.put({ ...ROWS, puts: 1, log: 'those that differ' })).toBe(1);
  expect(await head.put({ ...ROWS, puts: 1, seq: 4, log: 'none', rows: [['a2', '[null,null,0]']] })).toBe(2);
  const gone: Put['rows'] = ['a2', 'k1'].map((name) => [name, ''] as const);
  expect(await head.put({ ...ROWS, puts: 2, rows: gone })).toBe(3);
  expect((await admin.xrange(LOG, '-', '+')).map(([version]) => version)).toEqual(['1-0', '2-0', '3-0']);
  expect(await logged()).toEqual(['+a1', '-a2', '-k1']);
  expect(await admin.hmget(HEAD, 'version', 'seq')).toEqual(['3', '4']);
});

test('a change is in Redis and its log before everything else is there', async () => {
  addKeys(1, 2 * PORTION);
  const second = Promise.withResolvers<void>();
  let puts = 0;
  const { isWhole } = publish({ onPut: () => (++puts === 2 ? second.promise : undefined) });
  await waited(() => puts === 2);
  addKeys(9_999, 9_999);
  revoke(7);
  second.resolve();
  await waited(async () => (await admin.hexists(KEYS, id(9_999))) === 1);
  expect(await logged()).toEqual([`+k${id(9_999)}`, `-k${id(7)}`]);
  await waited(isPublished);
  await waited(isWhole);
}, 20_000);

test('a portion that could not be written comes again before everything counts as published', async () => {
  addKeys(1, 3 * PORTION);
  let puts = 0;
  const { epochs, isWhole } = publish({
    onPut() {
      if (++puts === 2) throw new Error('Redis does not answer');
    },
  });
  await waited(isWhole);
  expect([await isPublished(), epochs()]).toEqual([true, 1]);
}, 20_000);

test('a revocation, a suspension and an expiry do not wait for the changes before them (E43)', async () => {
  addKeys(1, 10);
  const { stop } = publish();
  await waited(isPublished);
  await stop();
  const puts: Put[] = [];
  addKeys(11, 4 * PORTION);
  revoke(7);
  const expire = (n: number, atMs: number) =>
    store.run('UPDATE keys SET expires_at_ms = ? WHERE id = ?', [atMs, id(n)]);
  expire(8, Date.now() + 1_000);
  expire(9, Date.now() + 86_400_000); // it works until long after
  store.run('UPDATE accounts SET suspended = 1');
  publish({ onPut: (words) => puts.push(words) });
  await waited(isPublished);
  expect(puts[0]?.rows).toHaveLength(PORTION + 3);
  expect(puts[0]?.rows.slice(0, 3)).toEqual([
    ['a1', '["pro",null,1]'],
    [`k${id(8)}`, expect.stringMatching(/^\[1,"[0-9a-f]+",\d+\]$/), expect.any(Number)],
    [`k${id(7)}`, '', 1],
  ]);
}, 20_000);

test('a Redis that was emptied, went back or was written by another is written anew in another epoch, and only then', async () => {
  addKeys(1, 50);
  let publisher = publish();
  await waited(isPublished);
  expect(publisher.epochs()).toBe(1);
  await publisher.stop();
  publisher = publish();
  revoke(1);
  await waited(isPublished);
  expect(publisher.epochs()).toBe(0);

  const names = [HEAD, KEYS, ACCOUNTS, LOG];
  const dumps = await Promise.all(names.map((name) => admin.dumpBuffer(name)));
  revoke(2);
  addKeys(51, 51);
  await waited(isPublished);
  // As a replica that takes over with what it had a moment ago.
  await admin.multi(names.map((name, at) => ['restore', name, 0, dumps[at] ?? '', 'REPLACE'])).exec();
  revoke(3);
  await waited(() => publisher.epochs() === 1);
  await waited(isPublished);
  expect(await logged()).toContain(`-k${id(2)}`); // the first time may be lost

  await admin.flushall();
  await waited(() => publisher.epochs() === 2);
  await waited(isPublished);
  await publisher.stop();
  await admin.hset(KEYS, 'stray', '[1,"h",null]');
  await admin.hset(HEAD, 'puts', 9_999);
  publisher = publish();
  await waited(isPublished);
  expect(publisher.epochs()).toBe(1);
}, 20_000);

/** A change of something that is not published. */
const edit = () =>
  createAudit(store).note({ atMs: 0, actor: { kind: 'command-line' }, action: 'webhook.edit', subject: 'w' });
const takeOver = () => void createChanges(store).requestTakeOver(0); // what is published is known here

describe('an older copy of the database (E42)', () => {
  test.each<[string, (publisher: ReturnType<typeof publish>) => Promise<unknown>]>([
    ['whose accounts have changed since', async () => (addKeys(6, 6), waited(isPublished))],
    ['whose deliveries went on since', async () => void createChanges(store).nextTurn()],
    ['of which anything else has changed since', async () => (edit(), createChanges(store).countEntries())],
    [
      'that was started again since',
      async (publisher) => {
        await publisher.stop();
        publisher = publish();
        await waited(publisher.isWhole);
        await publisher.stop();
      },
    ],
  ])(
    '%s publishes nothing, also when Redis has nothing left',
    async (_, goOn) => {
      addKeys(1, 5);
      const publisher = publish();
      await waited(publisher.isWhole);
      const [current, older] = [store, copyOf(store)];
      await goOn(publisher);
      await publisher.stop();
      await admin.hset(HEAD, 'turns', createChanges(store).last().turns);
      const before = await admin.hgetall(HEAD);
      store = older;
      const stale = publish();
      await waited(() => stale.state() === 'behind');
      await stale.stop();
      expect(await admin.hgetall(HEAD)).toEqual(before);
      await admin.flushall();
      const again = publish();
      await waited(() => again.state() !== undefined);
      expect([again.state(), await admin.exists(HEAD)]).toEqual(['behind', 0]);
      current.close();
    },
    20_000,
  );

  test('a copy of a running one that is level with it waits while it runs, and for a minute after: a restart comes first (E48)', async () => {
    const first = publish();
    await waited(first.isWhole);
    const current = store;
    store = copyOf(store);
    let aheadMs = 0;
    const clock: Clock = { ...systemClock, monotonic: () => systemClock.monotonic() + aheadMs };
    const second = publish({ clock });
    await waited(() => second.state() === 'waiting');
    await second.looked(10); // another renewed its lease meanwhile
    await first.stop();
    await second.looked(2);
    const level = store;
    store = current;
    const again = publish();
    await waited(again.isWhole);
    await waited(() => second.state() === 'behind');
    await second.stop();
    level.close();
    // Without one the copy goes on.
    store = copyOf(store);
    const third = publish({ clock });
    await waited(() => third.state() === 'waiting');
    await third.looked(10);
    await again.stop();
    await third.looked(2);
    expect(third.state()).toBe('waiting');
    aheadMs = 60_000;
    await waited(third.isWhole);
    await third.stop();
    store.close();
    store = current;
    const late = publish();
    await waited(() => late.state() === 'behind');
  }, 20_000);

  test('the next start on the same file waits no longer than the lease of one that was killed (E48)', async () => {
    const first = publish();
    await waited(first.isWhole);
    const holder = (await admin.get(LEASE)) ?? '';
    await first.stop();
    await admin.set(LEASE, holder, 'PX', 500);
    const second = publish();
    await waited(() => second.state() === 'waiting');
    await waited(second.isWhole);
  }, 20_000);

  test('takes over when an operator says so: what ended elsewhere stays ended, and revisions and generations only grow', async () => {
    addKeys(1, 5);
    const first = publish();
    await waited(first.isWhole);
    const older = copyOf(store);
    addKeys(6, 30);
    revoke(2);
    revoke(9);
    revoke(4, Date.now() + 3_600_000); // by a clock that is ahead
    store.run('UPDATE keys SET expires_at_ms = ? WHERE id = ?', [START_MS * 2, id(3)]);
    await waited(isPublished);
    const [current, { value }] = [store, createChanges(store).revision()];
    store = older;
    const second = publish();
    await waited(() => second.state() === 'behind');
    takeOver();
    await waited(second.isWhole);
    expect(second.takenOver).toEqual([3]);
    expect(
      store
        .query('SELECT id, revoked_at_ms, expires_at_ms FROM keys WHERE id IN (?, ?)')
        .values(id(2), id(3)),
    ).toEqual([
      [id(2), expect.any(Number), null],
      [id(3), null, START_MS * 2],
    ]);
    expect(store.query('SELECT action, subject FROM audit ORDER BY id').values()).toEqual(
      expect.arrayContaining([
        ['key.revoke', id(2)],
        ['key.expire', id(3)],
      ]),
    );
    await waited(isPublished);
    expect(createChanges(store).revision().value).toBeGreaterThanOrEqual(value);
    expect(Number(await admin.hget(HEAD, 'generation'))).toBe(2);
    await waited(() => first.state() === 'behind');
    addKeys(40, 40);
    await waited(async () => Number(await admin.hget(HEAD, 'seq')) > value);
    // It is said once: after a restart nothing is taken over again.
    await second.stop();
    const third = publish();
    await waited(third.isWhole);
    expect(third.takenOver).toEqual([]);
    await first.stop();
    current.close();
  }, 20_000);
});

test('as many rotated keys as are kept push no revoked one out, and only the latest revoked ones are kept (E42)', async () => {
  const head = await headOf('t1');
  await head.claim(CLAIM);
  await head.begin('e1');
  let puts = 0;
  const put = async (rows: Put['rows']) => {
    // The lease may end while so many are filled in and read.
    await head.claim({ ...CLAIM, announced: Number.MAX_SAFE_INTEGER });
    const now = await head.put({ ...ROWS, puts, log: 'none', rows });
    if (now === undefined) throw new Error('the lease is lost');
    puts = now;
  };
  /** As many as are kept, from this number on, as earlier writes left them. */
  const fill = (set: string, letter: string, from: number, atMs: number) =>
    admin.call('zadd', [
      set,
      ...Array.from({ length: ENDED_MAX }, (_, n) => [atMs + n, letter + id(from + n)]).flat(),
    ]);
  await put([[`k${id(1)}`, '', START_MS]]);
  await fill(ROTATED, 'x', 2, START_MS * 2);
  await put([7e6, 8e6].map((n) => [`k${id(n)}`, '[1,"h",1]', START_MS * 3 + n]));
  await put([[`k${id(0)}`, '', START_MS + 0.5]]);
  expect((await head.ended(ENDED, 0)).map(([name]) => name)).toEqual([`r${id(1)}`, `r${id(0)}`]);
  const rotated: string[] = [];
  let from: number;
  do {
    from = rotated.length;
    rotated.push(...(await head.ended(ROTATED, from)).map(([name]) => name));
  } while (rotated.length > from);
  expect([rotated.length, rotated.at(0), rotated.at(-1)]).toEqual([ENDED_MAX, `x${id(4)}`, `x${id(8e6)}`]);
  await fill(ENDED, 'r', 1e6, START_MS + 1);
  await put([[`k${id(9e6)}`, '', START_MS * 3]]);
  expect([
    await admin.zcard(ENDED),
    await admin.zrange(ENDED, '0', '0'),
    await admin.zrange(ENDED, '-1', '-1'),
  ]).toEqual([ENDED_MAX, [`r${id(1e6 + 1)}`], [`r${id(9e6)}`]]);
}, 20_000);

test('a figure that deploys did not write is read as none, by its name (E46)', async () => {
  const head = await headOf('t1');
  await head.claim(CLAIM);
  for (const [field, text] of [
    ['generation', 'nan'],
    ['puts', '-1'],
    ['seq', 'inf'],
    ['config', '0x10'],
    ['turns', '9007199254740992'],
    ['version', '1.5'],
    ['turns', '9'.repeat(400)],
  ] as const) {
    const right = await admin.hget(HEAD, field);
    await admin.hset(HEAD, field, text);
    const found = await head.claim(LOOK);
    expect([field, found]).toMatchObject([
      field,
      { kind: 'unreadable', figure: expect.stringContaining(field) },
    ]);
    await (right === null ? admin.hdel(HEAD, field) : admin.hset(HEAD, field, right));
  }
});

test('a figure that deploys did not write stops it, until it is gone (E46)', async () => {
  addKeys(1, 2);
  const first = publish();
  await waited(first.isWhole);
  await admin.hset(HEAD, 'seq', 'inf');
  const before = await admin.hgetall(HEAD);
  await waited(() => first.state() === 'unreadable');
  await first.stop();
  const second = publish();
  await waited(() => second.state() === 'unreadable');
  expect(await admin.hgetall(HEAD)).toEqual(before);
  await admin.del(HEAD);
  await waited(second.isWhole);
  expect(await isPublished()).toBe(true);
}, 20_000);

test('a lease that has no end, as a copy of Redis may have made it, is none (E46)', async () => {
  await admin.set(LEASE, 'a start that is gone');
  const { isWhole } = publish();
  await waited(isWhole);
}, 20_000);

test('a kill between what is written here and in Redis makes no copy of the database', async () => {
  const first = publish();
  await waited(first.isWhole);
  addKeys(1, 3);
  await waited(isPublished);
  // Redis has the write, and this process died before it was noted.
  store.run('UPDATE publication SET puts = puts - 1, published = published - 3');
  await first.stop();
  createChanges(store).nextTurn();
  createChanges(store).addPublisher('died before its claim', 0, 2);
  const second = publish();
  await waited(second.isWhole);
  expect(await admin.hget(HEAD, 'generation')).toBe('3');
}, 20_000);

test('a clock that is set back after more starts than are remembered makes no copy of the database (E42)', async () => {
  const add = store.prepare('INSERT INTO publishers (token, at_ms) VALUES (?, ?)');
  for (let n = 1; n <= 1_000; n++) add.run(`start ${n}`, START_MS * 2 + n);
  const first = publish();
  await waited(first.isWhole);
  await first.stop();
  expect(createChanges(store).knows((await admin.hget(HEAD, 'holder')) ?? '')).toBe(true);
  const second = publish();
  await waited(second.isWhole);
}, 20_000);

test('a slow sweep mends what is not in Redis as it should be, and logs it', async () => {
  addKeys(1, 5);
  let aheadMs = 0;
  const clock: Clock = { ...systemClock, monotonic: () => systemClock.monotonic() + aheadMs };
  const { epochs } = publish({ clock });
  await waited(isPublished);
  await admin.hset(KEYS, 'stray', '[1,"h",null]', id(1), '[1,"other",null]');
  await admin.hdel(KEYS, id(2));
  aheadMs = 3_600_000;
  await waited(isPublished);
  expect(await admin.hget(KEYS, id(1))).not.toContain('other');
  expect([epochs(), await logged()]).toEqual([1, [`+k${id(1)}`, `+k${id(2)}`, '-kstray']]);
}, 20_000);

test('a log that is not of its epoch is begun again', async () => {
  const { epochs } = publish();
  await waited(isPublished);
  await admin.xadd(LOG, '77-0', 'k1', '');
  addKeys(1, 1);
  await waited(isPublished);
  expect([epochs(), await logged()]).toEqual([1, [`+k${id(1)}`]]);
}, 20_000);

test('the log keeps the latest changes', async () => {
  const { epochs } = publish();
  await waited(isPublished);
  addKeys(1, LOG_MAX + 4 * PORTION);
  await waited(isPublished);
  const kept = await admin.xlen(LOG);
  expect(kept).toBeLessThan(LOG_MAX + 2 * PORTION);
  // A write that took a second on a busy machine begins another epoch, and its log.
  if (epochs() === 1) expect(kept).toBeGreaterThanOrEqual(LOG_MAX);
}, 20_000);

test('a use that came again while it was taken stays', async () => {
  const head = await headOf('t1');
  await admin.zadd(USES, 1_700_000_000_123, 'k1', 1_700_000_000_456, 'k2');
  const uses = await head.uses(10);
  expect(uses).toEqual([
    ['k1', '1700000000123'],
    ['k2', '1700000000456'],
  ]);
  await admin.zadd(USES, 1_700_000_060_000, 'k1');
  await head.dropUses(uses);
  expect(await head.uses(10)).toEqual([['k1', '1700000060000']]);
});

test('a key that is revoked in the moment of a stop is published before the stop has ended (E43)', async () => {
  addKeys(1, 2);
  const publisher = publish();
  await waited(isPublished);
  revoke(1);
  await publisher.stop();
  expect(await admin.hkeys(KEYS)).toEqual([id(2)]);
});

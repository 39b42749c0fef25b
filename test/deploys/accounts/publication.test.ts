import { Database } from 'bun:sqlite';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test';
import { Redis } from 'ioredis';
import { createChanges, PORTION } from '../../../deploys/accounts/changes.ts';
import { LOG_MAX, type Put, type RedisHead } from '../../../deploys/accounts/redis-head.ts';
import { type Clock, systemClock } from '../../../shared/clock.ts';
import { ACCOUNTS_MIGRATIONS } from '../../../shared/keys/schema.ts';
import { ACCOUNTS, HEAD, KEYS, LEASE, LOG, USES } from '../../../shared/publication.ts';
import type { Store } from '../../../shared/store/open.ts';
import { opened } from '../../started/gateway.ts';
import { waited } from '../../started/host.ts';
import { type StartedRedis, startRedis } from '../../started/redis.ts';
import { headAt, publish as publishing } from './publishing.ts';

/** What deploys writes to Redis, and what Redis takes from a deploys whose time is over. */
let server: StartedRedis;
let admin: Redis;
let store: Store;
let running: (() => Promise<void>)[];
beforeAll(async () => {
  server = await startRedis();
  admin = new Redis(server.port);
});
beforeEach(async () => {
  await admin.flushall();
  running = [];
  store = opened(':memory:', ACCOUNTS_MIGRATIONS);
  store.run("INSERT INTO accounts (id, name, plan, created_at_ms) VALUES (1, 'payer', 'pro', 0)");
});
afterEach(async () => {
  for (const end of running) await end();
  store.close();
});
afterAll(async () => {
  admin.disconnect();
  await server[Symbol.asyncDispose]();
});

async function headOf(holder: string, origin = 'here'): Promise<RedisHead> {
  const head = headAt(server.url, origin, holder);
  running.push(head.close);
  await waited(() => head.claim(false).then(Boolean, () => false));
  return head;
}

/** Publishes the database until it is stopped or the test ends. */
function publish(options: Parameters<typeof publishing>[2] = {}) {
  const publisher = publishing(store, server.url, options);
  running.push(publisher.stop);
  return publisher;
}

const id = (n: number) => n.toString(16).padStart(16, '0');
function addKeys(from: number, upTo: number): void {
  const add = store.prepare<null, [string, Buffer]>(
    "INSERT INTO keys (id, account_id, name, hash, prefix, last4, created_at_ms) VALUES (?, 1, '', ?, '', '', 0)",
  );
  store.transaction(() => {
    for (let n = from; n <= upTo; n++) add.run(id(n), Buffer.from(id(n)));
  })();
}
const revoke = (n: number) => void store.run('UPDATE keys SET revoked_at_ms = 1 WHERE id = ?', [id(n)]);
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
  const nothing = { epoch: '', puts: 0, isWhole: false, seq: 0, config: 0, termsId: '' };
  expect(await first.claim(true)).toEqual({ kind: 'claimed', ...nothing });
  expect(await second.claim(true)).toEqual({ kind: 'held' });
  expect(await stranger.claim(true)).toEqual({ kind: 'other-origin', origin: 'here' });
  await admin.del(LEASE);
  expect(await stranger.claim(true)).toEqual({ kind: 'other-origin', origin: 'here' });
  expect(await second.claim(true)).toMatchObject({ kind: 'claimed' });
  expect(await admin.hget(HEAD, 'holder')).toBe('t2');
});

test('one whose claim has passed to another changes nothing, nor one that does not know the last write', async () => {
  const [first, second] = [await headOf('t1'), await headOf('t2')];
  await first.claim(true);
  await first.begin('e1');
  expect(await first.put(ROWS)).toBe(1);
  const before = await admin.hgetall(HEAD);
  const late: Put = { ...ROWS, seq: 9, rows: [['k1', '[1,"h",null]']] };
  expect(await first.put(late)).toBeUndefined();
  expect(await first.put({ ...late, epoch: 'e0', puts: 1 })).toBeUndefined();
  await admin.del(LEASE);
  await second.claim(true);
  expect(await first.put({ ...late, puts: 1 })).toBeUndefined();
  expect([await first.begin('e2'), await first.terms(9, 'id', '{}')]).toEqual([false, false]);
  expect(await admin.hgetall(HEAD)).toEqual({ ...before, holder: 't2' });
  expect([await admin.exists(KEYS), await logged()]).toEqual([0, ['+a1']]);
});

test('a write that changes nothing is none, and the versions of the log have no gaps', async () => {
  const head = await headOf('t1');
  await head.claim(true);
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
  const { state } = publish({ onPut: () => (++puts === 2 ? second.promise : undefined) });
  await waited(() => puts === 2);
  addKeys(9_999, 9_999);
  revoke(7);
  second.resolve();
  await waited(async () => (await admin.hexists(KEYS, id(9_999))) === 1);
  expect(await logged()).toEqual([`+k${id(9_999)}`, `-k${id(7)}`]);
  await waited(isPublished);
  await waited(() => state() === 'publishing');
}, 20_000);

test('a portion that could not be written comes again before everything counts as published', async () => {
  addKeys(1, 3 * PORTION);
  let puts = 0;
  const { epochs, state } = publish({
    onPut() {
      if (++puts === 2) throw new Error('Redis does not answer');
    },
  });
  await waited(() => state() === 'publishing');
  expect([await isPublished(), epochs()]).toEqual([true, 1]);
}, 20_000);

test('a revocation does not wait for the changes before it', async () => {
  addKeys(1, 10);
  const { stop } = publish();
  await waited(isPublished);
  await stop();
  const puts: Put[] = [];
  addKeys(11, 4 * PORTION);
  revoke(7);
  publish({ onPut: (words) => puts.push(words) });
  await waited(isPublished);
  expect([puts[0]?.rows.length, puts[0]?.rows[0]]).toEqual([PORTION + 1, [`k${id(7)}`, '']]);
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

test('an older database begins an epoch above the revisions that were published', async () => {
  addKeys(1, 5);
  const older = store.serialize();
  const publisher = publish();
  addKeys(6, 30);
  await waited(isPublished);
  await publisher.stop();
  const { value } = createChanges(store).revision();
  store.close();
  store = Database.deserialize(older, { strict: true }) as Store; // it was one
  publish();
  await waited(isPublished);
  expect(createChanges(store).revision().value).toBe(value);
  addKeys(40, 40);
  await waited(async () => Number(await admin.hget(HEAD, 'seq')) > value);
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
  publish();
  await waited(isPublished);
  addKeys(1, LOG_MAX + 4 * PORTION);
  await waited(isPublished);
  expect(await admin.xlen(LOG)).toBeWithin(LOG_MAX, LOG_MAX + 2 * PORTION);
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

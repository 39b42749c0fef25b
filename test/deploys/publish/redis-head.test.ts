import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test';
import { Redis } from 'ioredis';
import { openRedisHead, type RedisHead } from '../../../deploys/publish/redis-head.ts';
import { systemClock } from '../../../shared/clock.ts';
import { HEAD, LEASE, rowsOf } from '../../../shared/publication/names.ts';
import { waited } from '../../started/host.ts';
import { type StartedRedis, startRedis } from '../../started/redis.ts';

/** What Redis takes from a publisher, and from one whose time is over. */
let server: StartedRedis;
let admin: Redis;
const heads: RedisHead[] = [];
beforeAll(async () => {
  server = await startRedis();
  admin = new Redis(server.port);
});
beforeEach(() => admin.flushall());
afterEach(async () => void (await Promise.all(heads.splice(0).map((head) => head.close()))));
afterAll(async () => {
  admin.disconnect();
  await server[Symbol.asyncDispose]();
});

async function headOf(holder: string, origin = 'here'): Promise<RedisHead> {
  const onWarning = () => undefined;
  const head = openRedisHead({
    url: server.url,
    origin,
    holder,
    clock: systemClock,
    random: () => 0,
    onWarning,
  });
  if (head === undefined) throw new Error('the address is none');
  heads.push(head);
  await waited(() =>
    head.claim(false).then(
      () => true,
      () => false,
    ),
  );
  return head;
}
const portion = (...seqs: number[]) => ({
  rows: seqs.map((seq) => ({ seq, published: 0, text: `row ${seq}` })),
  upTo: seqs.at(-1) ?? 0,
  isLast: true,
});
const ids = async (epoch: string) => (await admin.xrange(rowsOf(epoch), '-', '+')).map(([id]) => id);

test('one claims at a time, also of one origin, and another origin never', async () => {
  const [first, second, stranger] = [await headOf('t1'), await headOf('t2'), await headOf('t3', 'there')];
  expect(await first.claim(true)).toEqual({ kind: 'claimed', epoch: '', seq: 0, config: 0, termsId: '' });
  expect(await second.claim(true)).toEqual({ kind: 'held' });
  expect(await stranger.claim(true)).toEqual({ kind: 'other-origin', origin: 'here' });
  await admin.del(LEASE);
  expect(await stranger.claim(true)).toEqual({ kind: 'other-origin', origin: 'here' });
  expect(await second.claim(true)).toMatchObject({ kind: 'claimed' });
  expect(await admin.hget(HEAD, 'holder')).toBe('t2');
});

test('one whose claim has passed to another changes nothing', async () => {
  const [first, second] = [await headOf('t1'), await headOf('t2')];
  await first.claim(true);
  await first.put('e1', portion(1), true);
  await first.finish('e1', 1, '');
  await admin.del(LEASE);
  await second.claim(true);
  const before = await admin.hgetall(HEAD);
  expect(await first.put('e1', portion(2), false)).toBe(false);
  expect(await first.put('e2', portion(2), true)).toBe(false);
  expect(await first.finish('e2', 2, 'e1')).toBe(false);
  expect(await first.terms(9, 'id', '{}')).toBe(false);
  expect([await admin.hgetall(HEAD), await ids('e1'), await ids('e2')]).toEqual([before, ['1-0'], []]);
});

test('a portion that comes twice or late changes nothing, and a row replaces the one before', async () => {
  const head = await headOf('t1');
  await head.claim(true);
  await head.put('e1', portion(1, 2), true);
  await head.put('e1', portion(1, 2), true);
  await head.finish('e1', 2, '');
  const later = { rows: [{ seq: 5, published: 1, text: 'row 5' }], upTo: 5, isLast: true };
  await head.put('e1', later, false);
  await head.put('e1', later, false);
  await head.put('e1', portion(1, 2), false);
  expect([await ids('e1'), await admin.hget(HEAD, 'seq')]).toEqual([['2-0', '5-0'], '5']);
});

test('a full publication is read when it is whole, ends the one before, and is forgotten when it is given up', async () => {
  const head = await headOf('t1');
  await head.claim(true);
  await head.put('e1', portion(1), true);
  expect([await admin.hget(HEAD, 'epoch'), (await admin.pttl(rowsOf('e1'))) > 0]).toEqual([null, true]);
  await head.finish('e1', 1, '');
  expect([await admin.hget(HEAD, 'epoch'), await admin.pttl(rowsOf('e1'))]).toEqual(['e1', -1]);
  await head.put('e2', portion(1, 2), true);
  expect([await admin.hget(HEAD, 'epoch'), await head.tip('e2')]).toEqual(['e1', 2]);
  await head.finish('e2', 2, 'e1');
  expect([await admin.hget(HEAD, 'epoch'), await admin.exists(rowsOf('e1'))]).toEqual(['e2', 0]);
});

test('a use that came again while it was taken stays', async () => {
  const head = await headOf('t1');
  await admin.zadd('{sluice:accounts}:uses', 1_700_000_000_123, 'k1', 1_700_000_000_456, 'k2');
  const uses = await head.uses(10);
  expect(uses).toEqual([
    { keyId: 'k1', atMs: 1_700_000_000_123 },
    { keyId: 'k2', atMs: 1_700_000_000_456 },
  ]);
  await admin.zadd('{sluice:accounts}:uses', 1_700_000_060_000, 'k1');
  await head.dropUses(uses);
  expect(await head.uses(10)).toEqual([{ keyId: 'k1', atMs: 1_700_000_060_000 }]);
});

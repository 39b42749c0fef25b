import { afterEach, beforeEach, expect, test } from 'bun:test';
import type { Redis } from 'ioredis';
import { createChanges } from '../../../deploys/accounts/changes.ts';
import { ENDED, HEAD, SEEN } from '../../../shared/publication.ts';
import type { Store } from '../../../shared/store/open.ts';
import { waited } from '../../started/host.ts';
import { ADD_KEY, copyOf, headAt, newStore, publish as publishing, redisOfFile } from './publishing.ts';

/** An operator's word for one of several copies of a database. */
const redis = redisOfFile();
let admin: Redis;
let stores: Store[];
let running: (() => Promise<void>)[];
beforeEach(() => {
  admin = redis.admin();
  [stores, running] = [[], []];
});
afterEach(async () => {
  await Promise.all(running.map((end) => end()));
  for (const store of stores) store.close();
});

function publish(store: Store, options: Parameters<typeof publishing>[2] = {}) {
  const publisher = publishing(store, redis.url(), options);
  running.push(publisher.stop);
  return publisher;
}
function keep(store: Store): Store {
  stores.push(store);
  return store;
}
const generation = async () => Number(await admin.hget(HEAD, 'generation'));

/** A database that is behind one of which it is a copy, and knows it. */
async function startBehind(): Promise<Store> {
  const current = keep(newStore());
  const first = publish(current);
  await waited(first.isWhole);
  const older = keep(copyOf(current));
  current.run('UPDATE accounts SET suspended = 1');
  await waited(async () => (await admin.hget(HEAD, 'seq')) === `${createChanges(current).revision().value}`);
  await first.stop();
  const behind = publish(older);
  await waited(() => behind.state() === 'behind');
  await behind.stop();
  return older;
}

test("an operator's word that a copy has too is void there as soon as one of the two has taken over (E47)", async () => {
  const one = await startBehind();
  createChanges(one).requestTakeOver(await generation());
  const two = keep(copyOf(one));
  const first = publish(one);
  await waited(first.isWhole);
  const taken = await generation();
  await first.stop();
  const second = publish(two);
  await waited(() => second.state() === 'behind');
  await second.stop();
  const again = publish(two);
  await waited(() => again.state() === 'behind');
  expect([await generation(), second.takenOver, createChanges(two).last().takeOver]).toEqual([taken, [], 0]);
  // Said of the copy itself, and after all that, it counts.
  createChanges(two).requestTakeOver(taken);
  await waited(again.isWhole);
  const back = publish(one);
  await waited(() => back.state() === 'behind');
}, 20_000);

test.each(['generation', 'seq'] as const)(
  'a %s that gateways saw and Redis has lost is later, until an operator says otherwise (E49)',
  async (figure) => {
    const one = await startBehind();
    await admin.flushall();
    one.run('UPDATE publication SET behind = NULL');
    const { origin } = createChanges(one);
    await admin.hset(SEEN, `${figure} another`, 1_000);
    const first = publish(one);
    await waited(first.isWhole);
    await admin.hset(SEEN, `${figure} ${origin}`, 100);
    await waited(() => first.state() === 'behind');
    createChanges(one).requestTakeOver(figure === 'generation' ? 100 : 0);
    await waited(first.isWhole);
    expect(Number(await admin.hget(HEAD, figure))).toBeGreaterThanOrEqual(figure === 'seq' ? 100 : 101);
    expect(createChanges(one).revision().value).toBe(Number(await admin.hget(HEAD, 'seq')));
    await first.looked(3);
    expect(first.state()).toBe('sole');
    await admin.hset(SEEN, `seq ${origin}`, 'nan');
    await waited(() => first.state() === 'unreadable');
  },
  20_000,
);

test('a word for what is so already is void, and is not kept for later (E47)', async () => {
  const one = await startBehind();
  createChanges(one).requestTakeOver(await generation());
  const first = publish(one);
  await waited(first.isWhole);
  const taken = await generation();
  createChanges(one).requestTakeOver(taken);
  await waited(() => createChanges(one).last().takeOver === 0);
  expect([await generation(), first.takenOver]).toEqual([taken, [0]]);
}, 20_000);

test('keys that ended elsewhere are ended before a take-over is claimed, and those until then right after it (E42)', async () => {
  const one = await startBehind();
  for (const id of ['a', 'b']) one.run(ADD_KEY, [id, Buffer.from(id)]);
  const revoked = () => one.query('SELECT id FROM keys WHERE revoked_at_ms > 0 ORDER BY id').values().flat();
  await admin.zadd(ENDED, 1, 'ra');
  let before: unknown;
  const onClaim = async ({ how }: { how: string }) => {
    if (how !== 'take-over') return;
    before = revoked();
    await admin.zadd(ENDED, 2, 'rb');
  };
  createChanges(one).requestTakeOver(await generation());
  const first = publish(one, { onClaim });
  await waited(first.isWhole);
  expect([before, revoked(), first.takenOver]).toEqual([['a'], ['a', 'b'], [2]]);
}, 20_000);

test('of two copies with a word that start at once one takes over (E47)', async () => {
  const one = await startBehind();
  createChanges(one).requestTakeOver(await generation());
  const both = [publish(one), publish(keep(copyOf(one)))];
  await waited(() => both.some(({ isWhole }) => isWhole()) && both.some(({ state }) => state() === 'behind'));
  await both.find(({ isWhole }) => isWhole())?.looked(3); // turns of its own: nothing is to come
  expect(both.map(({ state }) => state()).toSorted()).toEqual(['behind', 'sole']);
  expect(both.flatMap(({ takenOver }) => takenOver)).toHaveLength(1);
}, 20_000);

test('a word that was given while Redis could not be asked is void when something later was published (E47)', async () => {
  const one = await startBehind();
  // Of what was published since this database last saw Redis.
  await admin.hset(HEAD, 'generation', 9);
  createChanges(one).requestTakeOver(0);
  const first = publish(one);
  await waited(() => first.state() === 'behind');
  expect([await generation(), createChanges(one).last().takeOver]).toEqual([9, 0]);
  createChanges(one).requestTakeOver(9);
  await waited(first.isWhole);
  expect(await generation()).toBe(10);
}, 20_000);

test('a word counts still when the start that took over by it died before it could note that (E47)', async () => {
  const one = await startBehind();
  const changes = createChanges(one);
  const as = changes.requestTakeOver(await generation());
  const killed = headAt(redis.url(), changes.origin);
  await waited(killed.isConnected);
  changes.addPublisher(killed.holder, 0, as);
  const { announced, turns } = changes.last();
  const claim = { how: 'take-over', announced, turns, generation: as, over: '' } as const;
  expect((await killed.claim(claim)).kind).toBe('claimed');
  const second = publish(one);
  await waited(() => second.isWhole() || second.state() === 'behind');
  await killed.close();
  expect([second.state(), await generation(), changes.last().takeOver]).toEqual(['sole', as + 1, 0]);
}, 20_000);

import { expect, test } from 'bun:test';
import { randomUUID } from 'node:crypto';
import { type DeploysAt, openPush } from '../../../gateway/cluster/usage-push.ts';
import { createOutbox, KEPT_HERE, noteUnsent } from '../../../gateway/cluster/usage-outbox.ts';
import { type Clock, systemClock } from '../../../shared/clock.ts';
import { cellsKey } from '../../../shared/ledger/cells.ts';
import { temporaryFolder } from '../../started/gateway.ts';
import { waited } from '../../started/host.ts';
import { startRedis } from '../../started/redis.ts';
import { openLedger, writeCell } from '../usage/started.ts';

/** On which pauses are a twentieth as long: what is promised has no time in it. */
const FAST: Clock = { ...systemClock, sleep: (ms, signal) => systemClock.sleep(ms / 20, signal) };
const ACCOUNTS = 400;
const HOUR = Math.floor(systemClock.now() / 3_600_000);

test('what many accounts counted goes to a single Redis in commands that do not grow with them', async () => {
  await using redis = await startRedis();
  await using host = await pushing(redis.url);
  for (let id = 1; id <= ACCOUNTS; id++) host.count(id, HOUR, host.other, id);
  host.count(5, HOUR, host.other, 5, 'getBlock');
  host.putDeploys('elsewhere');
  await waited(() => host.outbox.some(1).length === 0);

  const fields = await Promise.all(
    [1, 5, ACCOUNTS].map((id) => redis.cli('hlen', cellsKey(id, HOUR)).then(Number)),
  );
  expect(fields).toEqual([1, 2, 1]);
  expect(await redis.cli('hvals', cellsKey(ACCOUNTS, HOUR))).toStartWith(`${ACCOUNTS},0,`);
  const stats = await redis.cli('info', 'commandstats');
  // A life, the cells and their places, each twice at most: the first time a script itself is sent.
  const commands = [...stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g)];
  expect(commands.reduce((sum, [, calls]) => sum + Number(calls), 0)).toBeWithin(3, 10);
});

/** A ledger with one node's cells, and a push of it while deploys is where it was put. */
async function pushing(redisUrl: string) {
  const folder = temporaryFolder();
  const [ledger, other] = [openLedger(folder), openLedger(folder)]; // two processes of one host
  ledger.run("INSERT INTO nodes VALUES ('n', 1)");
  for (const each of [ledger, other]) noteUnsent(each);
  const outbox = createOutbox(ledger);
  let [place, rounds]: [DeploysAt, number] = ['unknown', 0];
  const push = openPush({
    outbox,
    url: redisUrl,
    clock: FAST,
    random: () => 0.5,
    makeId: randomUUID,
    deploysAt() {
      rounds++;
      return place;
    },
    onWarning: () => undefined,
  });
  if (push === undefined) throw new Error('the address is one');
  const over = new AbortController();
  const running = push.run(over.signal);
  return {
    outbox,
    putDeploys: (where: DeploysAt) => void (place = where),
    count: (calls: number, hour = HOUR, from = ledger, account = 7, method = 'getSlot') =>
      writeCell(from, { hour, node: 'n', calls, account, method }),
    other,
    rounds: () => rounds,
    async [Symbol.asyncDispose]() {
      over.abort();
      await running;
      await push.close();
      for (const each of [ledger, other]) each.close();
      folder[Symbol.dispose]();
    },
  };
}

test('a host sends nothing and has nothing wait beside its deploys, and the last three days when deploys goes elsewhere', async () => {
  await using redis = await startRedis();
  await using host = await pushing(redis.url);
  host.count(1);
  expect(host.outbox.some(10)).toHaveLength(1);
  host.putDeploys('here');
  await waited(() => host.outbox.some(10).length === 0);
  host.count(4, HOUR - 73);
  host.count(5, HOUR - 70);
  host.count(6, HOUR, host.other);
  expect(host.outbox.some(10)).toEqual([]);
  expect(await redis.cli('dbsize')).toBe('0');
  host.putDeploys('elsewhere');
  await waited(async () => (await redis.cli('hvals', cellsKey(7, HOUR))).startsWith('6,'));
  await waited(() => host.outbox.some(10).length === 0);
  expect(await redis.cli('hvals', cellsKey(7, HOUR - 70))).toStartWith('5,');
  expect(await redis.cli('exists', cellsKey(7, HOUR - 73))).toBe('0');
  host.count(8, HOUR, host.other);
  await waited(async () => (await redis.cli('hvals', cellsKey(7, HOUR))).startsWith('8,'));
}, 15_000);

test('with Redis away what waits is kept while it is not known where deploys is, and from the moment that it goes elsewhere', async () => {
  await using redis = await startRedis();
  await redis.die();
  await using host = await pushing(redis.url);
  host.putDeploys('here');
  await waited(() => host.outbox.life() === KEPT_HERE);
  host.count(5, HOUR - 70);
  host.putDeploys('elsewhere');
  await waited(() => host.outbox.some(10).length === 1);
  host.putDeploys('unknown');
  const before = host.rounds();
  await waited(() => host.rounds() >= before + 4);
  host.count(6);
  expect([host.outbox.some(10).length, host.outbox.life() === KEPT_HERE]).toEqual([2, false]);
  await redis.restart('empty');
  host.putDeploys('elsewhere');
  await waited(async () => (await redis.cli('hvals', cellsKey(7, HOUR))).startsWith('6,'));
}, 15_000);

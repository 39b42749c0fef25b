import { expect, test } from 'bun:test';
import { createChanges } from '../../../deploys/accounts/changes.ts';
import { createFollow } from '../../../gateway/cluster/hosts.ts';
import { openPublished } from '../../../gateway/cluster/published.ts';
import { createServed, SERVED_MIGRATIONS } from '../../../gateway/cluster/served.ts';
import { systemClock } from '../../../shared/clock.ts';
import { keyIdOf } from '../../../shared/keys/api-key.ts';
import { ACCOUNTS_MIGRATIONS } from '../../../shared/keys/schema.ts';
import { HEAD } from '../../../shared/publication.ts';
import { seeded } from '../../fakes/seeded.ts';
import { opened } from '../../started/gateway.ts';
import { waited } from '../../started/host.ts';
import { ADD_KEY, newStore, publish, redisOfFile, storeFrom } from './publishing.ts';

const SEEDS = 4;
const STEPS = 40;

const redis = redisOfFile();

/** A deploys whose database and Redis are put back at random, each alone, and the gateway of another host. */
async function startWorld(random: () => number) {
  const admin = redis.admin();
  let store = newStore();
  let running: ReturnType<typeof publish> | undefined;
  const published = openPublished(redis.url(), systemClock, random);
  if (published === undefined) throw new Error('the address is none');
  const served = createServed(opened(':memory:', SERVED_MIGRATIONS));
  const follow = createFollow(served, published, opened(':memory:', ACCOUNTS_MIGRATIONS));
  await waited(() => follow().then(Boolean, () => false));
  const backups: Uint8Array[] = [];
  const dumps: (readonly (readonly [string, Buffer])[])[] = [];
  const ended = new Set<string>();
  let keys = 0;
  const hashOf = (n: number) => Buffer.alloc(32, n);

  async function stop(): Promise<void> {
    await running?.stop();
    running = undefined;
  }
  const isOwn = () => running !== undefined && running.isWhole();
  const isSettled = async () =>
    running?.state() === 'behind' ||
    (isOwn() && Number(await admin.hget(HEAD, 'seq')) >= createChanges(store).revision().value);

  async function change(): Promise<void> {
    if (!isOwn()) return;
    const hash = hashOf(++keys);
    store.run(ADD_KEY, [keyIdOf(hash), hash]);
    const working = store.query<{ id: string }, []>('SELECT id FROM keys WHERE revoked_at_ms IS NULL').all();
    const id = working[Math.floor(random() * working.length)]?.id ?? '';
    if (random() < 0.6) store.run('UPDATE keys SET revoked_at_ms = 1 WHERE id = ?', [id]);
    await waited(isSettled);
  }

  /** What a gateway does all the time: it follows, and looks up keys that callers send. */
  async function serve(): Promise<'current' | 'older'> {
    let look = await follow();
    while (look.restMs < 250) look = await follow();
    for (let n = 1; n <= keys; n++) {
      const id = keyIdOf(hashOf(n));
      if (served.read(hashOf(n)) === undefined && published !== undefined)
        served.take(await published.find([id]));
      const works = served.read(hashOf(n)) !== undefined;
      if (works) expect([n, ended.has(id)]).toEqual([n, false]);
      // It has ended for this host.
      const isGone =
        store.query('SELECT 1 FROM keys WHERE id = ? AND revoked_at_ms IS NOT NULL').get(id) !== null;
      if (!works && look.older === undefined && isOwn() && isGone) ended.add(id);
    }
    return look.older === undefined ? 'current' : 'older';
  }

  const acts = {
    change,
    again: change,
    stop,
    async start() {
      running ??= publish(store, redis.url());
      await waited(isSettled);
    },
    async backUp() {
      backups.push(store.serialize());
      const names = (await admin.keys('{sluice:accounts}:*')).filter((name) => !name.endsWith(':lease'));
      dumps.push(await Promise.all(names.map(async (name) => [name, await admin.dumpBuffer(name)] as const)));
    },
    async putBackRedis() {
      const dump = random() < 0.3 ? [] : (dumps[Math.floor(random() * dumps.length)] ?? []);
      await admin.multi([['flushall'], ...dump.map(([name, text]) => ['restore', name, 0, text])]).exec();
    },
    async putBackDatabase() {
      const backup = backups[Math.floor(random() * backups.length)];
      if (backup === undefined) return;
      await stop();
      store = storeFrom(backup);
    },
    async takeOver() {
      if (running?.state() !== 'behind') return;
      createChanges(store).requestTakeOver(
        Math.max(Number(await admin.hget(HEAD, 'generation')), served.state().generation),
      );
      // What only the other one knew may work again, as an operator said.
      ended.clear();
      await waited(() => isOwn() || running?.state() === 'behind');
    },
  };

  return {
    async step(): Promise<string> {
      const names = Object.keys(acts) as (keyof typeof acts)[];
      const name = names[Math.floor(random() * names.length)] ?? 'change';
      await acts[name]();
      const how = await serve();
      return `${name} ${running?.state()} ${how}`;
    },
    /** Whatever was, with a deploys that counts the gateway follows again. */
    async heal(): Promise<void> {
      await acts.start();
      await waited(async () => {
        await acts.takeOver();
        return isOwn() && (await isSettled()) && (await serve()) === 'current';
      });
      await change();
      await serve();
      for (let n = 1; n <= keys; n++) {
        const row = store
          .query('SELECT 1 FROM keys WHERE id = ? AND revoked_at_ms IS NULL')
          .get(keyIdOf(hashOf(n)));
        expect([n, served.read(hashOf(n)) !== undefined]).toEqual([n, row !== null]);
      }
    },
    async end(): Promise<void> {
      await stop();
      await published.close();
      served.store.close();
    },
  };
}

test('whatever is put back in whatever order, a gateway revives no key that it saw end but by an operator, and follows again in the end (E49)', async () => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    await redis.admin().flushall();
    const world = await startWorld(seeded(seed));
    const said: string[] = [];
    try {
      for (let step = 0; step < STEPS; step++) said.push(await world.step());
      await world.heal();
    } catch (error) {
      throw new Error(`seed ${seed}: ${said.join(', ')}`, { cause: error });
    } finally {
      await world.end();
    }
  }
}, 60_000);

import { afterEach, beforeEach, expect, test } from 'bun:test';
import { createChanges } from '../../../deploys/publish/changes.ts';
import { createRevocations } from '../../../deploys/publish/revocations.ts';
import { runPublisher } from '../../../deploys/publish/publish.ts';
import { openRedisHead, type RedisHead } from '../../../deploys/publish/redis-head.ts';
import { systemClock } from '../../../shared/clock.ts';
import { ACCOUNTS_MIGRATIONS } from '../../../shared/keys/schema.ts';
import { HEAD } from '../../../shared/publication/names.ts';
import { REVOKED_MAX } from '../../../shared/publication/revoked.ts';
import type { Store } from '../../../shared/store/open.ts';
import { createVirtualClock } from '../../gateway/virtual-clock.ts';
import { opened } from '../../started/gateway.ts';
import { waited } from '../../started/host.ts';
import { startRedis } from '../../started/redis.ts';

/** Keys are revoked ahead of the rows that say so. */
let store: Store;
let keys = 0;
beforeEach(() => {
  store = opened(':memory:', ACCOUNTS_MIGRATIONS);
  store.run("INSERT INTO accounts (id, name, plan, created_at_ms) VALUES (1, 'payer', 'pro', 0)");
  keys = 0;
});
afterEach(() => store.close());

function addKeys(many: number): void {
  const add = store.prepare<null, [string, Buffer]>(
    "INSERT INTO keys (id, account_id, name, hash, prefix, last4, created_at_ms) VALUES (?, 1, '', ?, '', '', 0)",
  );
  store.transaction(() => {
    for (let i = 0; i < many; i++) add.run(`k${++keys}`, Buffer.from(`hash of ${keys}`));
  })();
}
const revoke = (id: string) => void store.run('UPDATE keys SET revoked_at_ms = 1 WHERE id = ?', [id]);

test('a revocation is in Redis before the rows of a publication that takes its time', async () => {
  await using redis = await startRedis();
  addKeys(1_200);
  const head = openRedisHead({
    url: redis.url,
    origin: 'here',
    holder: 't1',
    clock: systemClock,
    random: () => 0,
    onWarning: () => undefined,
  });
  if (head === undefined) throw new Error('the address is none');
  const second = Promise.withResolvers<void>();
  let portions = 0;
  const slow: RedisHead = {
    ...head,
    async put(...words) {
      if (++portions === 2) revoke('k7');
      if (portions === 3) await second.promise;
      return head.put(...words);
    },
  };
  const over = new AbortController();
  const publishing = runPublisher(
    {
      changes: createChanges(store),
      head: slow,
      holder: 't1',
      clock: systemClock,
      makeEpoch: () => 'e1',
      readTerms: () => undefined,
      noteStanding: () => undefined,
    },
    over.signal,
  );
  await waited(async () => (await redis.cli('HGET', HEAD, 'revoked')) === 'k7');
  expect(await redis.cli('HGET', HEAD, 'epoch')).toBe('');
  second.resolve();
  await waited(async () => (await redis.cli('HGET', HEAD, 'epoch')) === 'e1');
  // A mirror may be behind those rows for minutes.
  expect(await redis.cli('HGET', HEAD, 'revoked')).toBe('k7');
  over.abort();
  await publishing;
}, 20_000);

test('what is told is what was revoked in the last ten minutes, said once, and again to a Redis that may have lost it', async () => {
  addKeys(3);
  const { clock, advance } = createVirtualClock();
  const told: string[] = [];
  const head = { revoked: async (text: string) => told.push(text) > 0 };
  const revocations = createRevocations({ changes: createChanges(store), head, clock });
  await revocations.tell(0);
  revoke('k1');
  await revocations.tell(0);
  await revocations.tell(0);
  revoke('k3');
  await revocations.tell(0);
  expect(told).toEqual(['k1', 'k1 k3']);
  revocations.again();
  await revocations.tell(0);
  expect(told).toEqual(['k1', 'k1 k3', 'k1 k3']);
  advance(600_001);
  await revocations.tell(0);
  expect(told.at(-1)).toBe('');
});

test('of more than are told the newest are, and one that could not be told is told later', async () => {
  addKeys(REVOKED_MAX + 5);
  const told: string[] = [];
  let holds = false;
  const head = { revoked: async (text: string) => holds && told.push(text) > 0 };
  const revocations = createRevocations({ changes: createChanges(store), head, ...createVirtualClock() });
  for (let i = 1; i <= REVOKED_MAX + 5; i++) revoke(`k${i}`);
  expect(await revocations.tell(0)).toBe(false);
  holds = true;
  expect(await revocations.tell(0)).toBe(true);
  const ids = told[0]?.split(' ') ?? [];
  expect([ids.length, ids[0], ids.at(-1)]).toEqual([REVOKED_MAX, 'k6', `k${REVOKED_MAX + 5}`]);
});

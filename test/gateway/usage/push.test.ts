import { expect, test } from 'bun:test';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { LEDGER_MIGRATIONS } from '../../../gateway/limits/ledger.ts';
import { createOutbox, noteUnsent } from '../../../gateway/usage/outbox.ts';
import { openPush } from '../../../gateway/usage/push.ts';
import { systemClock } from '../../../shared/clock.ts';
import { cellsKey } from '../../../shared/ledger/shared-usage.ts';
import { opened, temporaryFolder } from '../../started/gateway.ts';
import { waited } from '../../started/host.ts';
import { startRedis } from '../../started/redis.ts';

const ACCOUNTS = 400;
const HOUR = Math.floor(systemClock.now() / 3_600_000);

test('what many accounts counted goes to a single Redis in commands that do not grow with them', async () => {
  await using redis = await startRedis();
  using folder = temporaryFolder();
  const ledger = opened(join(folder.path, 'ledger.db'), LEDGER_MIGRATIONS);
  noteUnsent(ledger);
  const put = ledger.prepare(
    `INSERT INTO usage_hours (hour, account_id, key_id, method, node, calls, credits, refunded, errors, bytes_out, refused, charged, returned)
     VALUES (${HOUR}, ?1, 'k', ?2, 'n', ?1, 0, 0, 0, 0, 0, 0, 0)`,
  );
  for (let id = 1; id <= ACCOUNTS; id++) put.run(id, 'getSlot');
  put.run(5, 'getBlock');
  const outbox = createOutbox(ledger);
  const push = openPush({
    outbox,
    url: redis.url,
    clock: systemClock,
    random: () => 0.5,
    makeId: randomUUID,
    isAway: () => false,
    onWarning: () => undefined,
  });
  if (push === undefined) throw new Error('the address is one');
  const over = new AbortController();
  const running = push.run(over.signal);
  await waited(() => outbox.some(1).length === 0);
  over.abort();
  await running;
  await push.close();

  const fields = await Promise.all(
    [1, 5, ACCOUNTS].map((id) => redis.cli('hlen', cellsKey(id, HOUR)).then(Number)),
  );
  expect(fields).toEqual([1, 2, 1]);
  expect(await redis.cli('hvals', cellsKey(ACCOUNTS, HOUR))).toStartWith(`${ACCOUNTS},0,`);
  const stats = await redis.cli('info', 'commandstats');
  // A life, the cells and their places, each twice at most: the first time a script itself is sent.
  const commands = [...stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g)];
  expect(commands.reduce((sum, [, calls]) => sum + Number(calls), 0)).toBeWithin(3, 10);
  ledger.close();
});

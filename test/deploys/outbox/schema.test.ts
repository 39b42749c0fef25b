import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { DEPLOYS_MIGRATIONS } from '../../../deploys/schema.ts';
import { START_MS } from '../../fakes/chain-clock.ts';
import { opened, temporaryFolder } from '../../started/gateway.ts';
import { answered } from '../../fakes/scripted-send.ts';
import { MINUTE, startWorker } from '../delivery/working.ts';
import { BLOCK_TIME, queueOver, startQueue } from './queue.ts';

test('a database of the first release with deliveries in every open state migrates and drains (E33)', async () => {
  using folder = temporaryFolder();
  const path = join(folder.path, 'sluice.db');
  const first = Object.entries(DEPLOYS_MIGRATIONS).filter(([name]) =>
    // The last is not of the first release: what is put in below says whose it is.
    ['programs-1', 'programs-2', 'webhooks-1', 'webhooks-2', 'deliveries-of-account-1'].includes(name),
  );
  const old = opened(path, Object.fromEntries(first));
  const before = queueOver(old);
  for (const id of ['one', 'two']) before.addWebhook(id);
  before.upgrade('A', 7);
  const [leased, failed] = before.outbox.claim(START_MS, []);
  before.end(failed, answered(500), START_MS);
  before.upgrade('B', 8);
  before.upgrade('C', 9, START_MS, false);
  before.times.save(9n, BLOCK_TIME);
  expect(new Set(before.states())).toEqual(new Set(['attempting', 'retry_scheduled', 'queued']));
  const ids = before.values('SELECT id FROM deliveries ORDER BY id').flat();
  old.close();

  using queue = startQueue(path);
  expect(queue.values('SELECT name FROM migrations ORDER BY name')).toEqual(
    Object.keys(DEPLOYS_MIGRATIONS)
      .toSorted()
      .map((name) => [name]),
  );
  const work = startWorker(() => answered(200), { queue });
  await work.advance(MINUTE);
  expect(
    work
      .posts()
      .map(({ id }) => id)
      .toSorted(),
  ).toEqual(ids.map(String));
  expect(work.states()).toEqual(ids.map(() => 'delivered'));
  expect(queue.attemptsOf(leased?.deliveryId ?? '').map(({ state }) => state)).toEqual([
    'interrupted',
    'succeeded',
  ]);
  await work.stop();
});

import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { DEPLOYS_MIGRATIONS } from '../../../deploys/schema.ts';
import { START_MS } from '../../fakes/chain-clock.ts';
import { opened, temporaryFolder } from '../../started/gateway.ts';
import { answered } from '../../fakes/scripted-send.ts';
import { MINUTE, startWorker } from '../delivery/working.ts';
import { BLOCK_TIME, queueOver, queueWith, startQueue } from './queue.ts';

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

test('deliveries of an earlier release get the account of their webhook', () => {
  using folder = temporaryFolder();
  const path = join(folder.path, 'sluice.db');
  const { 'deliveries-of-account-1': _, ...earlier } = DEPLOYS_MIGRATIONS;
  const old = opened(path, earlier);
  old.run(`INSERT INTO webhooks (id, account_id, url, host, secret_ct, secret_kid, created_at_ms, updated_at_ms)
    VALUES ('one', 7, 'https://a/', 'a', x'00', 1, 0, 0)`);
  old.run(`INSERT INTO deliveries (id, webhook_id, event_kind, dedupe_key, state, created_at_ms, finished_at_ms)
    VALUES ('old', 'one', 'ping', 'old', 'delivered', 0, 0)`);
  old.close();
  using queue = startQueue(path);
  expect(queue.find('old')).toMatchObject({ id: 'old', webhookId: 'one' });
  expect(queue.values('SELECT account_id FROM deliveries')).toEqual([[7]]);
});

test.each([
  ['webhooks', "programs_json = 'A, B'"],
  ['webhooks', "next_secret_ct = x'00', next_secret_at_ms = 1"],
  ['webhooks', "next_secret_ct = x'00', next_secret_kid = 1"],
  ['deliveries', "event_kind = 'unheard-of'"],
  ['deliveries', "state = 'unheard-of', next_attempt_at_ms = NULL"],
  ['deliveries', 'attempts = 7'],
  ['deliveries', "lease_token = 'without an end'"],
  ['deliveries', "state = 'attempting', next_attempt_at_ms = NULL"],
  ['deliveries', 'next_attempt_at_ms = NULL'],
  ['deliveries', 'finished_at_ms = 1'],
  ['attempts', 'number = 7'],
  ['attempts', "trigger = 'unheard-of', number = NULL"],
  ['attempts', "trigger = 'manual'"],
  ['attempts', "state = 'unheard-of', ended_at_ms = 1"],
  ['attempts', 'ended_at_ms = 1'],
  ['attempts', "answer_body_kind = 'unheard-of'"],
])('a row of %s that has %s is refused', (table, change) => {
  using queue = queueWith('one');
  for (const slot of [7, 8]) queue.upgrade('A', slot);
  expect(queue.outbox.claim(START_MS, [])).toHaveLength(1);
  const which = table === 'deliveries' ? "state = 'queued'" : 'true';
  expect(() => queue.store.run(`UPDATE ${table} SET ${change} WHERE ${which}`)).toThrow('CHECK');
});

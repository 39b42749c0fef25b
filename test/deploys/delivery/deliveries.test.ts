import { expect, test } from 'bun:test';
import { createAudit } from '../../../deploys/accounts/audit.ts';
import { deliveryHealth } from '../../../deploys/delivery/deliveries.ts';
import type { Sent } from '../../../deploys/outbox/outcome.ts';
import { answered, createScriptedSend, failedWith, type SeenPost } from '../../fakes/scripted-send.ts';
import { queueOver } from '../outbox/queue.ts';
import { startDeploys, watchedOf } from '../started.ts';

/** The whole app, watching, with its queue; every attempt ends as `script` says. */
async function start(script: (post: SeenPost) => Sent | undefined) {
  const deploys = startDeploys(watchedOf('A', 'B'), undefined, ':memory:', createScriptedSend(script));
  await deploys.watch();
  return { ...queueOver(deploys.store), ...deploys };
}

test('figures count attempts by outcome, and show the backlog; a URL, which may hold a secret of its receiver, is not logged', async () => {
  await using work = await start(({ post }) =>
    post.url.hostname.startsWith('bad')
      ? answered(500)
      : post.url.hostname.startsWith('in')
        ? failedWith('blocked_address')
        : answered(200),
  );
  for (const id of ['good', 'bad', 'inward']) work.addWebhook(id);
  work.store.run("UPDATE webhooks SET url = url || '?token=hidden'");
  work.upgrade('A', 7, work.clock.now());
  await work.clock.advance(2_000);
  expect(await work.figures()).toMatchObject({
    'deploys_attempts_total{outcome="succeeded",trigger="auto"}': 1,
    'deploys_attempts_total{outcome="failed",trigger="auto"}': 1,
    'deploys_attempts_total{outcome="blocked",trigger="auto"}': 1,
    'deploys_attempts_blocked_total{reason="blocked_address"}': 1,
    deploys_first_attempt_wait_seconds_count: 3,
    deploys_deliveries_due: 0,
    deploys_oldest_due_age_seconds: 0,
    deploys_attempts_under_way: 0,
    deploys_webhooks_failing: 2,
  });
  const lines = JSON.stringify(work.lines);
  expect([lines.includes('not delivered'), lines.includes('hidden')]).toEqual([true, false]);
});

test('old deliveries and entries of the audit log are deleted', async () => {
  await using deploys = startDeploys(watchedOf('A'));
  const queue = queueOver(deploys.store);
  queue.addWebhook('one');
  queue.store.run(`
    INSERT INTO deliveries (id, webhook_id, event_kind, dedupe_key, state, created_at_ms, finished_at_ms)
    VALUES ('old', 'one', 'ping', 'old', 'delivered', 0, 0)`);
  const audit = createAudit(deploys.store);
  const note = { actor: { kind: 'command-line' }, action: 'webhook.pause', subject: 'one' } as const;
  for (const atMs of [0, deploys.clock.now()]) audit.note({ ...note, atMs });
  await deploys.watch();
  await deploys.clock.advance(1_000);
  expect(queue.states()).toEqual([]);
  expect(audit.list({ limit: 9 }).map(({ id }) => id)).toEqual([2]);
});

const NOW = 1_000_000;

test.each([
  [undefined, 0, true, '3 deliveries are due.'],
  [NOW + 5, 0, true, '3 deliveries are due.'],
  [NOW - 300_000, 0, true, '3 deliveries are due.'],
  [NOW - 300_001, 0, false, '3 deliveries are due, the oldest for 5 minutes.'],
  [NOW - 900_000, 4, true, '3 deliveries are due.'], // they wait behind a receiver that hangs
])(
  'with the oldest due at %p of 1000000 and %i under way, being well is %p',
  (oldestDueAtMs, underWay, isWell, sentence) => {
    const health = deliveryHealth({ underWay, trouble: undefined }, { due: 3, oldestDueAtMs }, NOW);
    expect(health).toEqual({ isWell, sentence });
  },
);

test('a queue that cannot be used makes health fail, without the reason (E23)', () => {
  const worker = { underWay: 1, trouble: new Error('/secret/path') };
  const health = deliveryHealth(worker, { due: 0, oldestDueAtMs: undefined }, NOW);
  expect(health.isWell).toBe(false);
  expect(health.sentence).not.toContain('/secret/path');
});

import { describe, expect, test } from 'bun:test';
import { Registry } from 'prom-client';
import { createAudit } from '../../../deploys/accounts/audit.ts';
import { createDeliveries, deliveryHealth } from '../../../deploys/delivery/deliveries.ts';
import { bothHealths } from '../../../deploys/health/health.ts';
import type { Sent } from '../../../deploys/outbox/outcome.ts';
import { Secret } from '../../../shared/secret.ts';
import { createVirtualClock } from '../../fakes/chain-clock.ts';
import { answered, createScriptedSend, failedWith, type SeenPost } from '../../fakes/scripted-send.ts';
import { silentLog } from '../../started/gateway.ts';
import { startQueue } from '../outbox/queue.ts';

const DAY = 86_400_000;

function start(script: (post: SeenPost) => Sent | undefined) {
  const queue = startQueue();
  const clock = createVirtualClock();
  const registry = new Registry();
  const lines: unknown[] = [];
  const over = new AbortController();
  const deliveries = createDeliveries({
    store: queue.store,
    outbox: queue.outbox,
    registry,
    clock,
    log: silentLog(lines),
    send: createScriptedSend(script).send,
    secretsOf: () => ({ current: new Secret('whsec'), next: undefined }),
  });
  const running = deliveries.run(over.signal);
  async function figures(): Promise<Record<string, number>> {
    const text = await registry.metrics();
    const rows = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    return Object.fromEntries(
      rows.map((row) => row.split(/ (?=[^ ]+$)/)).map(([name, n]) => [name, Number(n)]),
    );
  }
  return {
    ...queue,
    clock,
    deliveries,
    lines,
    figures,
    async [Symbol.asyncDispose]() {
      over.abort();
      await clock.advance(20_000);
      await running;
      queue[Symbol.dispose]();
    },
  };
}

describe('figures', () => {
  test('count attempts by outcome, and show the backlog; a URL, which may hold a secret of its receiver, is not logged', async () => {
    await using work = start(({ post }) =>
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

  test('show how long an event has waited for its block time', async () => {
    await using work = start(() => answered(200));
    work.addWebhook('one');
    expect(await work.figures()).toMatchObject({ deploys_oldest_event_wait_seconds: 0 });
    work.upgrade('A', 7, work.clock.now(), false);
    await work.clock.advance(60_000);
    work.upgrade('B', 8, work.clock.now(), false);
    expect(await work.figures()).toMatchObject({
      deploys_oldest_event_wait_seconds: 60,
      deploys_deliveries_due: 0,
    });
    for (const slot of [7n, 8n]) work.times.save(slot, 1);
    await work.clock.advance(2_000);
    expect(await work.figures()).toMatchObject({ deploys_oldest_event_wait_seconds: 0 });
  });
});

test('old deliveries and entries of the audit log are deleted', async () => {
  await using work = start(() => answered(200));
  work.addWebhook('one');
  work.upgrade('A', 7, work.clock.now() - 91 * DAY);
  const audit = createAudit(work.store);
  const note = { actor: { kind: 'command-line' }, action: 'webhook.pause', subject: 'one' } as const;
  for (const atMs of [0, work.clock.now()]) audit.note({ ...note, atMs });
  await work.clock.advance(5_000);
  expect(work.states()).toEqual(['delivered']);
  await work.clock.advance(DAY + 1);
  expect(work.states()).toEqual([]);
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

test('health is good when both parts are, and shows the second only when it is not', () => {
  const [well, ill] = [
    { isWell: true, sentence: 'ok.' },
    { isWell: false, sentence: 'Ill.' },
  ];
  expect(bothHealths(well, undefined)).toEqual(well);
  expect(bothHealths(well, { isWell: true, sentence: 'Fine.' })).toEqual(well);
  expect(bothHealths(well, ill)).toEqual({ isWell: false, sentence: 'ok. Ill.' });
  expect(bothHealths(ill, well).isWell).toBe(false);
});

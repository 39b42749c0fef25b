import { expect, test } from 'bun:test';
import { createAudit } from '../../../deploys/accounts/audit.ts';
import { START_MS } from '../../fakes/chain-clock.ts';
import { answered } from '../../fakes/scripted-send.ts';
import { byMe, ME, never, OTHER, startWebhooks } from './started.ts';

async function started() {
  const webhooks = startWebhooks();
  const audit = createAudit(webhooks.queue.store);
  const { id, secret } = await webhooks.made();
  /** What was written since the webhook was made, oldest first. */
  const noted = () =>
    audit
      .list({ limit: 100 })
      .toReversed()
      .slice(1)
      .map(({ action, detail }) => [action, detail]);
  function failed() {
    webhooks.queue.upgrade('A', 7);
    const [claim] = webhooks.queue.outbox.claim(START_MS, []);
    webhooks.queue.end(claim, answered(500), START_MS);
    webhooks.queue.store.run(
      "UPDATE deliveries SET state = 'failed', next_attempt_at_ms = NULL, finished_at_ms = 1",
    );
    return String(webhooks.queue.values('SELECT id FROM deliveries')[0]?.[0]);
  }
  return { ...webhooks, audit, id, secret, noted, failed };
}

test('the audit log has every change that was made, by whom, and no path of a URL and no secret', async () => {
  using webhooks = await started();
  const { id } = webhooks;
  const deliveryId = webhooks.failed();
  await webhooks.edit(byMe, id, { description: 'mine', programs: null }, never);
  await webhooks.edit(byMe, id, { url: 'https://new.example.com/token' }, never);
  webhooks.rotate(byMe, id, '24h');
  webhooks.switchNow(byMe, id);
  webhooks.rotate(byMe, id, '1h');
  webhooks.cancelRotation(byMe, id);
  for (let i = 0; i < 2; i++) webhooks.resendAllFailed(byMe, id, 0);
  const [claim] = webhooks.queue.outbox.claim(webhooks.clock.now(), []);
  webhooks.queue.end(claim, answered(500), webhooks.clock.now());
  for (let i = 0; i < 2; i++) webhooks.resendOne(byMe, id, deliveryId);
  const tested = webhooks.sendTest(byMe, id);
  for (const verb of [webhooks.pause, webhooks.pause, webhooks.resume, webhooks.resume]) verb(byMe, id);
  for (let i = 0; i < 2; i++) webhooks.remove(byMe, id);
  expect(webhooks.noted()).toEqual([
    ['webhook.edit', { changed: ['programs', 'description'] }],
    ['webhook.edit', { changed: ['url'], host: 'new.example.com' }],
    ['webhook.rotate', { takeover: '24h' }],
    ['webhook.switch-secret', {}],
    ['webhook.rotate', { takeover: '1h' }],
    ['webhook.cancel-rotation', {}],
    ['webhook.resend-failed', { sinceMs: 0, deliveries: 1 }],
    ['webhook.resend', { deliveryId }],
    ['webhook.test', { deliveryId: 'deliveryId' in tested ? tested.deliveryId : '' }],
    ['webhook.pause', {}],
    ['webhook.resume', {}],
    ['webhook.delete', {}],
  ]);
  expect(JSON.stringify(webhooks.audit.list({ limit: 100 }))).not.toContain('whsec_');
  const [made] = webhooks.audit.list({ limit: 100, accountId: ME }).toReversed();
  const detail = { host: 'hooks.example.com', programs: 'all' };
  const by = { actorKind: 'user', actorId: 'u1', accountId: ME } as const;
  expect(made).toEqual({ id: 1, atMs: START_MS, ...by, action: 'webhook.create', subject: id, detail });
  expect(webhooks.audit.list({ limit: 9, accountId: OTHER })).toEqual([]);
});

test('rejected changes leave no entry', async () => {
  using webhooks = await started();
  const { id } = webhooks;
  await webhooks.create(byMe, { url: 'https://10.0.0.1/' }, never);
  await webhooks.edit(byMe, id, { url: 'https://10.0.0.1/' }, never);
  await webhooks.edit(byMe, id, {}, never);
  webhooks.switchNow(byMe, id);
  webhooks.cancelRotation(byMe, id);
  webhooks.resendOne(byMe, id, 'none');
  webhooks.pause(byMe, 'none');
  expect(webhooks.noted()).toEqual([]);
});

test('a change that cannot be logged is not made', async () => {
  using webhooks = await started();
  const { id, secret } = webhooks;
  const { store } = webhooks.queue;
  const before = store.query('SELECT * FROM webhooks').values();
  store.run("CREATE TRIGGER full BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'full'); END");
  const verbs = [
    () => webhooks.pause(byMe, id),
    () => webhooks.remove(byMe, id),
    () => webhooks.rotate(byMe, id, 'now'),
    () => webhooks.sendTest(byMe, id),
  ];
  for (const verb of verbs) expect(verb).toThrow('full');
  await expect(webhooks.edit(byMe, id, { description: 'x' }, never)).rejects.toThrow('full');
  await expect(webhooks.made()).rejects.toThrow('full');
  expect(store.query('SELECT * FROM webhooks').values()).toEqual(before);
  expect(webhooks.queue.states()).toEqual([]);
  expect(webhooks.signedWith(id)).toEqual([secret, undefined]);
});

import { expect, test } from 'bun:test';
import { Registry } from 'prom-client';
import { createSeal, gaugeSealedElsewhere, sealedElsewhere } from '../../../deploys/webhooks/seal.ts';
import { Secret } from '../../../shared/secret.ts';
import { random } from '../outbox/queue.ts';
import { byMe, startWebhooks, testSeal } from './started.ts';

test('webhooks whose secrets no key opens are counted, once each, and not when they are deleted', async () => {
  using webhooks = startWebhooks();
  const strange = createSeal([new Secret(Buffer.alloc(32, 9).toString('base64'))], random);
  const ids = [await webhooks.made(), await webhooks.made(), await webhooks.made()].map(({ id }) => id);
  webhooks.rotate(byMe, ids[0] ?? '', '24h');
  const { store } = webhooks.queue;
  expect(sealedElsewhere(store, testSeal)).toBe(0);
  expect(sealedElsewhere(store, strange)).toBe(3);
  webhooks.remove(byMe, ids[2] ?? '');
  expect(sealedElsewhere(store, strange)).toBe(2);
  store.run('UPDATE webhooks SET next_secret_kid = 1 WHERE next_secret_kid IS NOT NULL');
  expect(sealedElsewhere(store, testSeal)).toBe(1);
});

test('they are shown among the figures until their secrets take over anew', async () => {
  using webhooks = startWebhooks();
  const { id } = await webhooks.made();
  const { store } = webhooks.queue;
  const registry = new Registry();
  gaugeSealedElsewhere(registry, store, testSeal);
  store.run('UPDATE webhooks SET secret_kid = 1');
  expect(await registry.metrics()).toContain('\ndeploys_webhooks_unsignable 1\n');
  webhooks.rotate(byMe, id, 'now');
  expect(await registry.metrics()).toContain('\ndeploys_webhooks_unsignable 0\n');
});

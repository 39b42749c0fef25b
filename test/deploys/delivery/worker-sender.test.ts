import { expect, test } from 'bun:test';
import { internetPolicy } from '../../../deploys/delivery/policy.ts';
import { createSender } from '../../../deploys/delivery/send.ts';
import { createWorker } from '../../../deploys/delivery/worker.ts';
import { systemClock } from '../../../shared/clock.ts';
import { Secret } from '../../../shared/secret.ts';
import { startQueue } from '../outbox/queue.ts';

test('a URL of this machine that was forced into the database is blocked at the attempt, and nothing connects (E16)', async () => {
  let connections = 0;
  using inner = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: { open: () => void connections++, data: () => {} },
  });
  using queue = startQueue();
  const over = new AbortController();
  const { promise: bothEnded, resolve } = Promise.withResolvers<void>();
  let ended = 0;
  const fail = (error: unknown) => {
    throw error;
  };
  const worker = createWorker({
    outbox: queue.outbox,
    send: createSender(internetPolicy([]), systemClock),
    secretsOf: () => ({ current: new Secret('whsec'), next: undefined }),
    clock: systemClock,
    noteEnded: () => ++ended === 2 && resolve(),
    noteReaped: () => {},
    noteClockMoved: () => {},
    noteTrouble: fail,
    noteBroken: fail,
  });
  const running = worker.run(over.signal);
  for (const host of ['127.0.0.1', '[::ffff:7f00:1]']) {
    queue.addWebhook(host);
    queue.store.run('UPDATE webhooks SET url = ? WHERE id = ?', [`https://${host}:${inner.port}/`, host]);
  }
  queue.upgrade('A', 7, systemClock.now());
  worker.wake();
  await bothEnded;
  over.abort();
  await running;
  expect(queue.values('SELECT state, substr(error, 1, 8) FROM attempts')).toEqual([
    ['blocked', 'blocked_'],
    ['blocked', 'blocked_'],
  ]);
  expect(queue.states()).toEqual(['retry_scheduled', 'retry_scheduled']);
  expect(connections).toBe(0);
});

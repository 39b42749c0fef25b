import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { systemClock } from '../../../shared/clock.ts';
import { temporaryFolder } from '../../started/gateway.ts';
import { startQueue } from '../outbox/queue.ts';

test('SIGTERM during an attempt waits for its end, records it and exits 0; nothing is sent again (E22)', async () => {
  using folder = temporaryFolder();
  const path = join(folder.path, 'sluice.db');
  using queue = startQueue(path);
  queue.addWebhook('one');
  queue.upgrade('A', 7, systemClock.now());
  const child = Bun.spawn([process.execPath, join(import.meta.dir, 'stopping-child.ts'), path], {
    stdout: 'pipe',
    stderr: 'inherit',
  });
  let printed = '';
  for await (const chunk of child.stdout) {
    printed += Buffer.from(chunk).toString();
    child.kill('SIGTERM');
  }
  expect([await child.exited, child.signalCode, printed]).toEqual([0, null, 'sent\n']);
  expect(queue.values('SELECT d.state, a.state FROM deliveries d JOIN attempts a')).toEqual([
    ['delivered', 'succeeded'],
  ]);
  expect(queue.outbox.claim(systemClock.now() + 86_400_000, [])).toEqual([]);
});

import { afterEach, beforeEach, expect, test } from 'bun:test';
import { join } from 'node:path';
import { takeLock } from '../../../shared/store/lock.ts';
import { temporaryFolder } from '../../started/gateway.ts';

let folder: ReturnType<typeof temporaryFolder>;
beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(() => folder[Symbol.dispose]());

/** Another process that holds the lock `gateway` until it dies; ready when this resolves. */
async function holder() {
  const lock = JSON.stringify(join(import.meta.dir, '../../../shared/store/lock.ts'));
  const script = `
    import { takeLock } from ${lock};
    globalThis.lock = takeLock(${JSON.stringify(folder.path)}, 'gateway');
    console.log(globalThis.lock === undefined ? 'refused' : 'taken');
    process.stdin.resume();
  `;
  const child = Bun.spawn([process.execPath, '-e', script], {
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'inherit',
  });
  const { value } = await child.stdout.getReader().read();
  return { child, said: new TextDecoder().decode(value).trim() };
}

test('a lock is held by one, and by the next once it is given up', () => {
  const first = takeLock(folder.path, 'gateway');
  expect(takeLock(folder.path, 'gateway')).toBeUndefined();
  first?.release();
  const second = takeLock(folder.path, 'gateway');
  expect(second).toBeDefined();
  second?.release();
});

test('locks of different names do not meet', () => {
  const locks = [takeLock(folder.path, 'gateway'), takeLock(folder.path, 'deploys')];
  expect(locks.every((lock) => lock !== undefined)).toBe(true);
  for (const lock of locks) lock?.release();
});

test('a lock is held against another process, and kill -9 of its holder frees it', async () => {
  const { child, said } = await holder();
  expect(said).toBe('taken');
  expect(takeLock(folder.path, 'gateway')).toBeUndefined();
  const second = await holder();
  expect(second.said).toBe('refused');
  child.kill('SIGKILL');
  second.child.kill('SIGKILL');
  await Promise.all([child.exited, second.child.exited]);
  const lock = takeLock(folder.path, 'gateway');
  expect(lock).toBeDefined();
  lock?.release();
});

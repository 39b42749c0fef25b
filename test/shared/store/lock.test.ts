import { afterEach, beforeEach, expect, test } from 'bun:test';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { takeLock } from '../../../shared/store/lock.ts';
import { temporaryFolder } from '../../started/gateway.ts';

let folder: ReturnType<typeof temporaryFolder>;
beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(() => folder[Symbol.dispose]());

const HELD = (which = '') => ({
  kind: 'refused' as const,
  isHeld: true,
  sentence: `gateway is already running on the data directory ${folder.path}${which}.`,
});

/** Another process that holds the lock `gateway` until it dies; ready when this resolves. */
async function holder() {
  const lock = JSON.stringify(join(import.meta.dir, '../../../shared/store/lock.ts'));
  const script = `
    import { takeLock } from ${lock};
    globalThis.lock = takeLock(${JSON.stringify(folder.path)}, 'gateway');
    console.log(globalThis.lock.kind);
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

test('a lock is held against another process, kill -9 of its holder frees it, and other names do not meet it', async () => {
  const { child, said } = await holder();
  expect(said).toBe('locked');
  const which = existsSync('/proc/locks') ? ` (process ${child.pid})` : '';
  expect(takeLock(folder.path, 'gateway')).toEqual(HELD(which));
  const second = await holder();
  expect(second.said).toBe('refused');
  child.kill('SIGKILL');
  second.child.kill('SIGKILL');
  await Promise.all([child.exited, second.child.exited]);
  const locks = [takeLock(folder.path, 'gateway'), takeLock(folder.path, 'deploys')];
  expect(locks.map(({ kind }) => kind)).toEqual(['locked', 'locked']);
  for (const lock of locks) if (lock.kind === 'locked') lock.lock.release();
});

test('a lock without references stays held', () => {
  takeLock(folder.path, 'gateway');
  Bun.gc(true);
  expect(takeLock(folder.path, 'gateway')).toEqual(HELD());
});

test('a lock file that is none gives one sentence, not a throw', () => {
  writeFileSync(join(folder.path, 'gateway.lock'), 'x'.repeat(5_000));
  const sentence = expect.stringContaining('cannot be used');
  expect(takeLock(folder.path, 'gateway')).toMatchObject({ kind: 'refused', sentence });
});

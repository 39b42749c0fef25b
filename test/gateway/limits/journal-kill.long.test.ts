import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { LEDGER_MIGRATIONS } from '../../../gateway/ledger.ts';
import { spentOf } from '../../../shared/ledger/schema.ts';
import { opened, temporaryFolder } from '../../started/gateway.ts';

/** Lines after which each child is killed: in its first turns, and when the write-ahead log has grown. */
const KILLS = [1, 2, 7, 40, 300] as const;

test('every charge whose promise resolved is in the file after kill -9', async () => {
  using folder = temporaryFolder();
  const path = join(folder.path, 'ledger.db');
  let answeredBefore = [0, 0, 0, 0, 0];
  for (const lines of KILLS) {
    const told = await killedAfter(lines, path);
    expect(told.length).toBe(5);
    expect(Math.min(...told)).toBeGreaterThan(0);
    const store = opened(path, LEDGER_MIGRATIONS);
    const spent = told.map((_, account) => spentOf(store, account));
    store.close();
    for (const [account, answered] of told.entries()) {
      const atLeast = (answeredBefore[account] ?? 0) + answered;
      expect(spent[account]).toBeGreaterThanOrEqual(atLeast);
    }
    answeredBefore = spent;
  }
});

/** Runs a child until it has printed so many lines, kills it, and gives the last whole line it printed. */
async function killedAfter(lines: number, path: string): Promise<readonly number[]> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, 'charging-child.ts'), path], {
    stdout: 'pipe',
    stderr: 'inherit',
  });
  let printed = '';
  const decoder = new TextDecoder();
  for await (const chunk of child.stdout) {
    printed += decoder.decode(chunk, { stream: true });
    if (printed.split('\n').length > lines) child.kill('SIGKILL');
  }
  await child.exited;
  expect(child.signalCode).toBe('SIGKILL');
  const whole = printed.slice(0, printed.lastIndexOf('\n')).split('\n');
  const last: unknown = JSON.parse(whole.at(-1) ?? '[]');
  return Array.isArray(last) ? last.map(Number) : [];
}

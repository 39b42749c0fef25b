import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { temporaryFolder } from '../../started/gateway.ts';

test('a burst that was taken and written is not there again after kill -9', async () => {
  using folder = temporaryFolder();
  const path = join(folder.path, 'ledger.db');
  expect([await chargedBeforeKill(path), await chargedBeforeKill(path)]).toEqual([7, 0]);
});

/** Runs a child until it says how many calls it let in, and kills it. */
async function chargedBeforeKill(path: string): Promise<number> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, 'bursting-child.ts'), path], {
    stdout: 'pipe',
    stderr: 'inherit',
  });
  const { value } = await child.stdout.getReader().read();
  child.kill('SIGKILL');
  await child.exited;
  expect(child.signalCode).toBe('SIGKILL');
  return Number(new TextDecoder().decode(value));
}

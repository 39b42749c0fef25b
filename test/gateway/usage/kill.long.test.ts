import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { LEDGER_FILE, LEDGER_MIGRATIONS } from '../../../gateway/ledger.ts';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../../../shared/keys/schema.ts';
import { addKey, opened, temporaryFolder } from '../../started/gateway.ts';

/** Starts a gateway on the folder and kills it in the middle of its calls; gives when each of its rounds ended. */
async function killed(folder: string, key: string): Promise<number[]> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, 'serving-child.ts'), folder, key], {
    stdout: 'pipe',
    stderr: 'inherit',
  });
  let printed = '';
  let killing: Promise<void> | undefined;
  for await (const chunk of child.stdout) {
    printed += new TextDecoder().decode(chunk);
    killing ??= Bun.sleep(3_000).then(() => child.kill('SIGKILL'));
  }
  await child.exited;
  expect(child.signalCode).toBe('SIGKILL');
  return printed.split('\n').slice(0, -1).map(Number);
}

test('D8 after kill -9 a plan without a credit limit is behind by no more than a flush, and never ahead', async () => {
  using folder = temporaryFolder();
  using accounts = opened(join(folder.path, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
  const key = addKey(accounts, 'scale');
  using ledger = opened(join(folder.path, LEDGER_FILE), LEDGER_MIGRATIONS);
  const slots = ledger.query<{ n: number | null }, []>(
    "SELECT sum(calls + refused) AS n FROM usage_hours WHERE method = 'getSlot'",
  );
  let before = 0;
  for (let kill = 0; kill < 2; kill++) {
    const rounds = await killed(folder.path, key);
    // Written every second; the other one is for a machine with other work.
    const written = rounds.filter((endedMs) => endedMs < (rounds.at(-1) ?? 0) - 2_000).length;
    const now = slots.get()?.n ?? 0;
    expect(written).toBeGreaterThan(0);
    expect(now).toBeGreaterThanOrEqual(before + 3 * written);
    expect(now).toBeLessThanOrEqual(before + 3 * (rounds.length + 1));
    before = now;
  }
}, 30_000);

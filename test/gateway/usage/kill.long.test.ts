import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { LEDGER_FILE, LEDGER_MIGRATIONS } from '../../../gateway/ledger.ts';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../../../shared/keys/schema.ts';
import { addKey, opened, temporaryFolder } from '../../started/gateway.ts';

const KILLS = 20;

/** Starts a gateway on the folder and kills it `afterMs` after its first round; gives when each of its rounds ended. */
async function killedAfter(afterMs: number, folder: string, keys: readonly string[]): Promise<number[]> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, 'serving-child.ts'), folder, ...keys], {
    stdout: 'pipe',
    stderr: 'inherit',
  });
  let printed = '';
  let killing: Promise<void> | undefined;
  for await (const chunk of child.stdout) {
    printed += new TextDecoder().decode(chunk);
    // The kill falls anywhere in the work of a round.
    killing ??= Bun.sleep(afterMs).then(() => child.kill('SIGKILL'));
  }
  await child.exited;
  expect(child.signalCode).toBe('SIGKILL');
  return printed.split('\n').slice(0, -1).map(Number);
}

type Sums = { charged: number; refunded: number };

test('L18 after each of 20 kill -9 the cells say to the unit what the journal says, and never go back', async () => {
  using folder = temporaryFolder();
  using accounts = opened(join(folder.path, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
  const keys = [addKey(accounts, 'trial', 1e9), addKey(accounts, 'scale'), addKey(accounts, 'trial', 1e9)];
  using ledger = opened(join(folder.path, LEDGER_FILE), LEDGER_MIGRATIONS);
  const journal = ledger.query<Sums & { account_id: number }, []>(
    'SELECT account_id, charged, refunded FROM spent ORDER BY account_id',
  );
  const cells = ledger.query<Sums & { account_id: number }, []>(`
    SELECT account_id, sum(charged) AS charged, sum(returned) AS refunded FROM usage_hours
    GROUP BY account_id HAVING charged > 0 ORDER BY account_id`);
  // Calls that cost one credit, and of which none is refunded: their number is known from the credits.
  const slots = ledger.query<{ n: number }, []>(
    "SELECT sum(abs(calls - charged)) AS n FROM usage_hours WHERE method = 'getSlot' AND charged > 0",
  );
  const total = ledger.query<typeof before, []>(
    'SELECT sum(calls) AS calls, sum(credits) AS charged, sum(refunded) AS refunded FROM usage_hours',
  );
  let before: Sums & { calls: number } = { calls: 0, charged: 0, refunded: 0 };
  let had: readonly number[] = [];
  for (let kill = 0; kill < KILLS; kill++) {
    const rounds = await killedAfter((kill * 7) % 31, folder.path, keys);
    expect(cells.all()).toEqual(journal.all());
    expect(journal.all().length).toBe(2);
    expect(slots.get()?.n).toBe(0);
    // What was answered was durable: of each round three slots for a key.
    expect(cells.all().every(({ charged }, i) => charged >= (had[i] ?? 0) + 3 * rounds.length)).toBe(true);
    had = cells.all().map(({ charged }) => charged);
    const now = total.get() ?? before;
    expect(now.calls).toBeGreaterThan(before.calls);
    expect(now.charged).toBeGreaterThan(before.charged);
    expect(now.refunded).toBeGreaterThanOrEqual(before.refunded);
    before = now;
  }
  expect(before.refunded).toBeGreaterThan(0);
}, 30_000);

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
    const rounds = await killedAfter(3_000, folder.path, [key]);
    // Written every second; the other one is for a machine with other work.
    const written = rounds.filter((endedMs) => endedMs < (rounds.at(-1) ?? 0) - 2_000).length;
    const now = slots.get()?.n ?? 0;
    expect(written).toBeGreaterThan(0);
    expect(now).toBeGreaterThanOrEqual(before + 3 * written);
    expect(now).toBeLessThanOrEqual(before + 3 * (rounds.length + 1));
    before = now;
  }
}, 30_000);

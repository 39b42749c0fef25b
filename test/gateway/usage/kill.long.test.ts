import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { LEDGER_FILE, LEDGER_MIGRATIONS } from '../../../gateway/ledger.ts';
import { startBackend } from '../../fakes/backend.ts';
import { startAlone } from '../../started/crew.ts';
import { opened } from '../../started/gateway.ts';

test('D8 after kill -9 a plan without a credit limit is behind by no more than a flush, and never ahead', async () => {
  await using backend = startBackend();
  await using gateway = await startAlone(backend.url);
  const key = gateway.key('scale');
  /** When each call was answered. */
  const answeredMs: number[] = [];
  const load = async () => {
    for (;;) {
      await gateway.post(key); // let in or refused: both are counted
      answeredMs.push(performance.now());
    }
  };
  const loads = Promise.allSettled([load(), load()]);
  await Bun.sleep(4_000); // several flushes, and the kill falls anywhere between two
  const killedMs = performance.now();
  gateway.kill('SIGKILL');
  await loads;
  using ledger = opened(join(gateway.folder, LEDGER_FILE), LEDGER_MIGRATIONS);
  const counted = Number(ledger.query('SELECT sum(calls + refused) FROM usage_hours').values()[0]?.[0]);
  // Written every second; the other one is for a machine with other work.
  const written = answeredMs.filter((ms) => ms < killedMs - 2_000).length;
  expect(written).toBeGreaterThan(0);
  expect(counted).toBeWithin(written, answeredMs.length + 3);
}, 30_000);

/**
 * Takes a whole burst of an account, writes it down, says so, and goes on until it is killed. The rate is so low that
 * nothing comes back while a test runs.
 */
import { createBucketStore, createCharging } from '../../../gateway/limits/charge.ts';
import { createJournal } from '../../../gateway/limits/journal.ts';
import { LEDGER_MIGRATIONS } from '../../../gateway/ledger.ts';
import { systemClock } from '../../../shared/clock.ts';
import { hashOf, keyIdOf, makeApiKey } from '../../../shared/keys/api-key.ts';
import { opened } from '../../started/gateway.ts';

const store = opened(process.argv[2] ?? '', LEDGER_MIGRATIONS);
const journal = createJournal(store, 'gateway', setImmediate);
const charging = createCharging(journal, systemClock, createBucketStore(store, systemClock));
const keyId = keyIdOf(hashOf(makeApiKey((bytes) => new Uint8Array(bytes))));
const caller = { keyId, accountId: 1, plan: 'any', creditsGranted: 0 };
const plan = { rps: 0.001, burst: 7, credits: undefined, batchMax: 1, scans: 1 };

let charged = 0;
for (let i = 0; i < 10; i++) {
  const { kind } = await charging.charge(caller, plan, { calls: 1, credits: 0 });
  if (kind === 'charged') charged++;
}
charging.save(1);
console.log(charged);
await systemClock.sleep(60_000, new AbortController().signal);

/**
 * Charges without end, and prints the running total of every account after each turn whose charges resolved.
 * The test kills it in the middle: what was printed must be in the file.
 */
import { createCharging } from '../../../gateway/limits/charge.ts';
import { createJournal } from '../../../gateway/limits/journal.ts';
import { LEDGER_MIGRATIONS } from '../../../gateway/ledger.ts';
import { systemClock } from '../../../shared/clock.ts';
import { opened } from '../../started/gateway.ts';
import { callerOf, planOf } from '../usage/started.ts';

const ACCOUNTS = 5;
const PLAN = planOf(1e7, 1e7, 1);

const store = opened(process.argv[2] ?? '', LEDGER_MIGRATIONS);
const journal = createJournal(store, 'gateway', setImmediate);
const { charge } = createCharging(journal, store, systemClock);
const answered = Array.from({ length: ACCOUNTS }, () => 0);

async function spend(accountId: number, credits: number) {
  const caller = callerOf(accountId, Number.MAX_SAFE_INTEGER);
  const { kind } = await charge(caller, PLAN, { calls: 1, credits });
  if (kind === 'charged') answered[accountId] = (answered[accountId] ?? 0) + credits;
}

for (let turn = 0; ; turn++) {
  await Promise.all(Array.from({ length: 20 }, (_, i) => spend((turn + i) % ACCOUNTS, 1 + (i % 3))));
  await Bun.write(Bun.stdout, `${JSON.stringify(answered)}\n`);
}

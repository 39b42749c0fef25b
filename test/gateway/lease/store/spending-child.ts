/** Spends an account of `total` credits through a store on the ledger at `path` until there are none, and prints how many. */
import type { CreditGrant } from '../../../../gateway/lease/messages.ts';
import { createSqliteStore } from '../../../../gateway/lease/store/sqlite.ts';
import { LEDGER_MIGRATIONS } from '../../../../gateway/limits/ledger.ts';
import { systemClock } from '../../../../shared/clock.ts';
import { opened } from '../../../started/gateway.ts';
import { creditAsk, speaker } from './centres.ts';

const [path = '', name = '', total = '0'] = process.argv.slice(2);
const ledger = opened(path, LEDGER_MIGRATIONS);
const store = createSqliteStore({ ledger, clock: systemClock, onReleased: () => undefined });
let charged = 0;
let seq = 0;

async function tell(wanted: number): Promise<CreditGrant | undefined> {
  const ask = creditAsk({ total: Number(total), charged, wanted, needed: Math.min(1, wanted) });
  const [answer] = await store.credits(speaker(name, ++seq), [ask]);
  return answer?.kind === 'granted' ? answer.grant : undefined;
}

for (let over = false; !over;) {
  const grant = await tell(40);
  if (grant === undefined) continue;
  charged += grant.allowance;
  // Others may hold some still; they spend what they hold or give it back.
  over = grant.allowance === 0 && grant.available === 0 && grant.heldByOthers === 0;
}
while ((await tell(0)) === undefined) await Bun.sleep(1);
await store.close();
ledger.close();
console.log(charged);

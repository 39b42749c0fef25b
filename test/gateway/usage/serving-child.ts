/**
 * A gateway that answers calls of a key without end, alone and in batches.
 * After every round it prints how long it has run, in milliseconds; the test kills it in the middle.
 */
import { join } from 'node:path';
import { createGateway } from '../../../gateway/compose.ts';
import { LEDGER_FILE, LEDGER_MIGRATIONS } from '../../../gateway/ledger.ts';
import { systemClock } from '../../../shared/clock.ts';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../../../shared/keys/schema.ts';
import { startBackend } from '../../fakes/backend.ts';
import { JSON_HEADERS, opened, silentLog, testConfig } from '../../started/gateway.ts';

const [folder = '', key = ''] = process.argv.slice(2);
const backend = startBackend();
const gateway = createGateway({
  node: 'n1',
  config: testConfig({ backends: [{ name: 'a', url: backend.url }] }),
  accounts: opened(join(folder, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS),
  ledger: opened(join(folder, LEDGER_FILE), LEDGER_MIGRATIONS),
  clock: systemClock,
  log: silentLog(),
  random: () => 0.5,
});
void gateway.runMaintenance(() => undefined, new AbortController().signal);

const NOBODY = { requestIP: () => null, timeout: () => undefined };

const SLOT = { jsonrpc: '2.0', id: 1, method: 'getSlot' };

async function ask(call: unknown) {
  const [body, headers] = [JSON.stringify(call), { ...JSON_HEADERS, 'x-token': key }];
  const answer = await gateway.answer(new Request('http://x/', { method: 'POST', headers, body }), NOBODY);
  await answer.text();
}

for (;;) {
  await Promise.all([ask(SLOT), ask([SLOT, SLOT])]);
  await Bun.write(Bun.stdout, `${Math.round(performance.now())}\n`);
}

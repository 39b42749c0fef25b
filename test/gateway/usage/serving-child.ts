/**
 * A gateway that answers calls without end, on a plan with a credit limit and on one without, with refunds among them.
 * After every round it prints how long it has run, in milliseconds; the test kills it in the middle.
 */
import { join } from 'node:path';
import { createGateway } from '../../../gateway/compose.ts';
import { LEDGER_FILE, LEDGER_MIGRATIONS } from '../../../gateway/ledger.ts';
import { systemClock } from '../../../shared/clock.ts';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../../../shared/keys/schema.ts';
import { startBackend } from '../../fakes/backend.ts';
import { JSON_HEADERS, opened, silentLog, testConfig } from '../../started/gateway.ts';

const [folder = '', ...keys] = process.argv.slice(2);
const backend = startBackend((seen) =>
  seen.method === 'getBlock' ? new Response('down', { status: 500 }) : undefined,
);
const gateway = createGateway({
  node: 'n1',
  config: testConfig({
    backends: [{ name: 'a', url: backend.url }],
    plans: { trial: { rps: 1e7, burst: 1e7, credits: 1e9, max_batch: 20 } },
  }),
  accounts: opened(join(folder, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS),
  ledger: opened(join(folder, LEDGER_FILE), LEDGER_MIGRATIONS),
  clock: systemClock,
  log: silentLog(),
  random: () => 0.5,
});
void gateway.runMaintenance(() => undefined, new AbortController().signal);

const NOBODY = { requestIP: () => null, timeout: () => undefined };

async function ask(key: string, ...methods: readonly string[]) {
  const calls = methods.map((method) => ({ jsonrpc: '2.0', id: 1, method }));
  const body = JSON.stringify(calls.length === 1 ? calls[0] : calls);
  const headers = { ...JSON_HEADERS, 'x-token': key };
  const answer = await gateway.answer(new Request('http://x/', { method: 'POST', headers, body }), NOBODY);
  await answer.text();
}

for (;;) {
  await Promise.all(
    keys.flatMap((key) => [
      ask(key, 'getSlot'),
      ask(key, 'getBlock'),
      ask(key, 'getProgramAccounts', 'getBlock', 'getNothing'),
      ask(key, 'getSlot', 'getSlot'),
    ]),
  );
  await Bun.write(Bun.stdout, `${Math.round(performance.now())}\n`);
}

import { expect, setDefaultTimeout, test } from 'bun:test';
import { join } from 'node:path';
import { childEnv, ROOT } from '../started/process.ts';

setDefaultTimeout(120_000);

/** Runs the short forms of scenarios of `bun run soak`: real processes, sockets and stores, and bounds that a busy machine keeps too. */
async function soaked(...names: readonly string[]) {
  const words = ['--form', 'short', '--only', names.join(), '--json', '-'];
  const child = Bun.spawn([process.execPath, join(ROOT, 'bench/self/soak.ts'), ...words], {
    env: childEnv(),
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'ignore',
  });
  const { tables }: { tables: string[][][] } = JSON.parse(await child.stdout.text());
  const judged = tables.flat().filter(([, , , verdict]) => verdict === 'holds' || verdict === 'BREACH');
  expect(judged.length).toBeGreaterThan(names.length);
  return {
    code: await child.exited,
    scenarios: tables.length,
    breaches: judged.filter((row) => row[3] === 'BREACH'),
  };
}
const clean = (scenarios: number) => ({ code: 0, scenarios, breaches: [] });

test.each(['sqlite', 'redis'])(
  'L7 L18 D1 D2 after ten kill -9 under load ledger, journals and usage agree to the unit, and 402 comes at the last credit: %s',
  async (centre) => expect(await soaked(`kills-${centre}`)).toEqual(clean(1)),
);

test.each([
  ['L1 C1 C5 a hundred a second by a Redis', 'rate-100-redis'],
  ['L3 C1 five a second', 'rate-5-sqlite'],
])(
  'four processes at ten times the rate let in one burst, the rate and their debts: %s',
  async (_, scenario) => expect(await soaked(scenario)).toEqual(clean(1)),
);

test('L12 L14 a flood of refused calls costs the centre five messages a second and process, and starves none', async () => {
  expect(await soaked('flood')).toEqual(clean(1));
});

test('L1 L11 by the ledger too; a process that stood still spends nothing that it held when it stopped', async () => {
  expect(await soaked('suspended-sqlite')).toEqual(clean(1));
});

test.concurrent.each(['killed', 'stopped', 'black-holed'])(
  'L6 C6 E4 while Redis is %s a plan keeps its rate, a trial is 503 and never 402, and all is well again without a restart',
  async (kind) => expect(await soaked(`outage-${kind}`)).toEqual(clean(1)),
);

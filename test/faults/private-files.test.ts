import { afterEach, beforeEach, expect, setDefaultTimeout, test } from 'bun:test';
import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { begin, gone, installation, processesOf } from '../cli/installation.ts';
import { MAIN } from '../cli/sluice.ts';

let installed: Awaited<ReturnType<typeof installation>>;
beforeEach(async () => {
  installed = await installation();
  const text = readFileSync(installed.config, 'utf8');
  writeFileSync(installed.config, text.replace('[gateway]\n', '[gateway]\nprocesses = 2\n'));
});
afterEach(async () => {
  for (const pid of processesOf(installed)) process.kill(pid, 'SIGKILL');
  await gone(installed);
  installed[Symbol.dispose]();
});

setDefaultTimeout(60_000);

/** Starts everything where new files are open to everybody unless a program says otherwise. */
async function startOpenHanded() {
  const command = ['sh', '-c', 'umask 000; exec "$0" "$@"', process.execPath, MAIN, 'start'];
  const started = begin(installed, { command });
  expect(await started.ready).toContain('Ctrl-C stops everything');
  return started;
}

async function stop(started: Awaited<ReturnType<typeof startOpenHanded>>): Promise<void> {
  process.kill(-started.pid, 'SIGINT');
  expect(await started.ended).toMatchObject({ code: 0 });
}

const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);
const modes = () =>
  Object.fromEntries(
    readdirSync(installed.dataDir).map((name) => [name, modeOf(join(installed.dataDir, name))]),
  );

/** The files of one that runs, all for their owner alone. */
const OWN = Object.fromEntries(
  `sluice.db sluice.db-wal sluice.db-shm ledger.db ledger.db-wal ledger.db-shm localnet.db localnet.db-wal
   localnet.lock secret demo-key gateway.lock gateway-1.lock gateway-2.lock deploys.lock gateway-1.node gateway-2.node
   gateway.log deploys.log localnet.log`
    .split(/\s+/)
    .map((name) => [name, '600']),
);

test('M4 the data directory and every file in it are their owner’s alone, whatever the umask', async () => {
  const started = await startOpenHanded();
  expect(modeOf(installed.dataDir)).toBe('700');
  expect(modes()).toMatchObject(OWN);
  expect(Object.values(modes()).every((mode) => mode === '600')).toBe(true);
  await stop(started);
});

test('M4 a data directory of before, open to others, is closed with its files at the next start', async () => {
  await stop(await startOpenHanded());
  const { dataDir } = installed;
  chmodSync(dataDir, 0o755);
  for (const name of readdirSync(dataDir)) chmodSync(join(dataDir, name), 0o644);
  const started = await startOpenHanded();
  expect(modeOf(dataDir)).toBe('700');
  const { 'gateway-1.node': _1, 'gateway-2.node': _2, ...others } = OWN; // ids that are no secret
  expect(modes()).toMatchObject(others);
  await stop(started);
});

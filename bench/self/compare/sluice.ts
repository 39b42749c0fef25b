import { Database } from 'bun:sqlite';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { ROOT } from '../../../test/started/process.ts';
import type { Store } from '../../../shared/store/open.ts';
import { addAccounts, keyAt } from '../many-keys.ts';
import { coresFor, run, startChild } from './machine.ts';
import type { Running, Setup, Subject } from './peers.ts';
import { freePort } from '../../../test/started/ports.ts';

/** A folder with the project as it was at one commit. */
type Checkout = Readonly<{ path: string; commit: string }> & AsyncDisposable;

/** The plans of the keys that every subject with keys is given. */
const PLANS = { paid: 'bench', slow: 'slow', spent: 'spent' } as const;

const MAIN = 'gateway/main.ts';

/** The project at `ref`, in a worktree under `folder`; a path to a checkout is taken as it is. */
export async function checkoutOf(ref: string, folder: string, signal: AbortSignal): Promise<Checkout> {
  if (existsSync(join(ref, MAIN))) {
    const path = resolve(ref);
    const commit = await run(['git', 'describe', '--always', '--dirty=+', '--exclude=*'], { cwd: path });
    return { path, commit: commit.trim(), async [Symbol.asyncDispose]() {} };
  }
  const commit = (await run(['git', 'rev-parse', '--short', `${ref}^{commit}`], { cwd: ROOT })).trim();
  const path = join(folder, commit);
  await run(['git', 'worktree', 'add', '--detach', path, commit], { cwd: ROOT, timeoutMs: 60_000 });
  const install = [process.execPath, 'install', '--frozen-lockfile'];
  await run(install, { cwd: path, signal, timeoutMs: 120_000 });
  return {
    path,
    commit,
    async [Symbol.asyncDispose]() {
      await run(['git', 'worktree', 'remove', '--force', path], { cwd: ROOT });
    },
  };
}

/** Writes the `key plan` lines that subjects are started with: `count` paid keys, then one slow and one spent. */
export function writeKeys(path: string, count: number): void {
  const planAt = (id: number) => (id <= count ? PLANS.paid : id === count + 1 ? PLANS.slow : PLANS.spent);
  const lines = Array.from({ length: count + 2 }, (_, i) => `${keyAt(i + 1)} ${planAt(i + 1)}\n`);
  writeFileSync(path, lines.join(''));
}

/** The gateway of a checkout, as its `gateway/main.ts` is started by hand. */
export function sluiceSubject(name: string, checkout: Checkout): Subject {
  return {
    name,
    version: `Sluice ${checkout.commit}, Bun ${Bun.version}`,
    checks: 'keys and credits',
    lacks: '',
    start: (setup) => startSluice(checkout, setup),
  };
}

async function startSluice({ path }: Checkout, setup: Setup): Promise<Running> {
  const { folder, backends, processes, priority } = setup;
  const config = join(folder, 'sluice.toml');
  const tables = backends.map(
    (port, i) =>
      `[[backends]]\nname = "b${i}"\nurl = "http://127.0.0.1:${port}"\nlanes = ["state", "scan"]\nmax_connections = 4096\n`,
  );
  writeFileSync(
    config,
    `[storage]\ndata_dir = "${folder}"\n` +
      `[gateway]\nlisten = "127.0.0.1:${freePort()}"\nmetrics = "127.0.0.1:0"\nprocesses = ${processes}\n${tables.join('')}` +
      `[plans.${PLANS.paid}]\nrps = 10_000_000\nburst = 10_000_000\nscans = 2048\nmax_batch = 500\n` +
      `[plans.${PLANS.slow}]\nrps = 1\nburst = 1\n[plans.${PLANS.spent}]\nrps = 5\nburst = 10\ncredits = 1\n`,
  );
  // The checkout's own command makes the database, whatever its schema is.
  await run([process.execPath, join(path, 'cli/main.ts'), 'account', 'create', 'first', '--config', config], {
    cwd: folder,
  });
  addKeys(join(folder, 'sluice.db'), readFileSync(setup.keys, 'utf8').trimEnd().split('\n').length);
  const child = await startChild({
    command: [process.execPath, join(path, MAIN), '--config', config],
    cores: coresFor(processes),
    cwd: folder,
    env: { SLUICE_SUPERVISED: '1' },
    priority,
    ready: /"ready":"[a-z]+","url":"http:\/\/[^:]+:(\d+)/,
  });
  return {
    port: Number(child.line),
    pid: child.pid,
    [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
  };
}

function addKeys(path: string, count: number): void {
  const database = new Database(path);
  database.run('DELETE FROM accounts'); // the one that the database was made with
  addAccounts(database as Store, PLANS.paid, count); // a Store is a Database whose schema is known, as this one's is
  database.run('UPDATE accounts SET plan = ? WHERE id = ?', [PLANS.slow, count - 1]);
  database.run('UPDATE accounts SET plan = ?, credits_granted = 0 WHERE id = ?', [PLANS.spent, count]);
  database.close();
}

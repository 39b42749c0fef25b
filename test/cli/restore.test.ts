import { Database } from 'bun:sqlite';
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from 'bun:test';
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LEDGER_FILE, LEDGER_MIGRATIONS } from '../../gateway/ledger.ts';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../../shared/keys/schema.ts';
import { opened, temporaryFolder } from '../started/gateway.ts';
import { run as runCommand } from '../../cli/run.ts';
import { systemClock } from '../../shared/clock.ts';
import { takeLock } from '../../shared/store/lock.ts';
import { sluiceAlone } from './sluice.ts';

setDefaultTimeout(20_000);
let [from, to]: ReturnType<typeof temporaryFolder>[] = [];
beforeEach(() => {
  [from, to] = [temporaryFolder(), temporaryFolder()];
  writeFileSync(join(to.path, 'sluice.toml'), `[storage]\ndata_dir = "${to.path}"\n`);
});
afterEach(() => {
  from?.[Symbol.dispose]();
  to?.[Symbol.dispose]();
});

/** The databases of a host with so many accounts, the ledger with credits spent by them; kept open, or closed. */
function host(folder: string, accounts: number) {
  const store = opened(join(folder, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
  // Without statements of its own: the runtime lets go of a file only when these are collected.
  for (let id = 1; id <= accounts; id++) {
    store.run("INSERT INTO accounts (id, name, plan, created_at_ms) VALUES (?, ?, 'scale', 1)", [
      id,
      `${id}`,
    ]);
    store.run(
      "INSERT INTO keys (id, account_id, name, hash, prefix, last4, created_at_ms) VALUES (?1, ?2, '', CAST(?1 AS BLOB), '', '', 1)",
      [`k${id}`, id],
    );
  }
  const ledger = opened(join(folder, LEDGER_FILE), LEDGER_MIGRATIONS);
  if (accounts > 0) ledger.run("INSERT INTO spent VALUES (1, 'n', ?, 3)", [10 * accounts]);
  writeFileSync(join(folder, 'secret'), `secret of ${accounts}\n`, { mode: 0o600 });
  writeFileSync(join(folder, 'gateway-1.node'), '0b0e8f1c-3c1c-4c38-8a4e-000000000000\n');
  return () => {
    store.close();
    ledger.close();
  };
}

const run = (...args: string[]) => sluiceAlone(to?.path ?? '', ['restore', from?.path ?? '', ...args]);
const count = (folder: string, file: string, sql: string) => {
  using database = new Database(join(folder, file));
  return Object.values(database.query<Record<string, number>, []>(sql).get() ?? {})[0];
};
const accountsIn = (folder: string) => count(folder, ACCOUNTS_FILE, 'SELECT count(*) FROM accounts');

test('M24 a copy is put in place, with its log, for its owner alone', async () => {
  const [source, target] = [from?.path ?? '', to?.path ?? ''];
  host(source, 2)();
  expect(await run()).toEqual({
    code: 0,
    out: `Restored ${ACCOUNTS_FILE}, ${LEDGER_FILE}, secret into ${target}.\n`,
    err: '',
  });
  expect(accountsIn(target)).toBe(2);
  expect(count(target, LEDGER_FILE, 'SELECT sum(charged) FROM spent')).toBe(20);
  expect(readFileSync(join(target, 'secret'), 'utf8')).toBe('secret of 2\n');
  expect(existsSync(join(target, 'gateway-1.node'))).toBe(false);
  opened(join(target, LEDGER_FILE), LEDGER_MIGRATIONS).close();
  expect(statSync(join(target, LEDGER_FILE)).mode & 0o077).toBe(0);
});

test('M24 what would be overwritten is said and stays; with --overwrite it is put aside', async () => {
  const [source, target] = [from?.path ?? '', to?.path ?? ''];
  host(source, 2)();
  host(target, 3)();
  const said = await run();
  expect([said.code, said.err]).toEqual([
    1,
    [
      `This would replace in ${target}:`,
      `  ${ACCOUNTS_FILE}: 3 accounts`,
      `  ${ACCOUNTS_FILE}: 3 keys`,
      `  ${LEDGER_FILE}: 27 credits spent`,
      '  gateway-1.node: these processes start as new nodes, and the credits that they hold return after a day',
      'Nothing was changed. With --overwrite these files are moved to a new folder there, replaced-TIME, and replaced.',
      '',
    ].join('\n'),
  ]);
  expect(accountsIn(target)).toBe(3);
  const done = await run('--overwrite', '--json');
  const { aside } = JSON.parse(done.out) as { aside: string }; // as the command prints it
  expect(done.code).toBe(0);
  expect([accountsIn(target), accountsIn(aside)]).toEqual([2, 3]);
  expect(readFileSync(join(aside, 'secret'), 'utf8')).toBe('secret of 3\n');
  expect(readdirSync(aside)).toContain('gateway-1.node');
  expect(existsSync(join(target, 'gateway-1.node'))).toBe(false);
});

test.each(['the copy', 'the data directory'])(
  'M24 nothing is done while a process has %s open',
  async (which) => {
    const [source, target] = [from?.path ?? '', to?.path ?? ''];
    const [closeSource, closeTarget] = [host(source, 2), host(target, 3)];
    if (which === 'the copy') closeTarget();
    else closeSource();
    const at = which === 'the copy' ? source : target;
    const { code, err } = await run('--overwrite');
    expect([code, err]).toEqual([
      1,
      [ACCOUNTS_FILE, LEDGER_FILE]
        .map((file) => `${join(at, file)} is open in another process; stop every app that uses it.\n`)
        .join(''),
    ]);
    if (which === 'the copy') closeSource();
    else closeTarget();
    expect(accountsIn(target)).toBe(3);
  },
);

test.each(['deploys', 'gateway', 'gateway-3'])(
  'M24 nothing is done while %s runs on the data directory, whatever it has open',
  async (app) => {
    const [source, target] = [from?.path ?? '', to?.path ?? ''];
    host(source, 2)();
    host(target, 3)();
    const locking = takeLock(target, app);
    const { code, err } = await run('--overwrite');
    expect([code, err]).toEqual([
      1,
      `${app} is already running on the data directory ${target} (process ${process.pid}). Stop it first; nothing was changed.\n`,
    ]);
    if (locking.kind === 'locked') locking.lock.release();
    expect(accountsIn(target)).toBe(3);
  },
);

test('M24 no app starts while it works', async () => {
  const [source, target] = [from?.path ?? '', to?.path ?? ''];
  host(source, 2)();
  host(target, 3)();
  let kinds: readonly string[] = [];
  // Asked for the name of the folder for what stood there, after the copies were made and before they are in place.
  const now = () => {
    kinds = ['start', 'deploys', 'gateway'].map((app) => takeLock(target, app).kind);
    return 0;
  };
  const argv = ['restore', source, '--overwrite', '--config', join(target, 'sluice.toml')];
  const said: string[] = [];
  const code = await runCommand({
    argv,
    env: {},
    root: target,
    clock: { ...systemClock, now },
    random: (bytes) => new Uint8Array(bytes),
    line: () => Promise.resolve(''),
    out: (text) => said.push(text),
    hasRoom: () => Promise.resolve(true),
    err: (text) => said.push(text),
  });
  expect([code, kinds, said.length]).toEqual([0, ['refused', 'refused', 'refused'], 1]);
  const after = takeLock(target, 'deploys');
  if (after.kind === 'locked') after.lock.release();
  expect(after.kind).toBe('locked');
});

test('M24 what is still to be done is said: a secret that the copy has not, and Redis that may know of a later one', async () => {
  const [source, target] = [from?.path ?? '', to?.path ?? ''];
  host(source, 2)();
  rmSync(join(source, 'secret'));
  const config = `[storage]\ndata_dir = "${target}"\nredis = "redis://127.0.0.1:1"\n`;
  writeFileSync(join(target, 'sluice.toml'), config);
  const { out } = await run();
  expect(out.split('\n').slice(1, 3)).toEqual([
    `Note: ${source} has no file "secret". Webhooks and two-factor codes of this copy work only under the secret that they were encrypted with: storage.secret, or the file "secret" in ${target}.`,
    'Note: if deploys has published anything later than this copy, it refuses it until you run: bun run sluice deploys take-over',
  ]);
});

test('M24 the data directory itself is no copy', async () => {
  const target = to?.path ?? '';
  host(target, 3)();
  const { code, err } = await sluiceAlone(target, ['restore', '.', '--overwrite']);
  expect([code, err]).toEqual([
    1,
    `${target} cannot be restored (it is the data directory itself); nothing was changed.\n`,
  ]);
});

test('M24 a copy that is missing or damaged changes nothing', async () => {
  const [source, target] = [from?.path ?? '', to?.path ?? ''];
  host(target, 3)();
  // Said first: what would be overwritten is of no interest then.
  for (const options of [[], ['--overwrite']])
    expect((await run(...options)).err).toBe(
      `${source} cannot be restored (${join(source, ACCOUNTS_FILE)} does not exist); nothing was changed.\n`,
    );
  host(source, 2)();
  writeFileSync(join(source, LEDGER_FILE), readFileSync(join(source, LEDGER_FILE)).fill(7, 4_096));
  const { code, err } = await run('--overwrite');
  expect(code).toBe(1);
  expect(err).toEndWith('; nothing was changed.\n');
  expect(accountsIn(target)).toBe(3);
  expect(readdirSync(target).filter((name) => name.endsWith('.new'))).toEqual([]);
});

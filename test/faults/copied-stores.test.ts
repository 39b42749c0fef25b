import { Database } from 'bun:sqlite';
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { copyFileSync, existsSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LEDGER_FILE, LEDGER_MIGRATIONS } from '../../gateway/ledger.ts';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../../shared/keys/schema.ts';
import { openStore } from '../../shared/store/open.ts';
import { startBackend } from '../fakes/backend.ts';
import { addKey, opened, temporaryFolder } from '../started/gateway.ts';
import { startProcess } from '../started/process.ts';
import { until } from '../started/stack.ts';
import { startCrew } from '../started/crew.ts';

setDefaultTimeout(30_000);

let backend: ReturnType<typeof startBackend>;
beforeEach(() => void (backend = startBackend()));
afterEach(() => backend[Symbol.asyncDispose]());

const FILES = [
  [ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS],
  [LEDGER_FILE, LEDGER_MIGRATIONS],
] as const;

/** The databases of another host, closed as after a stop. */
function otherHost() {
  const folder = temporaryFolder();
  for (const [file, migrations] of FILES) {
    const store = opened(join(folder.path, file), migrations);
    if (file === ACCOUNTS_FILE) addKey(store, 'scale');
    store.close();
  }
  return folder;
}

/** Takes the id out of a store, which those of earlier releases have not. */
function withoutId(path: string) {
  using store = new Database(path);
  store.run('PRAGMA application_id = 0');
}

const HOW = 'stop every app, delete its -wal and -shm files, copy it again, and start them';

describe('M23 a database that was copied over an open one', () => {
  test.each(FILES)('M23 is not opened, and its gateway says so: %s', async (file, migrations) => {
    using other = otherHost();
    await using crew = await startCrew({ backendUrl: backend.url, processes: 2 });
    const key = crew.key();
    await until(async () => (await crew.health()) === '200 ok' && (await crew.statusOf(key)) === 200);
    const path = join(crew.folder, file);
    copyFileSync(join(other.path, file), path);
    expect(openStore(path, migrations)).toEqual({
      kind: 'unusable',
      sentence: `The database ${path} was copied over one that another process has open; ${HOW}.`,
    });
    await until(async () =>
      (await crew.health()).includes(`${file} was copied over under this process (${HOW})`),
    );
    // As it says.
    crew.kill('SIGTERM');
    await crew.exited;
    for (const suffix of ['-wal', '-shm']) rmSync(`${path}${suffix}`, { force: true });
    copyFileSync(join(other.path, file), path);
    await using again = await startProcess(crewConfigOf(crew), crew.folder);
    const said = await fetch(new URL('/health', again.url));
    expect(said.status).toBe(200);
  });

  const crewConfigOf = ({ config }: { config: string }) => [
    join(import.meta.dir, '../../gateway/main.ts'),
    '--config',
    config,
  ];

  test.each<[string, (path: string, other: string) => void]>([
    [
      'that of an earlier release, which has no id',
      (path, other) => (withoutId(other), copyFileSync(other, path)),
    ],
    ['no database', (path) => writeFileSync(path, 'no database '.repeat(1_000))],
  ])('M23 is not opened either when it is %s', async (_, overwrite) => {
    using other = otherHost();
    await using crew = await startCrew({ backendUrl: backend.url, processes: 1 });
    const key = crew.key();
    await until(async () => (await crew.health()) === '200 ok' && (await crew.statusOf(key)) === 200);
    const path = join(crew.folder, LEDGER_FILE);
    overwrite(path, join(other.path, LEDGER_FILE));
    expect(openStore(path, LEDGER_MIGRATIONS)).toMatchObject({
      sentence: `The database ${path} was copied over one that another process has open; ${HOW}.`,
    });
    await until(async () =>
      (await crew.health()).includes(`${LEDGER_FILE} was copied over under this process (${HOW})`),
    );
  });

  test.skipIf(!existsSync('/proc/locks'))(
    'M23 is not opened either when another file was moved to its place, be it a copy of the same',
    async () => {
      using other = otherHost();
      await using crew = await startCrew({ backendUrl: backend.url, processes: 1 });
      const key = crew.key();
      await until(async () => (await crew.health()) === '200 ok' && (await crew.statusOf(key)) === 200);
      const path = join(crew.folder, LEDGER_FILE);
      const same = join(other.path, 'same.db');
      using ledger = opened(path, LEDGER_MIGRATIONS);
      ledger.run('VACUUM INTO ?', [same]);
      ledger.close();
      for (const moved of [same, join(other.path, LEDGER_FILE)]) {
        renameSync(moved, path);
        expect(openStore(path, LEDGER_MIGRATIONS)).toMatchObject({
          sentence: `The database ${path} was copied over one that another process has open; ${HOW}.`,
        });
      }
    },
  );

  test.each([true, false])(
    'M23 is opened when no process has it, whatever it replaces (id: %p)',
    async (has) => {
      using other = otherHost();
      using folder = temporaryFolder();
      for (const [file, migrations] of FILES) {
        const path = join(folder.path, file);
        opened(path, migrations).close();
        if (!has) withoutId(join(other.path, file));
        copyFileSync(join(other.path, file), path);
        const store = opened(path, migrations);
        expect(store.query('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' });
        store.close();
      }
    },
  );
});

import { Database } from 'bun:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ACCOUNTS_FILE } from '../../shared/keys/schema.ts';
import { LEDGER_FILE } from '../../shared/ledger/schema.ts';
import { temporaryFolder } from '../started/gateway.ts';
import { freePort } from '../started/ports.ts';
import { ROOT, runToEnd } from '../started/process.ts';

let folder: ReturnType<typeof temporaryFolder>;
let data: string;
beforeEach(() => {
  folder = temporaryFolder();
  data = join(folder.path, 'data');
});
afterEach(() => folder[Symbol.dispose]());

/** The ends of every entry point on the same data directory, in which nothing can be done. */
const ENTRIES = {
  gateway: ['gateway/main.ts'],
  deploys: ['deploys/main.ts'],
  'account list': ['cli/main.ts', 'account', 'list'],
  'account create': ['cli/main.ts', 'account', 'create', 'b'],
};

async function run(args: readonly string[]) {
  const config = join(folder.path, 'sluice.toml');
  const listeners = () => `listen = "127.0.0.1:${freePort()}"\nmetrics = "127.0.0.1:${freePort()}"\n`;
  writeFileSync(
    config,
    `[gateway]\n${listeners()}[deploys]\n${listeners()}rpc_urls = ["http://127.0.0.1:1"]\n` +
      `[storage]\ndata_dir = "${data}"\n[[backends]]\nname = "a"\nurl = "http://127.0.0.1:1"\n`,
  );
  const [main = '', ...rest] = args;
  const { code, stderr } = await runToEnd([join(ROOT, main), ...rest, '--config', config], folder.path);
  return { code, stderr: stderr.replaceAll(folder.path, 'FOLDER') };
}

const makeStores = () => run(['cli/main.ts', 'account', 'create', 'a']);

function change(file: string, sql: string): void {
  using database = new Database(join(data, file));
  database.run(sql);
}

describe('a newer database than the code is refused with a sentence', () => {
  const FORMAT = (file: string) =>
    `The database FOLDER/data/${file} has format 99 and this Sluice knows 2: a newer one has run on it. Run that, or put back a backup from before it.\n`;
  test.each(Object.entries(ENTRIES))('M2 of the accounts, by %s', async (_name, args) => {
    await makeStores();
    change(ACCOUNTS_FILE, 'PRAGMA user_version = 99');
    expect(await run(args)).toEqual({ code: 1, stderr: FORMAT(ACCOUNTS_FILE) });
  });
  test.each(Object.entries(ENTRIES))('M2 of the ledger, by %s', async (_name, args) => {
    await makeStores();
    change(LEDGER_FILE, 'PRAGMA user_version = 99');
    expect(await run(args)).toEqual({ code: 1, stderr: FORMAT(LEDGER_FILE) });
  });
  test.each(['deploys', 'account list'] as const)('M2 with a change that is unknown, by %s', async (name) => {
    await makeStores();
    change(ACCOUNTS_FILE, "INSERT INTO migrations VALUES ('accounts-99', 'later')");
    expect(await run(ENTRIES[name])).toEqual({
      code: 1,
      stderr:
        'The database FOLDER/data/sluice.db has the change "accounts-99", which this Sluice does not know: a newer one has run on it. Run that, or put back a backup from before it.\n',
    });
  });
});

test('M2 a new change to a schema raises the format, by which a part of the apps knows it', async () => {
  await makeStores();
  const known = [ACCOUNTS_FILE, LEDGER_FILE].map((file) => {
    using database = new Database(join(data, file));
    const count = database.query<{ n: number }, []>('SELECT count(*) AS n FROM migrations').get()?.n;
    const format = database.query<{ user_version: number }, []>('PRAGMA user_version').get()?.user_version;
    return { format, migrations: count };
  });
  expect(known).toEqual([
    { format: 2, migrations: 27 },
    { format: 2, migrations: 8 },
  ]);
});

describe('what cannot be read or written is a sentence, not a stack', () => {
  test.each(Object.entries(ENTRIES))('M3 a folder in the place of a database, by %s', async (_name, args) => {
    mkdirSync(join(data, ACCOUNTS_FILE), { recursive: true });
    expect(await run(args)).toEqual({
      code: 1,
      stderr: 'The database FOLDER/data/sluice.db cannot be opened (it is a folder).\n',
    });
  });

  test.each(Object.entries(ENTRIES))(
    'M3 a file in the place of the data directory, by %s',
    async (_name, args) => {
      writeFileSync(data, '');
      const { code, stderr } = await run(args);
      expect([code, stderr]).toEqual([
        1,
        expect.stringMatching(/^The data.* \(a part of its path is no folder\)\.\n$/),
      ]);
    },
  );

  test('M3 a change that the database refuses half-way', async () => {
    await makeStores();
    change(
      ACCOUNTS_FILE,
      "CREATE TRIGGER full BEFORE INSERT ON keys BEGIN SELECT RAISE(FAIL, 'disk is full'); END",
    );
    expect(await run(['cli/main.ts', 'key', 'create', 'a'])).toEqual({
      code: 1,
      stderr: 'A database could not be read or written (disk is full).\n',
    });
  });

  test('M3 a folder in the place of the log that start keeps; what runs already is stopped', async () => {
    await makeStores();
    mkdirSync(join(data, 'gateway.log'));
    const { code, stderr } = await run(['cli/main.ts', 'start']);
    expect([code, stderr.split('\n').at(-2)]).toEqual([
      1,
      'The file FOLDER/data/gateway.log could not be used (it is a folder).',
    ]);
    rmSync(join(data, 'gateway.log'), { recursive: true });
  });
});

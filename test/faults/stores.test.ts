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

let configs = 0;
async function run(args: readonly string[]) {
  const config = join(folder.path, `sluice-${++configs}.toml`);
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

/** Runs every entry point at once; gives those that did not end with 1 and this sentence, beside what they said. */
async function othersThan(stderr: string, names = Object.keys(ENTRIES) as (keyof typeof ENTRIES)[]) {
  const ends = await Promise.all(names.map(async (name) => ({ name, ...(await run(ENTRIES[name])) })));
  return ends.filter((end) => end.code !== 1 || end.stderr !== stderr);
}

const makeStores = () => run(['cli/main.ts', 'account', 'create', 'a']);

function change(file: string, sql: string): void {
  using database = new Database(join(data, file));
  database.run(sql);
}

test('M2 a newer database than the code is refused with a sentence, by whatever opens it', async () => {
  await makeStores();
  const remedy = 'a newer one has run on it. Run that, or put back a backup from before it.\n';
  for (const file of [ACCOUNTS_FILE, LEDGER_FILE]) {
    change(file, 'PRAGMA user_version = 99');
    const sentence = `The database FOLDER/data/${file} has format 99 and this Sluice knows 2: ${remedy}`;
    expect(await othersThan(sentence)).toEqual([]);
    change(file, 'PRAGMA user_version = 2');
  }
  change(ACCOUNTS_FILE, "INSERT INTO migrations VALUES ('accounts-99', 'later')");
  const unknown = 'has the change "accounts-99", which this Sluice does not know';
  const sentence = `The database FOLDER/data/${ACCOUNTS_FILE} ${unknown}: ${remedy}`;
  expect(await othersThan(sentence, ['deploys', 'account list'])).toEqual([]);
}, 30_000);

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
  test('M3 a folder in the place of a database, and a file in that of the data directory', async () => {
    mkdirSync(join(data, ACCOUNTS_FILE), { recursive: true });
    const sentence = 'The database FOLDER/data/sluice.db cannot be opened (it is a folder).\n';
    expect(await othersThan(sentence)).toEqual([]);
    rmSync(data, { recursive: true });
    writeFileSync(data, '');
    for (const args of Object.values(ENTRIES)) {
      const { code, stderr } = await run(args);
      const wanted = expect.stringMatching(/^The data.* \(a part of its path is no folder\)\.\n$/);
      expect([args, code, stderr]).toEqual([args, 1, wanted]);
    }
  }, 30_000);

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

import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { existsSync, mkdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Migrations, openStore } from '../../../shared/store/open.ts';
import { temporaryFolder } from '../../started/gateway.ts';

const FIRST: Migrations = { one: 'CREATE TABLE a (x INTEGER); INSERT INTO a VALUES (1);' };
const BOTH: Migrations = { ...FIRST, two: 'INSERT INTO a VALUES (2);' };

let folder: ReturnType<typeof temporaryFolder>;
let path: string;
beforeEach(() => {
  folder = temporaryFolder();
  path = join(folder.path, 'deep/er/test.db');
});
afterEach(() => folder[Symbol.dispose]());

function opened(migrations: Migrations) {
  const result = openStore(path, migrations);
  if (result.kind === 'unusable') throw new Error(result.sentence);
  return result.store;
}

function rowsOf(store: ReturnType<typeof opened>) {
  return store
    .query<{ x: number }, []>('SELECT x FROM a ORDER BY x')
    .all()
    .map(({ x }) => x);
}

describe('opening a store', () => {
  test('makes the file with its folders, in WAL mode, with foreign keys held and a wait for other writers', () => {
    using store = opened(FIRST);
    const pragma = (name: string) => Object.values(store.query<object, []>(`PRAGMA ${name}`).get() ?? {})[0];
    expect([pragma('journal_mode'), pragma('foreign_keys'), pragma('busy_timeout')]).toEqual([
      'wal',
      1,
      5_000,
    ]);
  });

  test('applies every migration once, and new ones to an old file', () => {
    opened(FIRST).close();
    opened(FIRST).close();
    using store = opened(BOTH);
    expect(rowsOf(store)).toEqual([1, 2]);
    expect(store.query('SELECT name FROM migrations ORDER BY name').all()).toEqual([
      { name: 'one' },
      { name: 'two' },
    ]);
  });

  // The four wait for one moment, and there are several rounds: without a wait in the switch to WAL, one round in
  // seven failed.
  test('by four processes at once, again and again, migrates once, and loses none of their writes', async () => {
    const script = `
      import { openStore } from ${JSON.stringify(join(import.meta.dir, '../../../shared/store/open.ts'))};
      process.stdout.write('ready');
      for await (const line of console) {
        if (line === '') break; // the end of its input
        const result = openStore(line, ${JSON.stringify(FIRST)});
        if (result.kind === 'unusable') throw new Error(result.sentence);
        for (let i = 0; i < 20; i++) result.store.run('INSERT INTO a VALUES (5)');
        result.store.close();
        process.stdout.write('written');
      }
    `;
    const children = Array.from({ length: 4 }, () => {
      const child = Bun.spawn([process.execPath, '-e', script], {
        stdin: 'pipe',
        stdout: 'pipe',
        stderr: 'inherit',
      });
      return { child, output: child.stdout.getReader() };
    });
    const all = () => Promise.all(children.map(({ output }) => output.read().then(({ done }) => !done)));
    const yes = [true, true, true, true];
    expect(await all()).toEqual(yes);
    for (let round = 0; round < 40; round++) {
      const file = join(folder.path, `round-${round}.db`);
      for (const { child } of children) {
        child.stdin.write(`${file}\n`);
        child.stdin.flush();
      }
      expect(await all()).toEqual(yes);
      const result = openStore(file, FIRST);
      if (result.kind === 'unusable') throw new Error(result.sentence);
      using store = result.store;
      expect(rowsOf(store)).toEqual([1, ...Array.from({ length: 80 }, () => 5)]);
    }
    for (const { child } of children) child.stdin.end();
    expect(await Promise.all(children.map(({ child }) => child.exited))).toEqual([0, 0, 0, 0]);
  }, 30_000);
});

const TEXT = 'not a database, but a long enough text to be read as one'.repeat(100);
/** A store of some pages. */
function filled() {
  const store = opened(FIRST);
  for (let i = 0; i < 5_000; i++) store.run('INSERT INTO a VALUES (?)', [i]);
  store.run('PRAGMA wal_checkpoint(TRUNCATE)');
  store.close();
}

test.each<[string, () => void, RegExp]>([
  [
    'it is no database',
    () => (filled(), writeFileSync(path, TEXT)),
    /is corrupt \(.*\); put a backup in its place, or move it away to start empty\.$/,
  ],
  [
    'its pages are damaged',
    () => (filled(), writeFileSync(path, readFileSync(path).fill(0xaa, 4_096, 12_288))),
    /is corrupt/,
  ],
  ['it was cut', () => (filled(), truncateSync(path, 20_000)), /is corrupt/],
  ['its path is a folder', () => mkdirSync(path, { recursive: true }), /cannot be opened \(/],
])('a file that cannot be used is one sentence, and is left as it was: %s', (_, spoil, why) => {
  const bytes = () => (existsSync(path) && statSync(path).isFile() ? readFileSync(path) : undefined);
  spoil();
  const before = bytes();
  const result = openStore(path, FIRST);
  expect(result).toEqual({ kind: 'unusable', sentence: expect.stringMatching(why) });
  expect(result).toMatchObject({ sentence: expect.stringContaining(`The database ${path} `) });
  expect(bytes()).toEqual(before);
});

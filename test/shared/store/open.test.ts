import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { chmodSync, existsSync, mkdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
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

  test('applies all migrations or none', () => {
    const broken = { ...FIRST, two: 'INSERT INTO a VALUES (2); INSERT INTO nowhere VALUES (1);' };
    expect(openStore(path, broken)).toMatchObject({ kind: 'unusable' });
    using store = opened(FIRST);
    expect(rowsOf(store)).toEqual([1]);
  });

  test('lets two connections write in turn', () => {
    using one = opened(FIRST);
    using two = opened(FIRST);
    for (let i = 2; i < 50; i++) (i % 2 === 0 ? one : two).run('INSERT INTO a VALUES (?)', [i]);
    expect(rowsOf(one)).toHaveLength(49);
    expect(rowsOf(two)).toEqual(rowsOf(one));
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

describe('a file that cannot be used is one sentence, and is left as it was', () => {
  const sentenceOf = () => {
    const result = openStore(path, FIRST);
    return result.kind === 'unusable' ? result.sentence : 'it was opened';
  };

  test('when it is no database', () => {
    mkdirSync(join(folder.path, 'deep/er'), { recursive: true });
    const text = 'not a database, but a long enough text to be read as one'.repeat(100);
    writeFileSync(path, text);
    expect(sentenceOf()).toStartWith(`The database ${path} is corrupt (`);
    expect(sentenceOf()).toEndWith('put a backup in its place, or move it away to start empty.');
    expect(readFileSync(path, 'utf8')).toBe(text);
  });

  test('when its pages are damaged', () => {
    const store = opened(FIRST);
    for (let i = 0; i < 2_000; i++) store.run('INSERT INTO a VALUES (?)', [i]);
    store.run('PRAGMA wal_checkpoint(TRUNCATE)');
    store.close();
    const bytes = readFileSync(path);
    bytes.fill(0xaa, 4_096, 12_288);
    writeFileSync(path, bytes);
    expect(sentenceOf()).toContain('is corrupt');
  });

  test('when it was cut', () => {
    const store = opened(FIRST);
    for (let i = 0; i < 5_000; i++) store.run('INSERT INTO a VALUES (?)', [i]);
    store.run('PRAGMA wal_checkpoint(TRUNCATE)');
    store.close();
    truncateSync(path, 20_000);
    expect(sentenceOf()).toContain('is corrupt');
  });

  test('when its path is a folder', () => {
    mkdirSync(path, { recursive: true });
    expect(sentenceOf()).toStartWith(`The database ${path} cannot be opened (`);
  });

  test('when its folder cannot be made', () => {
    writeFileSync(join(folder.path, 'deep'), 'a file');
    expect(sentenceOf()).toStartWith(`The database ${path} cannot be opened (`);
    chmodSync(join(folder.path, 'deep'), 0o600);
    expect(existsSync(path)).toBe(false);
  });
});

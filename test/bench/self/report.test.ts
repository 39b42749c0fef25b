import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type OwnBench, runOwn } from '../../../bench/self/report.ts';
import { temporaryFolder } from '../../started/gateway.ts';
import { ROOT, runToEnd } from '../../started/process.ts';

// Each starts twice, with all that it imports.
setDefaultTimeout(20_000);

const FOLDER = join(ROOT, 'bench/self');
/** Files that run a bench when they are started. */
const SCRIPTS = readdirSync(FOLDER).filter(
  (name) => name.endsWith('.ts') && /await runOwn\(/.test(readFileSync(join(FOLDER, name), 'utf8')),
);

test('every script that measures ourselves is found', () => {
  expect(SCRIPTS.length).toBeGreaterThanOrEqual(8);
  const documented = readFileSync(join(ROOT, 'bench/README.md'), 'utf8');
  expect(SCRIPTS.filter((name) => !documented.includes(`bench/self/${name}`))).toEqual([]);
});

test.each(SCRIPTS)(
  '%s says what it is, refuses an option that it has not, and starts nothing',
  async (name) => {
    const path = join(FOLDER, name);
    const [help, refusal] = await Promise.all([
      runToEnd([path, '--help'], ROOT),
      runToEnd([path, '--surely-not'], ROOT),
    ]);
    expect([help.code, help.stderr]).toEqual([0, '']);
    expect(help.stdout).toContain(`bun bench/self/${name}`);
    expect(help.stdout).toContain('--json FILE');
    expect([refusal.code, refusal.stdout]).toEqual([2, '']);
    expect(refusal.stderr).toContain('--surely-not');
  },
);

describe('a bench of our own', () => {
  const BENCH: OwnBench = {
    path: join(FOLDER, 'nothing.ts'),
    about: 'Nothing.',
    options: {
      seconds: { value: 'S', help: 'of each', least: 1, most: 60, preset: 10 },
      plan: { value: 'NAME', help: 'of all', known: ['rate', 'credits'], preset: 'rate' },
    },
    limitMs: () => 1_000,
    measure: async ({ table, say, number, text }) => {
      table([
        ['way', 'ms', 'MB'],
        ['one', '1.0', 'NaN'],
        ['two', 'NaN', ''],
        ['three', '1', ''],
      ]);
      say(`${number('seconds')} s of ${text('plan')}`);
      return number('seconds') > 5;
    },
  };

  test('writes its tables as JSON, without a row of NaN', async () => {
    using folder = temporaryFolder();
    const path = join(folder.path, 'own.json');
    expect(await runOwn(BENCH, ['--seconds', '7', '--json', path])).toBe(0);
    expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({
      bench: 'bench/self/nothing.ts',
      tables: [
        [
          ['way', 'ms', 'MB'],
          ['one', '1.0', '-'],
          ['two', 'not measured'],
          ['three', '1', ''],
        ],
      ],
      sentences: ['7 s of rate'],
    });
  });

  test('leaves standard output to JSON that goes there', async () => {
    const { href } = pathToFileURL(join(FOLDER, 'report.ts'));
    const measure = `async ({ table, say }) => { table([['a'], ['b']]); say('c'); }`;
    const bench = `{ path: ${JSON.stringify(BENCH.path)}, about: '', limitMs: () => 60_000, measure: ${measure} }`;
    const code = `import { runOwn } from '${href}'; await runOwn(${bench}, ['--json', '-']);`;
    const { stdout, stderr } = await runToEnd(['-e', code], ROOT);
    expect(JSON.parse(stdout)).toMatchObject({ tables: [[['a'], ['b']]], sentences: ['c'] });
    expect(stderr).toContain('bun bench/self/nothing.ts');
  });

  test('ends with 1 when a bar of its own was not met, and with 2 for a value that cannot be', async () => {
    expect(await runOwn(BENCH, ['--seconds', '5'])).toBe(1);
    for (const argv of [['--seconds', '0'], ['--seconds', ''], ['--plan', 'free'], ['now']])
      expect(await runOwn(BENCH, argv)).toBe(2);
  });
});

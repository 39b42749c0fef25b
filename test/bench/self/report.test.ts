import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type OwnBench, runOwn } from '../../../bench/self/report.ts';
import { temporaryFolder } from '../../started/gateway.ts';
import { ROOT, runToEnd } from '../../started/process.ts';

// Each starts with all that it imports.
setDefaultTimeout(20_000);

const FOLDER = join(ROOT, 'bench/self');
/** Files that run a bench when they are started. */
const SCRIPTS = readdirSync(FOLDER).filter(
  (name) => name.endsWith('.ts') && /await runOwn\(/.test(readFileSync(join(FOLDER, name), 'utf8')),
);

test('every script that measures ourselves is found', () => {
  expect(SCRIPTS.length).toBeGreaterThanOrEqual(6);
  const documented = readFileSync(join(ROOT, 'bench/README.md'), 'utf8');
  expect(SCRIPTS.filter((name) => !documented.includes(`bench/self/${name}`))).toEqual([]);
});

test.each(SCRIPTS)(
  '%s refuses an option that it has not, says what it is, and starts nothing',
  async (name) => {
    const { code, stdout, stderr } = await runToEnd([join(FOLDER, name), '--surely-not'], ROOT);
    expect([code, stdout]).toEqual([2, '']);
    for (const part of ['--surely-not', `Usage: bun bench/self/${name} `, '--json FILE'])
      expect(stderr).toContain(part);
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
        ['one', '1.0', '2'],
      ]);
      say(`${number('seconds')} s of ${text('plan')}`);
      return number('seconds') > 5;
    },
  };

  test('writes its tables as JSON', async () => {
    using folder = temporaryFolder();
    const path = join(folder.path, 'own.json');
    expect(await runOwn(BENCH, ['--seconds', '7', '--json', path])).toBe(0);
    expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({
      bench: 'bench/self/nothing.ts',
      tables: [
        [
          ['way', 'ms', 'MB'],
          ['one', '1.0', '2'],
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

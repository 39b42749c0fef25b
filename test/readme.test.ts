import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { METHODS } from '../gateway/methods/table.ts';
import { configFrom } from '../shared/config/config.ts';
import { PRICES_BY_DEFAULT } from '../shared/config/plans.ts';
import { childEnv, ROOT } from './started/process.ts';
import { startStack } from './started/stack.ts';

const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');

/** The rows of the table under a heading, cells trimmed. */
function tableUnder(heading: string): string[][] {
  const section = readme.split(`### ${heading}\n`)[1]?.split('\n#')[0] ?? '';
  const rows = section.split('\n').filter((line) => line.startsWith('|'));
  return rows.slice(2).map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

const unquoted = (cell: string) => cell.replaceAll('`', '');

describe('the README and the code agree', () => {
  test('every method stands once in the table, with its lane, its price and whether it must be declared', () => {
    const section = readme.split('### Methods and credits\n')[1]?.split('\n#')[0] ?? '';
    const items = section.matchAll(/^- \*\*(.+), (\d+) credits?\*\*: ((?:`\w+`\s*)+)$/gm);
    const written = [...items].flatMap(([, lane = '', credits = '', methods = '']) =>
      methods
        .trim()
        .split(/\s+/)
        .map((name) => [unquoted(name), lane, Number(credits)]),
    );
    const real = [...METHODS].flatMap(([name, { lane, declared, like }]) =>
      like === undefined
        ? [[name, declared ? `${lane} (declared)` : lane, PRICES_BY_DEFAULT[name] ?? 1]]
        : [],
    );
    const byName = (rows: unknown[][]) => rows.toSorted((a, b) => String(a[0]).localeCompare(String(b[0])));
    expect(byName(written)).toEqual(byName(real));
  });

  test('every key of the config stands in the table, and no other', () => {
    const written = tableUnder('Config').map(([key = '']) => unquoted(key));
    // An empty table of each kind makes the reader name every key it knows.
    const asked = configFrom(
      {
        nothing: 1,
        gateway: { nothing: 1 },
        deploys: { nothing: 1 },
        storage: { nothing: 1 },
        localnet: { nothing: 1 },
        backends: [{ nothing: 1, name: 'a', url: 'http://a' }],
        plans: { x: { nothing: 1, rps: 1 } },
        credits: { nothing: 1 },
        deadlines: { nothing: 1 },
      },
      {},
    );
    if (asked.kind !== 'problems') throw new Error('an unknown key was accepted');
    const known = asked.problems.flatMap(({ key, example }) => {
      const table = key
        .slice(0, -'nothing'.length)
        .replace('backends[0]', 'backends[]')
        .replace('plans.x', 'plans.NAME');
      if (table === '') return [];
      return example
        .replace('known keys: ', '')
        .split(', ')
        .map((name) => `${table}${name}`);
    });
    expect(written.toSorted()).toEqual(known.toSorted());
  });

  test('every file it names exists', () => {
    const named = [...readme.matchAll(/`((?:gateway|deploys|shared|localnet)\/[a-z0-9/-]+\.ts)`/g)].map(
      ([, path = '']) => path,
    );
    expect(named.length).toBeGreaterThan(15);
    expect(named.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  });

  test('the config it shows is accepted', () => {
    const [, toml = ''] = /```toml\n([\s\S]*?)```/.exec(readme) ?? [];
    const result = configFrom(Bun.TOML.parse(toml), { SLUICE_WATCHER_KEY: 'k', AGAVE_TOKEN: 't' });
    expect(result.kind).toBe('config');
  });
});

describe('the snippets of the README run as they stand', () => {
  let service: Awaited<ReturnType<typeof startStack>>;
  beforeAll(async () => {
    service = await startStack();
  });
  afterAll(async () => service[Symbol.asyncDispose]());

  test.each([
    ['kit', /slot \d+n?\nblock height \d+n?\n/],
    ['web3', /balance 1000000000\nslot \d+\n/],
  ])('%s', async (name, shape) => {
    const [, code = ''] =
      new RegExp(`<!-- runs: ${name} -->\\s+\`\`\`ts\\n([\\s\\S]*?)\`\`\``).exec(readme) ?? [];
    const file = join(ROOT, `test/readme-${name}.gen.ts`);
    writeFileSync(file, code);
    try {
      const child = Bun.spawn([process.execPath, file], {
        cwd: ROOT,
        env: childEnv({ SLUICE_KEY: service.key('scale'), SLUICE_URL: service.url.href.replace(/\/$/, '') }),
        stdout: 'pipe',
        stderr: 'pipe',
      });
      const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
      expect(stderr).toBe('');
      expect(stdout).toMatch(shape);
    } finally {
      rmSync(file);
    }
  });
});

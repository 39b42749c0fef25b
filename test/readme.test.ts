import { arrowsIn } from './layers/diagram.ts';
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { METHODS } from '../shared/config/methods.ts';
import { configFrom } from '../shared/config/config.ts';
import { PRICES_BY_DEFAULT } from '../shared/config/plans.ts';
import { PRODUCT, sourcesOf } from './layers/source.ts';
import { childEnv, ROOT } from './started/process.ts';
import { startStack } from './started/stack.ts';

const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');
const docs = ['README.md', ...new Bun.Glob('docs/**/*.md').scanSync({ cwd: ROOT })].map((path) =>
  readFileSync(join(ROOT, path), 'utf8'),
);
const pages = docs.join('\n');

const unquoted = (cell: string) => cell.replaceAll('`', '');

describe('the documents and the code agree', () => {
  test('every method stands once in the table, with its lane, its price and whether it must be declared', () => {
    const items = pages.matchAll(/^- \*\*(.+), (\d+) credits?\*\*: ((?:`\w+`\s*)+)$/gm);
    const written = [...items].flatMap(([, lane = '', credits = '', methods = '']) =>
      methods
        .trim()
        .split(/\s+/)
        .map((name) => [unquoted(name), lane, Number(credits)]),
    );
    const real = [...METHODS].flatMap(([name, { lane, declared, like }]) =>
      like === undefined
        ? [[name, declared ? `${lane} (declared)` : lane, PRICES_BY_DEFAULT.get(name) ?? 1]]
        : [],
    );
    const byName = (rows: unknown[][]) => rows.toSorted((a, b) => String(a[0]).localeCompare(String(b[0])));
    expect(byName(written)).toEqual(byName(real));
  });

  test('every file that they name exists', () => {
    const named = [...pages.matchAll(/`((?:gateway|deploys|shared|localnet)\/[a-z0-9/-]+\.ts)`/g)].map(
      ([, path = '']) => path,
    );
    expect(named.length).toBeGreaterThan(15);
    expect(named.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
    const files = new Set(
      [
        ...new Bun.Glob('{gateway,deploys,shared,localnet,cli,bench,examples,test}/**/*.{ts,tsx}').scanSync(
          ROOT,
        ),
      ].map((path) => path.replace(/.*\//, '')),
    );
    const bare = [...pages.matchAll(/`([a-z0-9-]+\.tsx?)`/g)].map(([, name = '']) => name);
    expect(bare.length).toBeGreaterThan(15);
    expect(bare.filter((name) => !files.has(name))).toEqual([]);
  });

  test('a state diagram that stands in the code too is the same there', () => {
    const twice = {
      'gateway/upstream/failover.ts': '## The path of a call',
      'gateway/listener/connection-state.ts': "**A caller's connection**",
      'deploys/accounts/ownership.ts': '## Which copy of the database counts',
    };
    for (const [path, after] of Object.entries(twice)) {
      const own = arrowsIn(path);
      expect(own.size).toBeGreaterThan(5);
      expect(arrowsIn('docs/architecture.md', after)).toEqual(own);
    }
  });

  test('every page that the code cites exists, and every decision is listed', async () => {
    const sources = await sourcesOf(ROOT, PRODUCT);
    const cited = sources.flatMap(({ text }) => text.match(/docs\/[a-z/-]+\.md/g) ?? []);
    expect(cited.length).toBeGreaterThan(20);
    expect(cited.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
    const listed = readFileSync(join(ROOT, 'docs/decisions/README.md'), 'utf8').matchAll(
      /\]\(([a-z-]+\.md)\)/g,
    );
    const kept = readdirSync(join(ROOT, 'docs/decisions')).filter((name) => name !== 'README.md');
    expect([...listed].map(([, name = '']) => name).toSorted()).toEqual(kept.toSorted());
  });

  test('every word has one meaning', () => {
    const rows = readFileSync(join(ROOT, 'docs/words.md'), 'utf8').matchAll(
      /^\| ([a-z -]+(?:, [a-z -]+)*) +\|/gm,
    );
    const words = [...rows]
      .flatMap(([, cell = '']) => cell.trim().split(', '))
      .filter((word) => word !== 'word');
    expect(words.length).toBeGreaterThan(60);
    expect(words.filter((word, at) => words.indexOf(word) !== at)).toEqual([]);
  });

  test('every config that they show is accepted', () => {
    const env = {
      SLUICE_WATCHER_KEY: 'k',
      AGAVE_TOKEN: 't',
      SLUICE_SECRET: Buffer.alloc(32).toString('base64'),
    };
    const shown = [...pages.matchAll(/```toml\n([\s\S]*?)```/g)].map(([, toml = '']) => toml);
    expect(shown.length).toBeGreaterThan(0);
    expect(shown.map((toml) => configFrom(Bun.TOML.parse(toml), env).kind)).toEqual(
      shown.map(() => 'config'),
    );
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

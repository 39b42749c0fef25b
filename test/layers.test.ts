import { describe, expect, test } from 'bun:test';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { BUN_VERSION } from '../shared/process.ts';
import { unusedExports } from './layers/exports.ts';
import { againstOrder, circles, meetings, mutualFolders, orderIn } from './layers/folders.ts';
import { barrels, benchCrossings, crossings, importsOf, lonely } from './layers/imports.ts';
import { unnamedMarkup, unsafeMarkup } from './layers/markup.ts';
import { emptyNames, oddNames, typesOfOneName, whatDocstrings } from './layers/names.ts';
import { foreignPackages, workspaceImports } from './layers/packages.ts';
import { crumbs, CRUMBS_MAX, longFunctions, TABLES, tooLong } from './layers/sizes.ts';
import { PRODUCT, type Source, sourcesOf, topOf } from './layers/source.ts';
import { otherVersions } from './layers/versions.ts';
import { makeRandom, readEnvironment, readTime } from './layers/world.ts';

const root = dirname(import.meta.dir);
const product = await sourcesOf(root, PRODUCT);
const tests = await sourcesOf(root, ['test']);
const DOCUMENTS = ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md'];

describe('the project', () => {
  test('is read at all', () => {
    const tops = new Set(product.map(({ path }) => path.split('/')[0]));
    expect([...tops].toSorted()).toEqual(expect.arrayContaining(['cli', 'deploys', 'gateway', 'shared']));
    expect(product.flatMap(importsOf).length).toBeGreaterThan(100);
  });
  test('gateway, deploys and localnet never meet, and shared stands alone', () => {
    expect(crossings(product)).toEqual([]);
  });
  test('a production install has every package that gateway, deploys, shared and the command line import', async () => {
    const manifest = async (folder: string) => Bun.file(join(root, folder, 'package.json')).json();
    const manifests = Object.fromEntries(
      await Promise.all(['.', 'localnet', 'bench'].map(async (folder) => [folder, await manifest(folder)])),
    );
    expect(foreignPackages(product, manifests)).toEqual([]);
    expect(workspaceImports(product)).toEqual([]);
  });
  test('benches import of tests what both start, and tests nothing of benches but theirs', () => {
    const own = tests.filter(({ path }) => path !== 'test/layers.test.ts'); // whose planted breaches are none
    expect(benchCrossings([...product, ...own])).toEqual([]);
  });
  test('every file in shared has two users', () => expect(lonely(product)).toEqual([]));
  test('no file only re-exports', () => expect(barrels([...product, ...tests])).toEqual([]));
  test('no file is above 500 lines, tables apart', () => expect(tooLong(product)).toEqual([]));
  test('every table that may be long is there', () => {
    expect(TABLES.filter((path) => !product.some((source) => source.path === path))).toEqual([]);
  });
  test('no function is above 70 lines', () => expect(longFunctions(product)).toEqual([]));
  test('no page carries a style, a handler or raw HTML', () => {
    expect(product.filter(({ path }) => path.endsWith('.tsx')).length).toBeGreaterThan(20);
    expect(unsafeMarkup(product)).toEqual([]);
  });
  test('pages work from whatever folder the app is started in', () => {
    expect(unnamedMarkup(product)).toEqual([]);
  });
  test('only main.ts files read the environment', () => expect(readEnvironment(product)).toEqual([]));
  test('time comes from a Clock', () => expect(readTime(product)).toEqual([]));
  test('randomness comes in as an argument', () => expect(makeRandom(product)).toEqual([]));
  test('every name says something, in kebab-case', () => {
    const paths = [...product, ...tests].map(({ path }) => path);
    expect([...emptyNames(paths), ...oddNames(paths)]).toEqual([]);
  });
  test('no two types of an app have one name', () => {
    const named = product.filter(({ path }) => topOf(path) !== 'bench');
    expect(typesOfOneName(named)).toEqual([]);
  });
  test('docstrings say what a thing is or does, and not "What …"', () => {
    const named = product.filter(({ path }) => topOf(path) !== 'bench');
    expect(whatDocstrings(named)).toEqual([]);
  });
  test('documents name the Bun of package.json', async () => {
    expect(DOCUMENTS.filter((path) => !existsSync(join(root, path)))).toEqual([]);
    const texts = DOCUMENTS.map(async (path) => ({ path, text: await Bun.file(join(root, path)).text() }));
    const documents = await Promise.all(texts);
    expect(otherVersions(documents, BUN_VERSION)).toEqual([]);
    expect(documents.find(({ path }) => path === 'README.md')?.text).toContain(
      `npx -y bun@${BUN_VERSION} start`,
    );
  });
});

describe('the chapters and layers', () => {
  test('at most five files of fewer than 40 lines have one importer', () => {
    expect(crumbs(product, product).slice(CRUMBS_MAX)).toEqual([]);
  });
  test.each([...PRODUCT])('the folders of %s import one way, in the order of its README.md', (app) => {
    const own = product.filter(({ path }) => topOf(path) === app);
    const order = orderIn(readFileSync(join(root, app, 'README.md'), 'utf8'), app);
    expect(againstOrder(own, order)).toEqual([]);
  });
  test('no two folders import each other', () => expect(mutualFolders(product)).toEqual([]));
  test('listener and upstream share http/, and import nothing of each other', () => {
    expect(meetings(product, ['gateway/listener', 'gateway/upstream'])).toEqual([]);
  });
  test('no file imports itself through others', () => expect(circles(product)).toEqual([]));
  test('every export is imported by another file', () => {
    expect(unusedExports(product, [...product, ...tests])).toEqual([]);
  });
});

describe('a planted breach is found', () => {
  const file = (path: string, ...lines: string[]): Source => ({ path, text: `${lines.join('\n')}\n` });
  const long = (lines: number) => 'x;\n'.repeat(lines);

  test.each([
    ['gateway/a.ts', "import { b } from '../deploys/b.ts';"],
    ['deploys/a/b.ts', "import type { B } from '../../gateway/b.ts';"],
    ['localnet/a.ts', "export { b } from '../gateway/b.ts';"],
    ['shared/a.ts', "const b = await import('../gateway/b.ts');"],
    ['gateway/a.ts', "import '../test/b.ts';"],
    ['gateway/a.ts', "import type {\n  B,\n} from '../cli/b.ts';"],
  ])('%s: %s', (path, line) => expect(crossings([file(path, line)])).toHaveLength(1));

  test('an import between benches and tests', () => {
    const sources = [
      file('bench/self/a.ts', "import '../../test/started/b.ts';", "import '../../test/fakes/c.ts';"),
      file('test/bench/a.test.ts', "import '../../bench/a.ts';"),
      file('test/faults/a.test.ts', "import type { A } from '../../bench/a.ts';"),
    ];
    expect(benchCrossings(sources)).toEqual([
      'bench/self/a.ts imports test/fakes/c.ts',
      'test/faults/a.test.ts imports bench/a.ts',
    ]);
  });

  test('a package, or a file, that only a workspace has', () => {
    const manifests = { '.': { dependencies: { pino: '1' } }, bench: { dependencies: { '@a/b': '1' } } };
    const sources = [
      file('gateway/a.ts', "import { b } from '@a/b/c.js';", "import 'pino';", "import 'node:fs';"),
      file('cli/a.ts', "import { x } from '../bench/x.ts';", "const y = await import('../bench/x.ts');"),
      file(
        'deploys/a.ts',
        "const at = Bun.resolveSync('uplot/dist/a.js', here);",
        "import { $ } from 'bun';",
      ),
      file('bench/a.ts', "import { b } from '@a/b';", "import { log } from 'pino';"),
    ];
    expect(foreignPackages(sources, manifests)).toEqual([
      'gateway/a.ts imports @a/b',
      'deploys/a.ts imports uplot',
      'bench/a.ts imports pino',
    ]);
    expect(workspaceImports(sources)).toEqual(['cli/a.ts imports bench']);
  });

  test('a file of shared with one user, through another file of shared too', () => {
    const sources = [
      file('shared/a.ts', "import './b.ts';"),
      file('shared/b.ts'),
      file('shared/c.ts'),
      file('gateway/x.ts', "import '../shared/a.ts';"),
      file('deploys/x.ts', "import '../shared/b.ts';"),
    ];
    expect(lonely(sources)).toEqual([
      'shared/a.ts is used by gateway alone',
      'shared/c.ts is used by nobody alone',
    ]);
  });

  test('a barrel', () => {
    const barrel = ['/** All. */', "export * from './a.ts';", "export { b } from './b.ts';"];
    const sources = [
      file('gateway/index.ts', ...barrel),
      file('gateway/a.ts', "export { b } from './b.ts';", 'export const a = 1;'),
    ];
    expect(barrels(sources)).toEqual(['gateway/index.ts only re-exports']);
  });

  test('a file of 501 lines, and not one of 500 or a table', () => {
    const sources = [500, 501, 999].map((lines) => ({ path: `gateway/${lines}.ts`, text: long(lines) }));
    expect(tooLong(sources, ['gateway/999.ts'])).toEqual(['gateway/501.ts has 501 lines']);
  });

  test('a file of 39 lines with one importer, and not one of 40 or with two', () => {
    const sources = [
      { path: 'gateway/a.ts', text: long(39) },
      { path: 'gateway/b.ts', text: long(40) },
      { path: 'gateway/c.ts', text: long(1) },
      file('gateway/x.ts', "import './a.ts';", "import './b.ts';", "import type { C } from './c.ts';"),
      file('cli/y.ts', "import '../gateway/c.ts';"),
    ];
    expect(crumbs(sources.slice(0, 3), sources)).toEqual(['gateway/a.ts belongs into gateway/x.ts']);
  });

  test('an import against the order of folders, or of a file beside them', () => {
    const order = orderIn('# A\n\n1. `a/`: first\n2. `b/`: second\n3. `gone/`: x\n', 'gateway');
    const sources = [
      file('gateway/a/x.ts', "import type { Y } from '../b/y.ts';", "import '../main.ts';"),
      file('gateway/b/y.ts', "import '../a/x.ts';", "import './z.ts';", "import '../../shared/b/c.ts';"),
      file('gateway/c/z.ts'),
      file('gateway/main.ts', "import './b/y.ts';"),
    ];
    expect(againstOrder(sources, order)).toEqual([
      'gateway/c is not in the order',
      'gateway/gone is in the order alone',
      'gateway/a/x.ts imports gateway/b/y.ts against the order',
      'gateway/a/x.ts imports gateway/main.ts against the order',
    ]);
    expect(mutualFolders(sources)).toEqual(['gateway/a and gateway/b import each other']);
    expect(meetings(sources, ['gateway/a', 'gateway/b']).length).toBeGreaterThan(1);
  });

  test('a circle of files, and not the file that only imports it', () => {
    const sources = [
      file('gateway/a.ts', "import type { B } from './b.ts';"),
      file('gateway/b.ts', "import './c.ts';"),
      file('gateway/c.ts', "import './a.ts';"),
      file('gateway/d.ts', "import './a.ts';"),
    ];
    expect(circles(sources)).toEqual([
      'gateway/a.ts is in a circle with gateway/c.ts',
      'gateway/b.ts is in a circle with gateway/a.ts',
      'gateway/c.ts is in a circle with gateway/b.ts',
    ]);
  });

  test('an export that no other file imports', () => {
    const exports = ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => `export const ${name} = 1;`);
    const used = file('gateway/a.ts', ...exports, 'export type T = 1;');
    const users = [
      file('gateway/x.ts', "import { a, type b as other } from './a.ts';", 'const inside = c;'),
      file('gateway/y.ts', "const { d } = await import('./a.ts');", "// import { e } from './a.ts';"),
      file('test/z.ts', "import type { T } from '../gateway/a.ts';", "export { f } from '../gateway/a.ts';"),
    ];
    const unused = (name: string) => `gateway/a.ts exports ${name}, which no other file imports`;
    expect(unusedExports([used], [used, ...users])).toEqual([unused('c'), unused('e')]);
    const whole = file('gateway/w.ts', "import * as all from './a.ts';");
    expect(unusedExports([used], [whole])).toEqual([]);
    expect(unusedExports([used], [file('gateway/w.ts', "(await import('./a.ts')).a;")])).toEqual([]);
  });

  test('a function of 71 lines, and not one of 70', () => {
    const body = (lines: number) => Array.from({ length: lines - 2 }, () => '  x();');
    const sources = [
      file(
        'gateway/a.ts',
        'export function a() {',
        ...body(70),
        '}',
        'async function b() {',
        ...body(71),
        '}',
      ),
      file('gateway/c.ts', 'export const c = async (x: number) => {', ...body(71), '};'),
    ];
    expect(longFunctions(sources)).toEqual(['gateway/a.ts: b has 71 lines', 'gateway/c.ts: c has 71 lines']);
    const inner = ['  function d() {', ...body(60), '  }', '  function e() {', ...body(60), '  }'];
    const around = (...more: string[]) => [file('gateway/d.ts', 'function f() {', ...inner, ...more, '}')];
    expect(longFunctions(around())).toEqual([]);
    expect(longFunctions(around(...body(71)))).toHaveLength(1);
  });

  test.each([
    [readEnvironment, 'const a = process.env.HOME;'],
    [readEnvironment, "const a = Bun.env['HOME'];"],
    [readTime, 'const a = Date.now();'],
    [readTime, 'setTimeout(() => {}, 1);'],
    [readTime, 'setInterval(() => {}, 1);'],
    [readTime, 'const a = new Date();'],
    [makeRandom, 'const a = Math.random();'],
    [makeRandom, 'const a = crypto.randomUUID();'],
    [makeRandom, "import { randomBytes } from 'node:crypto';"],
  ])('%p: %s, and not in main.ts or a comment', (rule, line) => {
    expect(rule([file('gateway/a.ts', line)])).toHaveLength(1);
    const allowed = [file('gateway/main.ts', line), file('gateway/a.ts', `// ${line}`, `/* ${line} */`)];
    expect(rule(allowed)).toEqual([]);
  });

  test.each([
    '<p style="color: red">',
    '<p style={{ color }}>',
    '<button onClick={run}>',
    '<p dangerouslySetInnerHTML={{ __html }} />',
    '<iframe src="/">',
  ])('%s in a page, and not in a comment', (line) => {
    expect(unsafeMarkup([file('deploys/a.tsx', line)])).toHaveLength(1);
    expect(unsafeMarkup([file('deploys/a.ts', line), file('deploys/a.tsx', `// ${line}`)])).toEqual([]);
  });

  test('a page that does not name its markup', () => {
    const named = file('deploys/a.tsx', '/** @jsxImportSource preact */', 'const a = <p />;');
    expect(unnamedMarkup([named, file('deploys/b.tsx', 'const b = <p />;'), file('deploys/c.ts')])).toEqual([
      'deploys/b.tsx does not begin with its jsxImportSource',
    ]);
  });

  test('a name that says nothing, or is not kebab-case', () => {
    const paths = [
      'gateway/utils/a.ts',
      'shared/types.ts',
      'deploys/service.test.ts',
      'gateway/limits/rate.ts',
    ];
    expect(emptyNames(paths)).toEqual(paths.slice(0, 3));
    expect(oddNames(['gateway/fooBar.ts', 'gateway/4.3-rpc.test.ts'])).toEqual(['gateway/fooBar.ts']);
    expect(
      whatDocstrings([{ path: 'gateway/a.ts', text: '/**\n * What it is.\n */\n  /** What it does. */' }]),
    ).toHaveLength(2);
    const twice = ['gateway/a.ts', 'gateway/b.ts', 'deploys/a.ts'].map((path) => ({
      path,
      text: 'type Deps = 1;',
    }));
    expect(typesOfOneName(twice)).toEqual(['gateway Deps: gateway/a.ts,gateway/b.ts']);
  });

  test('another version of Bun', () => {
    const text = 'npx -y bun@1.4.4 start; npx -y bun@1.4.5 start; npx -y bun@1.4.50 run verify.';
    expect(otherVersions([{ path: 'README.md', text }], '1.4.5')).toEqual([
      'README.md says bun@1.4.4',
      'README.md says bun@1.4.50',
    ]);
  });
});

import { expect, test } from 'bun:test';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { configFrom } from '../shared/config/config.ts';
import { NO_SUCH_KEY, type Problem } from '../shared/config/table.ts';
import { ROOT } from './started/process.ts';

/*
 * docs/configure.md has a row for every key of the config. Defaults are those of sluice.example.toml and what a key accepts is
 * said by the config's own reader; people write the rest. UPDATE_DOCS=1 writes those two columns.
 */

const PAGE = join(ROOT, 'docs/configure.md');
const page = readFileSync(PAGE, 'utf8');
const example = readFileSync(join(ROOT, 'sluice.example.toml'), 'utf8');

function problemsOf(document: unknown): readonly Problem[] {
  const result = configFrom(document, {});
  if (result.kind === 'config') throw new Error('a wrong document was accepted');
  return result.problems;
}

/** The name of a key's table on the page: one backend and one plan stand for all. */
const nameOf = (key: string) => key.replace('backends[0]', 'backends[]').replace('plans.x', 'plans.NAME');

const TABLES = ['gateway', 'deadlines', 'deploys', 'storage', 'localnet', 'credits'];

/** A document that has in every table these keys. */
function documentOf(keysOf: (table: string) => Record<string, unknown>) {
  return {
    ...Object.fromEntries(TABLES.map((table) => [table, keysOf(table)])),
    backends: [{ name: 'a', url: 'http://a', ...keysOf('backends[]') }],
    plans: { x: { rps: 1, ...keysOf('plans.NAME') } },
  };
}

/** Every key that the reader knows: an unknown one in each table makes it list them. */
const known = problemsOf(documentOf(() => ({ nothing: 1 }))).flatMap(({ key, expected, example: keys }) =>
  expected !== NO_SUCH_KEY
    ? []
    : keys
        .replace('known keys: ', '')
        .split(', ')
        .map((name) => nameOf(key.replace(/nothing$/, name))),
);

/** What each key accepts; a value that fits none makes the reader say it. Tables inside tables accept their own keys. */
const accepted = new Map(
  problemsOf(
    documentOf((table) =>
      Object.fromEntries(
        known.flatMap((key) => {
          const [, name = ''] = key.startsWith(`${table}.`) ? [key, key.slice(table.length + 1)] : [];
          return name === '' || ['tls', 'oidc', 'headers', 'methods'].includes(name) ? [] : [[name, [[]]]];
        }),
      ),
    ),
  ).map(({ key, expected }) => [nameOf(key), expected]),
);

/** The default of a key as the example writes it; `undefined` for one that has none of its own. */
function defaultOf(key: string): string | undefined {
  const [table = '', name = ''] = key.split('.');
  const section = example.split(`\n[${table}]`)[1]?.split(/\n#?\[/)[0] ?? '';
  return new RegExp(`^${name} += ("[^"]*"|[^ #\\n]+)`, 'm').exec(section)?.[1];
}

const ROW = /^\| `([^`]+)` +\|([^|]*)\|([^|]*)\|(.*)\|$/gm;
const rows = [...page.matchAll(ROW)].map(([, key = '', ...cells]) => [
  key,
  ...cells.map((cell) => cell.trim()),
]);

/** A row as it must be: the key, its default, what it accepts, and what people wrote. */
function rowOf([key = '', written = '', kept = '', meaning = '']: readonly string[]): readonly string[] {
  const value = defaultOf(key);
  return [key, value === undefined ? written : `\`${value}\``, accepted.get(key) ?? kept, meaning];
}

test('docs/configure.md has every key of the config, and no other', () => {
  expect(rows.map(([key = '']) => key).toSorted()).toEqual(known.toSorted());
});

test('its rows say the defaults and what the reader accepts', () => {
  if (process.env['UPDATE_DOCS'] !== undefined) {
    const written = page.replace(ROW, (_, key: string, ...cells: string[]) => {
      const [, ...others] = rowOf([key, ...cells.slice(0, 3).map((cell) => cell.trim())]);
      return `| \`${key}\` | ${others.join(' | ')} |`;
    });
    return writeFileSync(PAGE, written);
  }
  expect<readonly (readonly string[])[]>(rows).toEqual(rows.map(rowOf));
});

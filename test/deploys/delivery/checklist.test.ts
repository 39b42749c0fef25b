import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROWS = 45;
const TESTS = join(import.meta.dir, '..', '..');

const page = readFileSync(join(import.meta.dir, 'README.md'), 'utf8');

/** Numbers in parentheses in the names of tests, by file. */
const tested = new Map(
  [...new Bun.Glob('{deploys,hosts,shared}/**/*.test.{ts,tsx}').scanSync({ cwd: TESTS })].map((path) => {
    const text = readFileSync(join(TESTS, path), 'utf8');
    const groups = [...text.matchAll(/\(((?:[EP]\d{1,2}|spec [\d.]+)(?:, [^()]*)?)\)/g)].map(
      ([, group]) => group ?? '',
    );
    return [
      path.replace(/^deploys\//, '').replace(/(?:\.long)?\.test\.tsx?$/, ''),
      new Set(groups.flatMap((group) => group.match(/\bE\d{1,2}\b/g) ?? [])),
    ];
  }),
);

/** The page's rows: the number, and the files that it names for it. */
const listed = new Map(
  [...page.matchAll(/^\| (E\d+) +\|.*\|([^|]+)\|$/gm)].map(([, id, where]) => [
    id ?? '',
    [...(where ?? '').matchAll(/`([^`]+)`/g)].map(([, name]) => name ?? ''),
  ]),
);

test('the page of the faults of webhooks lists every row, and names exactly the files that have a test of it', () => {
  expect([...listed.keys()]).toEqual(Array.from({ length: ROWS }, (_, i) => `E${i + 1}`));
  for (const [id, names] of listed) {
    const having = [...tested].filter(([, ids]) => ids.has(id)).map(([path]) => path);
    expect([id, names.length > 0, ...names.toSorted()]).toEqual([id, true, ...having.toSorted()]);
  }
});

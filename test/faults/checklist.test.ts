import { describe, expect, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Rows in each group of the checklist that this page answers for. */
const ROWS = { A: 15, B: 11, F: 10, G: 12, H: 6 };

const page = readFileSync(join(import.meta.dir, 'README.md'), 'utf8');
const files = readdirSync(import.meta.dir).filter((name) => name.endsWith('.test.ts'));

/** Ids at the beginning of the names of tests, by file. */
const tested = new Map(
  files.map((name) => {
    const text = readFileSync(join(import.meta.dir, name), 'utf8');
    const ids = [...text.matchAll(/['"`]([A-H]\d{1,2}) /g)].map(([, id]) => id ?? '');
    return [name.replace('.test.ts', ''), new Set(ids)];
  }),
);

/** The page's rows: the id, and the files that it names for it. */
const listed = new Map(
  [...page.matchAll(/^\| ([A-H]\d+) +\|.*\|([^|]+)\|$/gm)].map(([, id, where]) => [
    id ?? '',
    [...(where ?? '').matchAll(/`([^`]+)`/g)].map(([, name]) => name ?? ''),
  ]),
);

describe('the page of faults', () => {
  test.each(Object.entries(ROWS))('lists every row of group %s', (group, rows) => {
    const ids = Array.from({ length: rows }, (_, i) => `${group}${i + 1}`);
    expect([...listed.keys()].filter((id) => id.startsWith(group))).toEqual(ids);
  });

  test('names for each row exactly the files that have a test of it', () => {
    for (const [id, names] of listed) {
      const having = [...tested].filter(([, ids]) => ids.has(id)).map(([name]) => name);
      expect([id, ...names.toSorted()]).toEqual([id, ...having.toSorted()]);
    }
  });
});

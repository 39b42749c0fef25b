import { describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { scenarios } from '../../bench/self/soak/scenarios.ts';

/** Rows in each group of the checklist that this page answers for. */
const ROWS = { A: 17, B: 13, C: 13, D: 12, E: 7, F: 19, G: 17, H: 6, L: 26, M: 25, P: 10 };

const page = readFileSync(join(import.meta.dir, 'README.md'), 'utf8');
const tests = dirname(import.meta.dir);
const files = [...new Bun.Glob('**/*.test.ts').scanSync({ cwd: tests })];

/** Ids at the beginning of the names of tests, by file: those of this folder by their name, others by their path. */
const tested = new Map(
  files.map((path) => {
    const text = readFileSync(join(tests, path), 'utf8');
    const ids = [...text.matchAll(/['"`]((?:[A-HLMP]\d{1,2} )+)/g)].flatMap(([, all = '']) =>
      all.trim().split(' '),
    );
    return [path.replace(/^faults\//, '').replace(/(?:\.long)?\.test\.ts$/, ''), new Set(ids)];
  }),
);

const namesIn = (cell = '') => [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name ?? '');

/** The page's rows: the id, the files that it names for it, and the scenarios of the soak. */
const listed = [...page.matchAll(/^\| ([A-HLMP]\d+) +\|[^|]*\|([^|]+)\|(?:([^|]+)\|)?$/gm)].map(
  ([, id = '', where, soaked]) => ({ id, where: namesIn(where), soaked: namesIn(soaked) }),
);

describe('the page of faults', () => {
  test.each(Object.entries(ROWS))('lists every row of group %s', (group, rows) => {
    const ids = Array.from({ length: rows }, (_, i) => `${group}${i + 1}`);
    expect(listed.map(({ id }) => id).filter((id) => id.startsWith(group))).toEqual(ids);
  });

  test('names for each row exactly the files that have a test of it', () => {
    for (const { id, where } of listed) {
      const having = [...tested].filter(([, ids]) => ids.has(id)).map(([name]) => name);
      expect([id, ...where.toSorted()]).toEqual([id, ...having.toSorted()]);
    }
  });

  test('has no row without a test', () => {
    expect(listed.filter(({ where }) => where.length === 0).map(({ id }) => id)).toEqual([]);
  });

  test('names every scenario of the soak by its beginning, and no other', () => {
    const names = scenarios(30).map(({ name }) => name);
    const beginnings = listed.flatMap(({ soaked }) => soaked);
    expect(beginnings.filter((beginning) => !names.some((name) => name.startsWith(beginning)))).toEqual([]);
    expect(names.filter((name) => !beginnings.some((beginning) => name.startsWith(beginning)))).toEqual([]);
  });
});

import { describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { scenarios } from '../../bench/self/soak/scenarios.ts';
import { readPromises, titlesById } from './promises.ts';

/** How many rows the groups of the pages of faults have: none goes unnoticed. */
const ROWS = {
  'faults A': 17,
  'faults B': 13,
  'faults C': 13,
  'faults D': 12,
  'faults E': 7,
  'faults F': 19,
  'faults G': 17,
  'faults H': 6,
  'faults L': 26,
  'faults M': 27,
  'faults P': 10,
  'webhooks E': 49,
};

const titles = titlesById();
const promises = readPromises(titles);

describe('every promise of the specification, and every fault on the pages of faults,', () => {
  test('has a test', () => {
    expect(promises.filter(({ tests }) => tests.length === 0).map(({ id }) => id)).toEqual([]);
  });

  test('is still there, and no title of a test names another', () => {
    const ids = promises.map(({ id }) => id);
    expect(ids.filter((id) => id.startsWith('§')).length).toBeGreaterThanOrEqual(71);
    for (const [group, rows] of Object.entries(ROWS))
      expect(ids.filter((id) => id.replace(/\d+$/, '') === group)).toEqual(
        Array.from({ length: rows }, (_, i) => `${group}${i + 1}`),
      );
    expect([...titles.keys()].filter((id) => !ids.includes(id))).toEqual([]);
  });

  test('that is a fault has exactly those files on its page that have a test of it', () => {
    for (const { id, files, tests } of promises)
      if (files !== undefined)
        expect([id, ...files.toSorted()]).toEqual([
          id,
          ...[...new Set(tests.map(({ file }) => file))].toSorted(),
        ]);
  });
});

test('the page of faults names every scenario of the soak by its beginning, and no other', () => {
  const page = readFileSync(join(import.meta.dir, '..', 'faults', 'README.md'), 'utf8');
  const soaked = [...page.matchAll(/^\| [A-HLMP]\d+ +\|[^|]*\|[^|]+\|([^|]+)\|$/gm)];
  const beginnings = soaked.flatMap(([, cell = '']) =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name ?? ''),
  );
  const names = scenarios(30).map(({ name }) => name);
  expect(beginnings.filter((beginning) => !names.some((name) => name.startsWith(beginning)))).toEqual([]);
  expect(names.filter((name) => !beginnings.some((beginning) => name.startsWith(beginning)))).toEqual([]);
});

import { describe, expect, test } from 'bun:test';
import { readPromises, titlesById } from './promises.ts';

/** How many rows the groups of the pages of faults have: none goes unnoticed. */
const ROWS = {
  'faults A': 18,
  'faults B': 14,
  'faults C': 13,
  'faults D': 12,
  'faults E': 7,
  'faults F': 20,
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

import { expect, test } from 'bun:test';
import { dueMsBy } from '../../../gateway/methods/table.ts';

test('A17 a class has the deadline of its key, and what has none is light', () => {
  const due = { light: 10_000, meta: 10_000, asset: 10_000, history: 30_000, scan: 300_000, write: 20_000 };
  expect(dueMsBy({ light: 10_000, history: 30_000, scan: 300_000, send: 20_000 })).toEqual(due);
});

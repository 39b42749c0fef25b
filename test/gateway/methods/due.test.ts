import { expect, test } from 'bun:test';
import { dueMsBy } from '../../../gateway/methods/table.ts';

const deadlinesMs = { light: 10_000, history: 30_000, scan: 300_000, send: 20_000 };

test('A17 a class has the deadline of its key, and what has none is light', () => {
  const due = { light: 10_000, meta: 10_000, asset: 10_000, history: 30_000, scan: 300_000, write: 20_000 };
  expect(dueMsBy({ deadlinesMs, idleMs: 120_000 })).toEqual(due);
});

test('two attempts end before the listener cuts an idle connection, but those of a scan', () => {
  const due = { light: 1_000, meta: 1_000, asset: 1_000, history: 1_000, scan: 300_000, write: 1_000 };
  expect(dueMsBy({ deadlinesMs, idleMs: 2_000 })).toEqual(due);
});

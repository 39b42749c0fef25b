import { expect, test } from 'bun:test';
import { agavePage, blockText, createHistory, heldSlots, isOlder, rowText } from './history.ts';

const shape = { seed: 7, slots: 90, epochSlots: 20, addresses: ['a', 'b'] };
const history = createHistory(shape);

test('the scripted chain is the same for the same seed; its transactions are newest first, in slots that have a block', () => {
  expect(createHistory(shape)).toEqual(history);
  expect(createHistory({ ...shape, seed: 8 })).not.toEqual(history);
  const { transactions, slots } = history;
  expect(transactions.length).toBeGreaterThan(50);
  expect(new Set(transactions.map(({ signature }) => signature)).size).toBe(transactions.length);
  expect(transactions.every(({ slot }) => slots.includes(slot))).toBe(true);
  expect(transactions.every((each, i) => i === 0 || isOlder(each, transactions[i - 1] ?? each))).toBe(true);
  const held = heldSlots(history, { floor: 30, top: 50 }, 20, 40);
  expect(held).toEqual(slots.filter((slot) => slot >= 30 && slot <= 40));
});

test('a row shows whether its bytes are kept, and a block names the block before it, whatever was skipped between', () => {
  const rows = history.transactions.map((each) => rowText(each)).join();
  expect(rows).toContain('18446744073709551615');
  expect(rows).toContain('\\u0041\\/b');
  const parents = history.slots.map((slot) => JSON.parse(blockText(history, slot)).parentSlot);
  expect(parents).toEqual([0, ...history.slots.slice(0, -1)]);
});

test('a cursor that is not held is an error since 4.0, and before it an empty page or nothing', () => {
  const held = { floor: 80, top: 90 };
  const old = history.transactions.at(-1)?.signature;
  const page = (cursors: object, strict: boolean) =>
    agavePage(history, held, { address: 'a', limit: 9, ...cursors }, strict);
  expect(page({ before: old }, true)).toEqual({ kind: 'unknown', cursor: old });
  expect(page({ until: old }, true)).toEqual({ kind: 'unknown', cursor: old });
  expect(page({ before: old }, false)).toEqual({ kind: 'rows', rows: [] });
  expect(page({ until: old }, false)).toEqual(page({}, true));
});

import { expect, test } from 'bun:test';
import { type Cell, createCells } from '../../../gateway/usage/cells.ts';
import { callerOf, CALLER, rowOf, startUsage } from './started.ts';

/** What the flush does to cells, without a ledger. */
function written(cells: ReturnType<typeof createCells>, ...some: readonly Cell[]) {
  for (const cell of some) {
    cell.isDirty = false;
    cells.dirty.delete(cell);
  }
}

test('a cell is found again by hour, key and method, and no other is it', () => {
  const cells = createCells();
  const cell = cells.of(1, CALLER, 'getSlot');
  expect(cells.of(1, CALLER, 'getSlot')).toBe(cell);
  for (const other of [
    cells.of(2, CALLER, 'getSlot'),
    cells.of(1, callerOf(2), 'getSlot'),
    cells.of(1, CALLER, 'x'),
  ])
    expect(other).not.toBe(cell);
});

test('a key that is not used for a minute leaves memory, one that is used or not yet written does not', () => {
  const cells = createCells();
  const [idle, used, unwritten] = [1, 2, 3].map((id) => cells.of(1, callerOf(id), 'getSlot'));
  if (idle === undefined || used === undefined || unwritten === undefined) throw new Error('unreachable');
  for (const cell of [idle, used, unwritten]) cells.touch(cell);
  written(cells, idle, used);
  for (let turn = 0; turn < 60; turn++) cells.sweep();
  expect([idle.isGone, used.isGone, unwritten.isGone]).toEqual([false, false, false]);
  cells.touch(used);
  written(cells, used);
  for (let turn = 0; turn < 3; turn++) cells.sweep();
  expect([idle.isGone, used.isGone, unwritten.isGone]).toEqual([true, false, false]);
});

test('above 20,000 keys whatever is written leaves memory at once', () => {
  const cells = createCells();
  const all = Array.from({ length: 30_000 }, (_, id) => cells.of(1, callerOf(id), 'getSlot'));
  for (const cell of all) {
    cell.calls = 2;
    cells.touch(cell);
  }
  cells.sweep();
  expect(all.filter(({ isGone }) => isGone)).toEqual([]);
  written(cells, ...all);
  for (let turn = 0; turn < 3; turn++) cells.sweep();
  expect(all.filter(({ isGone }) => !isGone).length).toBe(20_000);
});

test('above 2,048 keys one that was called for once leaves memory as soon as it is written', () => {
  const cells = createCells();
  const [once, twice, few] = [0, 1, 2].map((part) =>
    Array.from({ length: 2_000 }, (_, id) => cells.of(1, callerOf(part * 10_000 + id), 'getSlot')),
  );
  if (once === undefined || twice === undefined || few === undefined) throw new Error('unreachable');
  for (const [at, part] of [once, twice, few].entries()) {
    for (const cell of part) {
      cell.calls = at === 1 ? 2 : 1;
      cells.touch(cell);
    }
  }
  written(cells, ...once, ...twice);
  for (let turn = 0; turn < 3; turn++) cells.sweep();
  const left = [once, twice, few].map((part) => part.filter(({ isGone }) => isGone).length);
  expect(left).toEqual([2_000, 0, 0]);
});

test('when the ledger takes no writes for very long, memory is bounded and what is lost is known', () => {
  const cells = createCells();
  const caller = (id: number) => ({ ...CALLER, keyId: `${id}` as typeof CALLER.keyId }); // any text is an id here
  for (let id = 0; id < 200_000; id++) cells.touch(cells.of(1, caller(id), 'getSlot'));
  expect([cells.dirty.size, cells.lost()]).toEqual([200_000, 0]);
  cells.touchWithJournal(cells.of(1, caller(-1), 'getSlot'));
  expect([cells.dirty.size, cells.withJournal.size, cells.lost()]).toEqual([200_000, 0, 1]);
});

test('a stream that outlives its cell in memory is counted to the byte', async () => {
  using usage = startUsage();
  const begin = () => {
    const counted = usage.usage.begin(CALLER, [{ label: 'getBlock', credits: 1 }]);
    counted.admit();
    return counted;
  };
  const over = new AbortController();
  const tending = usage.usage.tend(over.signal);
  const stream = begin();
  stream.bytes(0, 100);
  for (let second = 0; second < 65; second++) {
    usage.advance(1_000);
    await new Promise(setImmediate);
  }
  // Another request makes the cell anew, and both count into it.
  begin().bytes(0, 1);
  stream.bytes(0, 10);
  usage.usage.flush();
  stream.bytes(0, 1_000);
  usage.usage.flush();
  expect(usage.rows()).toEqual([rowOf('getBlock', { calls: 2, credits: 2, bytes_out: 1_111 })]);
  over.abort();
  await tending;
});

test('what is lost is said once a turn', async () => {
  using usage = startUsage();
  const mend = usage.break('usage_hours');
  const over = new AbortController();
  const tending = usage.usage.tend(over.signal);
  const turn = async () => {
    usage.advance(1_000);
    await new Promise(setImmediate);
  };
  for (let id = 0; id < 200_003; id++)
    usage.usage.refused({ ...CALLER, keyId: `${id}` as typeof CALLER.keyId }); // any text is an id here
  await turn();
  await turn();
  expect(usage.lost).toEqual([3]);
  mend();
  over.abort();
  await tending;
});

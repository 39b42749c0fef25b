import { describe, expect, test } from 'bun:test';
import { wishOf } from '../../../gateway/upstream/selection.ts';
import type { MethodClass } from '../../../gateway/methods/table.ts';

const wish = (params: string | undefined, kind: MethodClass = 'light', method = 'getBalance') =>
  wishOf(
    {
      kind: 'call',
      id: new Uint8Array(),
      method,
      params: params === undefined ? undefined : new TextEncoder().encode(params),
    },
    kind,
  );

describe('what a call wishes of the chain', () => {
  test.each([
    [undefined, 'finalized', 0],
    ['[]', 'finalized', 0],
    ['["x"]', 'finalized', 0],
    ['["x",{"commitment":"processed"}]', 'processed', 0],
    ['["x",{ "commitment" : "confirmed" }]', 'confirmed', 0],
    ['["x",{"minContextSlot":314,"commitment":"finalized"}]', 'finalized', 314],
    ['["x",{"minContextSlot":314}]', 'finalized', 314],
    ['["x",{"minContextSlot":"314"}]', 'finalized', 0],
    ['["x",{"minContextSlot":-1}]', 'finalized', 0],
  ] as const)('%p', (params, commitment, slotMin) => {
    expect(wish(params)).toEqual({ commitment, slotMin });
  });

  test('at a commitment that no node knows is not compared at all', () => {
    expect(wish('["x",{"commitment":"recent"}]').commitment).toBeUndefined();
    expect(wish('["x",{"commitment":7}]').commitment).toBeUndefined();
  });

  test('whose commitment is escaped or stands twice is not compared at all', () => {
    expect(wish('["x",{"comm\\u0069tment":"processed"}]').commitment).toBeUndefined();
    expect(wish('["x",{"commitment":"processed","commitment":"finalized"}]').commitment).toBeUndefined();
  });

  test('of the statuses is at the newest bank, whatever it says', () => {
    expect(wish('[["s"],{"commitment":"finalized"}]', 'light', 'getSignatureStatuses').commitment).toBe(
      'processed',
    );
  });

  test('of history and of sends has no commitment, but may have a slot', () => {
    expect(wish('["a"]', 'history')).toEqual({ commitment: undefined, slotMin: 0 });
    expect(wish('["a",{"minContextSlot":5}]', 'history').slotMin).toBe(5);
    expect(wish('["tx",{"minContextSlot":9}]', 'write')).toEqual({ commitment: undefined, slotMin: 9 });
  });

  test('in parameters beyond 64 KB is not looked for', () => {
    expect(wish(`["${'x'.repeat(70_000)}",{"commitment":"processed"}]`).commitment).toBe('finalized');
  });
});

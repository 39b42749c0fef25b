import { describe, expect, test } from 'bun:test';
import type { MethodClass } from '../../../gateway/methods/table.ts';
import { createVirtualClock } from '../virtual-clock.ts';
import { backendOf, forwardOf } from './of.ts';

/** Of two backends, because with one there is nothing to choose. */
const { pool } = forwardOf([backendOf(), backendOf()], createVirtualClock().clock);

function need(params: string | undefined, kind: MethodClass = 'light', method = 'getBalance') {
  const bytes = params === undefined ? undefined : new TextEncoder().encode(params);
  const { commitment, slotMin } = pool.needOf(
    { kind: 'call', id: new Uint8Array(), method, params: bytes },
    kind,
    1,
  );
  return { commitment, slotMin };
}

describe('what a call needs of the chain', () => {
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
    expect(need(params)).toEqual({ commitment, slotMin });
  });

  test('at a commitment that no node knows is not compared at all', () => {
    expect(need('["x",{"commitment":"recent"}]').commitment).toBeUndefined();
    expect(need('["x",{"commitment":7}]').commitment).toBeUndefined();
  });

  test('whose commitment is escaped, stands twice or has no name is not compared at all', () => {
    expect(need('["x",["processed"]]').commitment).toBeUndefined();
    expect(need('["x",["confirmed"]]').commitment).toBeUndefined();
    expect(need('["x",{"comm\\u0069tment":"processed"}]').commitment).toBeUndefined();
    expect(need('["x",{"commitment":"processed","commitment":"finalized"}]').commitment).toBeUndefined();
  });

  test('of the statuses is at the newest bank, whatever it says', () => {
    expect(need('[["s"],{"commitment":"finalized"}]', 'light', 'getSignatureStatuses').commitment).toBe(
      'processed',
    );
  });

  test('of history and of sends has no commitment, but may have a slot', () => {
    expect(need('["a"]', 'history')).toEqual({ commitment: undefined, slotMin: 0 });
    expect(need('["a",{"minContextSlot":5}]', 'history').slotMin).toBe(5);
    expect(need('["tx",{"minContextSlot":9}]', 'write')).toEqual({
      commitment: undefined,
      slotMin: 9,
    });
  });

  test.each(['getBundleStatuses', 'simulateBundle', 'aVendorsOwn'])(
    'of %s, which no plain node knows, is not compared: what it shows may not be finalized',
    (method) => {
      expect(need('[["x"]]', 'light', method).commitment).toBeUndefined();
    },
  );

  test('in parameters beyond 64 KB is not looked for, and not taken for finalized', () => {
    expect(need(`["${'x'.repeat(70_000)}",{"commitment":"processed"}]`).commitment).toBeUndefined();
  });
});

import { describe, expect, test } from 'bun:test';
import { type Backend, HEALTHY } from '../../../gateway/upstream/backend.ts';
import { ACCOUNT_ABC, backendOf, forwardOf } from './of.ts';
import { createVirtualClock } from '../virtual-clock.ts';
import { declaredUnknown, METHODS } from '../../../gateway/methods/table.ts';
import { createMonotonicReads, RetryBudget } from '../../../gateway/upstream/selection.ts';

const three = () => [backendOf({ name: 'a' }), backendOf({ name: 'b' }), backendOf({ name: 'c' })] as const;

function names(all: readonly Backend[], clock = createVirtualClock().clock, slotMin = 0): string {
  return forwardOf(all, clock)
    .pool.inOrder(all, { accountId: ACCOUNT_ABC, commitment: 'confirmed', slotMin })
    .map(({ config }) => config.name)
    .join(' ');
}

describe('the order in which backends are asked', () => {
  test("is the account's, wherever they stand in the config", () => {
    const [a, b, c] = three();
    expect(names([a, b, c])).toBe('a b c');
    expect(names([c, b, a])).toBe('a b c');
  });

  test('puts one that failed last until its penalty is over, and the others stay as they are', () => {
    const { clock, advance } = createVirtualClock();
    const [a, b, c] = three();
    a.markFailed(clock);
    expect(names([a, b, c], clock)).toBe('b c a');
    advance(1_000);
    expect(names([a, b, c], clock)).toBe('a b c');
  });

  test('puts one that is left out last: late before failing, and of the late ones the newest first', () => {
    const [a, b, c] = three();
    a.health = { ...HEALTHY, excludedBecause: 'unreachable' };
    b.health = { ...HEALTHY, excludedBecause: 'lagging' };
    expect(names([a, b, c])).toBe('c b a');
    c.health = { ...HEALTHY, excludedBecause: 'stalled' };
    [b.slots.tip.confirmed, c.slots.tip.confirmed] = [100, 90];
    expect(names([a, b, c])).toBe('b c a');
    c.slots.tip.confirmed = 110;
    expect(names([a, b, c])).toBe('c b a');
  });

  test('gives one that came back its callers little by little', () => {
    const clock = createVirtualClock();
    const [a, b] = three();
    a.health = { ...HEALTHY, backAtMs: clock.clock.monotonic() };
    const { pool } = forwardOf([a, b], clock.clock);
    const callers = () => {
      const firsts = [...Array(1_000).keys()].map(
        (id) => pool.inOrder([a, b], { accountId: id, commitment: 'confirmed', slotMin: 0 })[0],
      );
      return firsts.filter((first) => first === a).length;
    };
    expect(callers()).toBe(0);
    clock.advance(5_000);
    expect(callers()).toBeWithin(1, 499);
    clock.advance(5_000);
    expect(callers()).toBeWithin(450, 550);
    expect(names([a, b], clock.clock)).toBe('a b');
  });

  test('asks a backend without the commitment processed last for it', () => {
    const cloudbreak = backendOf({ name: 'a', profile: 'cloudbreak' });
    const agave = backendOf({ name: 'b' });
    const { clock } = createVirtualClock();
    const { pool } = forwardOf([], clock);
    const at = (commitment: 'processed' | 'confirmed') =>
      pool.inOrder([cloudbreak, agave], { accountId: ACCOUNT_ABC, commitment, slotMin: 0 })[0]?.config.name;
    expect([at('confirmed'), at('processed')]).toEqual(['a', 'b']);
  });
});

/** Of two backends, because with one there is nothing to choose. */
const { pool } = forwardOf([backendOf(), backendOf()], createVirtualClock().clock);

function need(params: string | undefined, method = 'getBalance') {
  const bytes = params === undefined ? undefined : new TextEncoder().encode(params);
  const { commitment, slotMin } = pool.needOf(
    { kind: 'call', id: new Uint8Array(), method, params: bytes },
    METHODS.get(method) ?? declaredUnknown(method),
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
    ['["x",{\n  "minContextSlot": 314\n}]', 'finalized', 314],
    ['["x",{"minContextSlot":314\t,"encoding":"base64"}]', 'finalized', 314],
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
    expect(need('[["s"],{"commitment":"finalized"}]', 'getSignatureStatuses').commitment).toBe('processed');
  });

  test('of history and of sends has no commitment, but may have a slot', () => {
    expect(need('["a"]', 'getBlock')).toEqual({ commitment: undefined, slotMin: 0 });
    expect(need('["a",{"minContextSlot":5}]', 'getBlock').slotMin).toBe(5);
    expect(need('["tx",{"minContextSlot":9}]', 'sendTransaction')).toEqual({
      commitment: undefined,
      slotMin: 9,
    });
  });

  test.each(['getBundleStatuses', 'simulateBundle', 'aVendorsOwn'])(
    'of %s, which no plain node knows, is not compared: what it shows may not be finalized',
    (method) => {
      expect(need('[["x"]]', method).commitment).toBeUndefined();
    },
  );

  test('in parameters beyond 64 KB is not looked for, and not taken for finalized', () => {
    expect(need(`["${'x'.repeat(70_000)}",{"commitment":"processed"}]`).commitment).toBeUndefined();
  });
});

test('it is kept for a minute after the last answer, and forgotten within two', () => {
  const { clock, advance } = createVirtualClock();
  const seen = createMonotonicReads(clock);
  seen.note(1, 'processed', 100);
  advance(59_000);
  expect(seen.highest(1, 'processed')).toBe(100);
  seen.note(1, 'processed', 101);
  advance(59_000);
  expect(seen.highest(1, 'processed')).toBe(101);
  advance(70_000);
  expect(seen.highest(1, 'processed')).toBe(0);
});

test('one absurd slot is forgotten within two minutes, however active the account is, at every commitment', () => {
  const { clock, advance } = createVirtualClock();
  const seen = createMonotonicReads(clock);
  seen.note(1, 'processed', 1e14);
  seen.note(1, 'finalized', 1e14);
  for (let slot = 100; slot < 112; slot++) {
    advance(10_000);
    seen.note(1, 'processed', slot);
  }
  expect([seen.highest(1, 'processed'), seen.highest(1, 'finalized')]).toEqual([111, 0]);
});

function taken(budget: RetryBudget): number {
  let count = 0;
  while (budget.take()) count++;
  return count;
}

test('a quiet pool has two hundred retries, enough for the calls that a dying node takes along', () => {
  expect(taken(new RetryBudget())).toBe(200);
});

test('in an outage of all there is one retry for each ten calls', () => {
  const budget = new RetryBudget();
  taken(budget);
  let retries = 0;
  for (let call = 0; call < 10_000; call++) {
    budget.deposit();
    if (budget.take()) retries++;
  }
  expect(Math.abs(retries - 1_000)).toBeLessThanOrEqual(1);
});

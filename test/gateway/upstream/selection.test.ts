import { describe, expect, test } from 'bun:test';
import { type Backend, HEALTHY } from '../../../gateway/upstream/backend.ts';
import { ACCOUNT_ABC, backendOf, callOf, forwardOf } from './of.ts';
import { createVirtualClock } from '../virtual-clock.ts';
import { declaredUnknown, METHODS } from '../../../shared/config/methods.ts';
import { createMonotonicReads, createRetryBudget } from '../../../gateway/upstream/selection.ts';

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

  test('takes one whose slot is not known for good', () => {
    const [a, b, c] = three();
    b.slots.tip.confirmed = 310;
    expect(names([a, b, c], createVirtualClock().clock, 300)).toBe('a b c');
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
  const known = METHODS.get(method) ?? declaredUnknown(method);
  const { commitment, slotMin } = pool.needOf(callOf(method, params ?? null), known, 1);
  return { commitment, slotMin };
}

const LONG = `["${'x'.repeat(70_000)}",{"commitment":"processed"}]`;
test.each<[string, string | undefined, string | undefined, number]>([
  ['getBalance', '["x"]', 'finalized', 0],
  ['getBalance', '["x",{"commitment":"processed"}]', 'processed', 0],
  ['getBalance', '["x",{"minContextSlot":314,"commitment":"finalized"}]', 'finalized', 314],
  ['getBalance', '["x",{"minContextSlot":314\t,"encoding":"base64"}]', 'finalized', 314],
  ['getBalance', '["x",{"minContextSlot":"314"}]', 'finalized', 0],
  ['getBalance', '["x",{"minContextSlot":-1}]', 'finalized', 0],
  // A commitment that no node knows, that is escaped, stands twice or has no name.
  ['getBalance', '["x",{"commitment":"recent"}]', undefined, 0],
  ['getBalance', '["x",["processed"]]', undefined, 0],
  ['getBalance', '["x",{"comm\\u0069tment":"processed"}]', undefined, 0],
  ['getBalance', '["x",{"commitment":"processed","commitment":"finalized"}]', undefined, 0],
  // The statuses are the newest bank's, whatever they say; history and sends have no commitment, but may have a slot.
  ['getSignatureStatuses', '[["s"],{"commitment":"finalized"}]', 'processed', 0],
  ['getBlock', '["a"]', undefined, 0],
  ['getBlock', '["a",{"minContextSlot":5}]', undefined, 5],
  ['sendTransaction', '["tx",{"minContextSlot":9}]', undefined, 9],
  // What a method that no plain node knows shows may not be finalized.
  ['getBundleStatuses', '[["x"]]', undefined, 0],
  ['aVendorsOwn', '[["x"]]', undefined, 0],
])('a call of %s with %p needs the commitment %p and the slot %p', (method, params, commitment, slotMin) => {
  expect<unknown>(need(params, method)).toEqual({ commitment, slotMin });
});

test('parameters beyond 64 KB are not searched, and not taken for finalized', () => {
  expect(need(LONG).commitment).toBeUndefined();
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

test('a quiet pool has two hundred retries, and in an outage of all there is one for each ten calls', () => {
  const budget = createRetryBudget();
  let saved = 0;
  while (budget.take()) saved++;
  expect(saved).toBe(200);
  let retries = 0;
  for (let call = 0; call < 10_000; call++) {
    budget.deposit();
    if (budget.take()) retries++;
  }
  expect(Math.abs(retries - 1_000)).toBeLessThanOrEqual(1);
});

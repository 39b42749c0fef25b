import { expect, test } from 'bun:test';
import { StatedCredits } from '../../../gateway/limits/charge.ts';
import { CreditLease } from '../../../gateway/limits/credit-lease.ts';
import type { CreditGrant, RateGrant } from '../../../gateway/limits/messages.ts';
import { RateLease } from '../../../gateway/limits/rate-lease.ts';

const CREDITS: CreditGrant = {
  allowance: 0,
  available: 0,
  heldByOthers: 0,
  taken: new Map(),
  recalled: false,
  learning: false,
};
const RATE: RateGrant = {
  granted: 0,
  spent: 0,
  immediate: 0,
  lifeMs: 1_000,
  waitMs: 0,
  remaining: 50,
  nodes: 2,
  weights: 2,
};

/** The credits of an account whose requests cost 10, and what is found for a price; nothing is under way. */
function credits(grant: Partial<CreditGrant>) {
  const lease = new CreditLease({ charged: 0, refunded: 0 }, new StatedCredits(1_000), 0);
  lease.offer(10, 0);
  lease.report(0);
  lease.settle({ ...CREDITS, ...grant }, 0);
  return { lease, look: (price: number, nowMs: number) => lease.look(price, nowMs, true, false) };
}

test('tokens that a message returns cannot be spent before its reply', () => {
  const lease = new RateLease({ rps: 100, burst: 100, debtMax: 0 }, 0.5, 0);
  const look = (nowMs: number) => lease.look(1, nowMs, true, false, false);
  lease.report(0, 60);
  lease.settle({ ...RATE, granted: 20 }, 1);
  expect(look(300)).toBe('lease');
  // No request came for longer than messages are apart: all of it is returned.
  expect(lease.report(300, 60)).toMatchObject({ wanted: 0 });
  expect(look(301)).toBe('ask');
  lease.settle(undefined, 302);
  expect(lease.held(303)).toBe(0);
});

test('credits that a message returns cannot be charged before its reply, and are not gone meanwhile', () => {
  const { lease, look } = credits({ allowance: 100 });
  expect([look(50, 1), look(150, 1)]).toEqual(['enough', 'out']);
  expect(lease.report(2)).toMatchObject({ wanted: 10 });
  expect([look(10, 3), look(50, 3)]).toEqual(['enough', 'ask']);
  lease.settle(undefined, 4);
  expect(lease.allowance).toBe(10);
});

test('no credits are left only where a grant of this moment and of this allowance says so', () => {
  const found = (change?: (lease: CreditLease) => void) => {
    const { lease, look } = credits({});
    expect([look(1, 0), look(1, 249)]).toEqual(['out', 'out']);
    change?.(lease);
    return look(1, change === undefined ? 250 : 249);
  };
  expect(found()).toBe('ask');
  expect(found((lease) => lease.setTotal(2_000))).toBe('ask');
  expect(found((lease) => lease.unconfirm())).toBe('ask');
  expect(credits({ heldByOthers: 1 }).look(1, 0)).toBe('later');
  expect(credits({ learning: true }).look(1, 0)).toBe('unavailable');
});

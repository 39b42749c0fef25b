import { expect, test } from 'bun:test';
import { CreditLease } from '../../../gateway/cluster/credit-lease.ts';
import { createLeases } from '../../../gateway/cluster/leases.ts';
import type { CreditGrant } from '../../../gateway/cluster/messages.ts';
import { RateLease } from '../../../gateway/cluster/rate-lease.ts';
import { journalOf } from './world.ts';
import { callerOf, planOf } from '../usage/started.ts';

test('when more new accounts come than can be reported, the rest waits for a reply and memory is bounded', () => {
  const journal = journalOf({ charged: 0, refunded: 0 });
  const accounts = createLeases({ journal, revision: () => 1, share: 0.5 });
  const price = { calls: 1, credits: 0 };
  const decide = (accountId: number, nowMs: number) => {
    const account = accounts.accountOf(callerOf(accountId), planOf(100), nowMs, price);
    return account && accounts.decide(account, price, nowMs, 0, false);
  };
  const CALLS = 50_000;
  let charged = 0;
  for (let id = 0; id < CALLS; id++) if (decide(id, 1_000) !== 'ask-rate') charged++;
  expect(charged).toBeLessThanOrEqual(16_384);
  // Those that were refused in the end owe nothing: two seconds later they leave memory, and only those that owe stay.
  for (const [nowMs, size] of [
    [2_999, CALLS],
    [3_000, charged],
  ] as const) {
    for (let turn = 0; turn < 2; turn++) accounts.forgetIdle(nowMs, CALLS + 1);
    expect(accounts.size()).toBe(size);
  }
  // The store has a report of all: there is room again.
  while (accounts.collect(20_100, 60, 256, true).length > 0);
  expect(decide(CALLS, 20_200)).toMatchObject({ kind: 'charged' });
});

test('tokens that a message returns cannot be spent before its reply', () => {
  const lease = new RateLease({ rps: 100, burst: 100, debtMax: 0 }, 0.5, 0);
  const check = (nowMs: number) => lease.check(1, nowMs, true, false, false).kind;
  lease.report(0, 60);
  const grant = { granted: 20, spent: 0, immediate: 0, lifeMs: 1_000, waitMs: 0, remaining: 50 };
  lease.hear({ ...grant, nodes: 2, weights: 2 }, 1);
  expect(check(300)).toBe('lease');
  // No request came for longer than messages are apart: all of it is returned.
  expect(lease.report(300, 60)).toMatchObject({ wanted: 0 });
  expect(check(301)).toBe('ask');
  lease.hear(undefined, 302);
  expect(lease.held(303)).toBe(0);
});

/** The credits of an account after a grant of none. */
function credits(grant: Partial<CreditGrant>) {
  const lease = new CreditLease({ charged: 0, refunded: 0 }, 1_000, 0);
  lease.report(0);
  const nothing = { allowance: 0, available: 0, heldByOthers: 0, recalled: false, learning: false };
  lease.hear({ ...nothing, taken: new Map(), ...grant }, 0);
  return { lease, check: (nowMs: number, price = 1) => lease.check(price, nowMs, true, false) };
}

test('credits that a message returns cannot be charged before its reply, and are not gone meanwhile', () => {
  const { lease, check } = credits({ allowance: 100 });
  lease.offer(10, 0);
  expect([check(1, 50), check(1, 150)]).toEqual(['enough', 'out']);
  expect(lease.report(2)).toMatchObject({ wanted: 10 });
  expect([check(3, 10), check(3, 50)]).toEqual(['enough', 'ask']);
  lease.hear(undefined, 4);
  expect(lease.allowance).toBe(10);
});

test('no credits are left only where a grant of this moment and of this allowance says so', () => {
  const found = (change?: (lease: CreditLease) => void) => {
    const { lease, check } = credits({});
    expect([check(0), check(249)]).toEqual(['out', 'out']);
    change?.(lease);
    return check(change === undefined ? 250 : 249);
  };
  expect(found()).toBe('ask');
  expect(found((lease) => lease.setTotal(2_000))).toBe('ask');
  expect(found((lease) => lease.unconfirm())).toBe('ask');
  expect(credits({ heldByOthers: 1 }).check(0)).toBe('later');
  expect(credits({ learning: true }).check(0)).toBe('unavailable');
});

import { expect, test } from 'bun:test';
import { createLeases } from '../../../gateway/lease/leases.ts';
import { hashOf, keyIdOf, makeApiKey } from '../../../shared/keys/api-key.ts';

const PLAN = { rps: 100, burst: 100, credits: undefined, batchMax: 1, scans: 1 };
const PRICE = { calls: 1, credits: 0 };
const KEY_ID = keyIdOf(hashOf(makeApiKey((bytes) => new Uint8Array(bytes))));
const PATIENCE = { rate: true, credits: true, storeOut: false };

test('when more new accounts come than the centre can be told of, the rest waits for it and memory is bounded', () => {
  const leases = createLeases({
    spendingOf: () => ({ charged: 0, refunded: 0 }),
    revision: () => 1,
    share: 0.5,
  });
  const decide = (accountId: number, nowMs: number) => {
    const caller = { keyId: KEY_ID, accountId, plan: 'p', creditsGranted: undefined };
    const account = leases.accountOf(caller, PLAN, nowMs);
    leases.offer(account, caller, PRICE, nowMs);
    return leases.decide(account, PRICE, nowMs, PATIENCE).kind;
  };
  const CALLS = 50_000;
  const kinds = new Map<string, number>();
  for (let id = 0; id < CALLS; id++) {
    const kind = decide(id, 1_000);
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  }
  expect(kinds.get('taken')).toBeLessThanOrEqual(16_384);
  expect(kinds.get('ask')).toBe(CALLS - (kinds.get('taken') ?? 0));
  // Those that were refused in the end owe nothing: at rest they leave memory, and only those that owe stay.
  for (let turn = 0; turn < 2; turn++) leases.forgetIdle(20_000, CALLS + 1);
  expect(leases.size).toBe(kinds.get('taken') ?? 0);
  // The centre was told of all: there is room again.
  while (leases.collect(20_100, 60, 256).rates.length > 0);
  expect(decide(CALLS, 20_200)).toBe('taken');
});

test('of more than 2,048 accounts, those asked for once are forgotten in a quarter of a second, those that come again stay', () => {
  const leases = createLeases({
    spendingOf: () => ({ charged: 0, refunded: 0 }),
    revision: () => 1,
    share: 1,
  });
  const caller = (accountId: number) => ({ keyId: KEY_ID, accountId, plan: 'p', creditsGranted: undefined });
  const remembered = (accounts: number, calls: (id: number) => number) => {
    for (let id = 0; id < accounts; id++) {
      const account = leases.accountOf(caller(id), PLAN, 0);
      for (let call = 0; call < calls(id); call++) {
        leases.offer(account, caller(id), PRICE, 0);
        leases.decide(account, PRICE, 0, PATIENCE);
      }
      account.rate.granted = account.rate.spent; // the centre was told, and nothing is held
    }
    for (let turn = 0; turn < 2; turn++) leases.forgetIdle(249, accounts + 1);
    expect(leases.size).toBe(accounts);
    for (let turn = 0; turn < 2; turn++) leases.forgetIdle(250, accounts + 1);
    const { size } = leases;
    for (let turn = 0; turn < 2; turn++) leases.forgetIdle(15_000, accounts + 1);
    expect(leases.size).toBe(0);
    return size;
  };
  expect(remembered(2_000, () => 1)).toBe(2_000);
  expect(remembered(10_000, (id) => (id % 10 === 0 ? 2 : 1))).toBeWithin(2_048, 2_100);
  expect(remembered(5_000, () => 2)).toBe(5_000);
});

test('an account whose calls are let in waits for the messages of others, and one whose calls are refused does not', () => {
  const leases = createLeases({
    spendingOf: () => ({ charged: 0, refunded: 0 }),
    revision: () => 1,
    share: 1,
  });
  const caller = { keyId: KEY_ID, accountId: 1, plan: 'p', creditsGranted: undefined };
  const account = leases.accountOf(caller, PLAN, 0);
  const call = (nowMs: number) => {
    leases.offer(account, caller, PRICE, nowMs);
    return leases.decide(account, PRICE, nowMs, PATIENCE).kind;
  };
  for (let nowMs = 0; nowMs < 500; nowMs += 10) {
    account.rate.granted = account.rate.spent; // nothing is held: every call is let in on debt
    expect(call(nowMs)).toBe('taken');
    expect(leases.isPressed(account, nowMs)).toBe(false);
  }
  account.rate.emptyUntilMs = 600;
  expect(call(500)).toBe('refused');
  expect(leases.isPressed(account, 500)).toBe(true);
});

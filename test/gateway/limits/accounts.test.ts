import { expect, test } from 'bun:test';
import { type Account, createAccounts, type Decision } from '../../../gateway/limits/accounts.ts';
import { hashOf, keyIdOf, makeApiKey } from '../../../shared/keys/api-key.ts';

const PLAN = { rps: 100, burst: 100, credits: undefined, batchMax: 1, scans: 1 };
const PRICE = { calls: 1, credits: 0 };
const KEY_ID = keyIdOf(hashOf(makeApiKey((bytes) => new Uint8Array(bytes))));
const kindOf = (decision: Decision) => (typeof decision === 'string' ? decision : decision.kind);
/** The journal can be read. */
function known(account: Account | undefined): Account {
  if (account === undefined) throw new Error('the account is not known');
  return account;
}
const BUDGET = { rate: true, credits: true, storeOut: false };

test('when more new accounts come than can be reported, the rest waits for a reply and memory is bounded', () => {
  const accounts = createAccounts({
    spendingOf: () => ({ charged: 0, refunded: 0 }),
    revision: () => 1,
    share: 0.5,
  });
  const decide = (accountId: number, nowMs: number) => {
    const caller = { keyId: KEY_ID, accountId, plan: 'p', creditsGranted: undefined };
    const account = known(accounts.accountOf(caller, PLAN, nowMs));
    accounts.offer(account, caller, PRICE, nowMs);
    return kindOf(accounts.decide(account, PRICE, nowMs, BUDGET));
  };
  const CALLS = 50_000;
  const kinds = new Map<string, number>();
  for (let id = 0; id < CALLS; id++) {
    const kind = decide(id, 1_000);
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  }
  expect(kinds.get('charged')).toBeLessThanOrEqual(16_384);
  expect(kinds.get('ask-rate')).toBe(CALLS - (kinds.get('charged') ?? 0));
  // Those that were refused in the end owe nothing: at rest they leave memory, and only those that owe stay.
  for (let turn = 0; turn < 2; turn++) accounts.forgetIdle(20_000, CALLS + 1);
  expect(accounts.size()).toBe(kinds.get('charged') ?? 0);
  // The store has a report of all: there is room again.
  while (accounts.collect(20_100, 60, 256, true).length > 0);
  expect(decide(CALLS, 20_200)).toBe('charged');
});

test('of more than 2,048 accounts, those asked for once are forgotten in a quarter of a second, those that come again stay', () => {
  const accounts = createAccounts({
    spendingOf: () => ({ charged: 0, refunded: 0 }),
    revision: () => 1,
    share: 1,
  });
  const caller = (accountId: number) => ({ keyId: KEY_ID, accountId, plan: 'p', creditsGranted: undefined });
  const remembered = (many: number, calls: (id: number) => number) => {
    for (let id = 0; id < many; id++) {
      const account = known(accounts.accountOf(caller(id), PLAN, 0));
      for (let call = 0; call < calls(id); call++) {
        accounts.offer(account, caller(id), PRICE, 0);
        accounts.decide(account, PRICE, 0, BUDGET);
      }
      account.rate.granted = account.rate.spent; // it was reported, and nothing is held
    }
    for (let turn = 0; turn < 2; turn++) accounts.forgetIdle(249, many + 1);
    expect(accounts.size()).toBe(many);
    for (let turn = 0; turn < 2; turn++) accounts.forgetIdle(250, many + 1);
    const size = accounts.size();
    for (let turn = 0; turn < 2; turn++) accounts.forgetIdle(15_000, many + 1);
    expect(accounts.size()).toBe(0);
    return size;
  };
  expect(remembered(2_000, () => 1)).toBe(2_000);
  expect(remembered(10_000, (id) => (id % 10 === 0 ? 2 : 1))).toBeWithin(2_048, 2_100);
  expect(remembered(5_000, () => 2)).toBe(5_000);
});

test('an account whose calls are let in waits for the messages of others, and one whose calls are refused does not', () => {
  const accounts = createAccounts({
    spendingOf: () => ({ charged: 0, refunded: 0 }),
    revision: () => 1,
    share: 1,
  });
  const caller = { keyId: KEY_ID, accountId: 1, plan: 'p', creditsGranted: undefined };
  const account = known(accounts.accountOf(caller, PLAN, 0));
  const call = (nowMs: number) => {
    accounts.offer(account, caller, PRICE, nowMs);
    return kindOf(accounts.decide(account, PRICE, nowMs, BUDGET));
  };
  for (let nowMs = 0; nowMs < 500; nowMs += 10) {
    account.rate.granted = account.rate.spent; // nothing is held: every call is let in on debt
    expect(call(nowMs)).toBe('charged');
    expect(accounts.isOverdrawn(account, nowMs)).toBe(false);
  }
  account.rate.emptyUntilMs = 600;
  expect(call(500)).toBe('over-rate');
  expect(accounts.isOverdrawn(account, 500)).toBe(true);
});

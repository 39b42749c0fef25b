import { expect, test } from 'bun:test';
import { type Account, createLeases, type Decision } from '../../../gateway/limits/leases.ts';
import { callerOf } from '../usage/started.ts';

const PLAN = { rps: 100, burst: 100, credits: undefined, batchMax: 1, scans: 1, inFlight: 16 };
const PRICE = { calls: 1, credits: 0 };
const leasesOf = (share: number) =>
  createLeases({
    spendingOf: () => ({ charged: 0, refunded: 0 }),
    spentByOthers: () => new Map(),
    revision: () => 1,
    share,
  });
const kindOf = (decision: Decision) => (typeof decision === 'string' ? decision : decision.kind);
/** The journal can be read. */
function known(account: Account | undefined): Account {
  if (account === undefined) throw new Error('the account is not known');
  return account;
}

test('when more new accounts come than can be reported, the rest waits for a reply and memory is bounded', () => {
  const accounts = leasesOf(0.5);
  const decide = (accountId: number, nowMs: number) => {
    const account = known(accounts.accountOf(callerOf(accountId), PLAN, nowMs, PRICE));
    return kindOf(accounts.decide(account, PRICE, nowMs, 0, false));
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

test('an account is remembered for two seconds after its last call', () => {
  const remembered = (many: number, nowMs: number) => {
    const accounts = leasesOf(1);
    for (let accountId = 0; accountId < many; accountId++) accounts.accountOf(callerOf(accountId), PLAN, 0);
    for (let turn = 0; turn < 2; turn++) accounts.forgetIdle(nowMs, many + 1);
    return accounts.size();
  };
  expect([remembered(2_000, 1_999), remembered(2_000, 2_000)]).toEqual([2_000, 0]);
});

test('an account whose calls are let in waits for the messages of others, and one whose calls are refused does not', () => {
  const accounts = leasesOf(1);
  const caller = callerOf(1);
  const account = known(accounts.accountOf(caller, PLAN, 0));
  const call = (nowMs: number) => {
    accounts.accountOf(caller, PLAN, nowMs, PRICE);
    return kindOf(accounts.decide(account, PRICE, nowMs, 0, false));
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

import { expect, test } from 'bun:test';
import { type Account, type Accounts, createSharedCharging } from '../../../gateway/limits/accounts.ts';
import type { Price } from '../../../gateway/limits/charge.ts';
import { CALLER, LIMITED, rowOf, startUsage } from './started.ts';

/** Charges of an account that many processes charge, whose leases always suffice. */
function startShared() {
  const usage = startUsage();
  const { journal, clock } = usage;
  const spending = () => journal.spendingOf(CALLER.accountId);
  const accounts: Pick<Accounts, 'accountOf' | 'decide' | 'giveBack' | 'isOverdrawn'> = {
    accountOf: () => ({ id: CALLER.accountId, rate: { spent: 0, granted: 0 } }) as Account, // nothing else of it is looked at
    isOverdrawn: () => false,
    decide(_account, { credits }) {
      spending().charged += credits;
      return { kind: 'charged', rate: { plan: LIMITED, tokens: 1 }, creditsLeft: 9 };
    },
    giveBack: (_account, { credits }) => void (spending().refunded += credits),
  };
  const sync = { flushSoon: () => undefined, isOut: () => false };
  const charging = createSharedCharging(accounts as Accounts, sync, journal, clock); // what is called when leases suffice
  return {
    ...usage,
    charging,
    charge() {
      const counted = usage.usage.begin(CALLER, [{ label: 'getSlot', credits: 3 }]);
      const price: Price = { calls: 1, credits: 3, usageHook: counted };
      const charge = charging.charge(CALLER, LIMITED, price);
      usage.endTurn();
      return { counted, charge };
    },
  };
}

test('charges from leases are counted with the journal, and once', async () => {
  using usage = startShared();
  const { counted, charge } = usage.charge();
  expect([(await charge).kind, usage.spent()]).toEqual(['charged', 3]);
  counted.admit();
  usage.usage.flush();
  expect(usage.rows()).toEqual([rowOf('getSlot', { calls: 1, credits: 3, charged: 3 })]);
  usage.charging.refund(CALLER, LIMITED, { calls: 0, credits: 3 });
  counted.refund(0);
  usage.endTurn();
  expect(usage.spent()).toBe(0);
  expect(usage.rows()).toEqual([
    rowOf('getSlot', { calls: 1, credits: 3, refunded: 3, charged: 3, returned: 3 }),
  ]);
});

test('charges from leases that cannot be written are given back in usage too', async () => {
  using usage = startShared();
  const mend = usage.break('spent');
  expect((await usage.charge().charge).kind).toBe('credits-unavailable');
  mend();
  usage.journal.flush();
  expect(usage.spent()).toBe(0);
  expect(usage.rows()).toEqual([rowOf('getSlot', { credits: 3, refunded: 3, charged: 3, returned: 3 })]);
});

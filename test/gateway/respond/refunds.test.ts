import { expect, test } from 'bun:test';
import { NULL_ID, rpcError } from '../../../gateway/request/envelope.ts';
import { refundsOf } from '../../../gateway/respond/respond.ts';
import { callerOf, LIMITED, startUsage } from '../usage/started.ts';

test("D2 a call's price goes back to its account and out of its usage together, and once only", async () => {
  using started = startUsage();
  const { charging, journal, usage, spent, rows } = started;
  const { counted, charge } = started.charge(LIMITED, 'getSlot', 'getBalance');
  started.endTurn();
  expect((await charge).kind).toBe('charged');
  const answer = rpcError(-1, '', NULL_ID);
  const planned = { kind: 'answered', answer, credits: 1, label: 'getSlot' } as const;
  const refund = refundsOf(charging, {
    planned: [planned, planned],
    caller: callerOf(1),
    plan: LIMITED,
    usage: counted,
  });
  for (let times = 0; times < 3; times++) refund(1);
  journal.flush();
  usage.flush();
  expect(spent()).toBe(1);
  expect(rows().map(({ method, credits, refunded }) => ({ method, credits, refunded }))).toEqual([
    { method: 'getBalance', credits: 1, refunded: 1 },
    { method: 'getSlot', credits: 1, refunded: 0 },
  ]);
});

import { expect, test } from 'bun:test';
import type { Forward } from '../../../gateway/upstream/forward.ts';
import { withRules } from '../../../gateway/respond/rules.ts';
import type { Pool } from '../../../gateway/upstream/selection.ts';
import { callOf, contextOf, forwardOf, routeTo, textOf } from '../upstream/of.ts';
import { createVirtualClock } from '../virtual-clock.ts';

async function asked(method: string, rows: Partial<Pool>): Promise<readonly [string, number]> {
  const { pool } = forwardOf([], createVirtualClock().clock);
  const forward: Forward = async (_call, _route, { onSettled }) => {
    onSettled?.();
    return { kind: 'no-backend' };
  };
  let overs = 0;
  const context = contextOf({ onSettled: () => void overs++ });
  const rules = withRules(forward, { ...pool, ...rows });
  return [await textOf(await rules(callOf(method, null, '"7"'), routeTo([], method), context)), overs];
}

test("getHealth is the pool's", async () => {
  expect(await asked('getHealth', { isHealthy: () => true })).toEqual([
    '{"jsonrpc":"2.0","result":"ok","id":"7"}',
    1,
  ]);
  expect(await asked('getHealth', { isHealthy: () => false })).toEqual([
    '{"jsonrpc":"2.0","error":{"code":-32005,"message":"Node is unhealthy"},"id":"7"}',
    1,
  ]);
});

test.each(['getFirstAvailableBlock', 'minimumLedgerSlot'])("%s is the pool's floor", async (method) => {
  expect(await asked(method, { floor: () => 17 })).toEqual(['{"jsonrpc":"2.0","result":17,"id":"7"}', 1]);
  expect(await asked(method, { floor: () => 0 })).toEqual(['{"jsonrpc":"2.0","result":0,"id":"7"}', 1]);
});

test('while the floor is not known a node is asked for its own, as for every other method', async () => {
  expect(await asked('getFirstAvailableBlock', { floor: () => undefined })).toEqual(['no-backend', 1]);
  expect(await asked('getSlot', { floor: () => 17 })).toEqual(['no-backend', 1]);
});

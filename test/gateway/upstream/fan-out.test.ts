import { expect, test } from 'bun:test';
import { createRetryBudget } from '../../../gateway/upstream/selection.ts';
import { systemClock } from '../../../shared/clock.ts';
import { plain, startRawBackend } from '../../fakes/raw-backend.ts';
import { ACCOUNT_ABC, backendOf, callOf, contextOf, forwardOf, routeTo } from './of.ts';

test('a transaction that goes to three backends is one call for retries and for the time to its first byte', async () => {
  const ids = new Set<string>();
  using raw = startRawBackend(({ send, id }) => {
    ids.add(id);
    return send(plain(`{"jsonrpc":"2.0","result":"signature","id":${id}}`));
  });
  const backends = ['a', 'b', 'c'].map((name) => backendOf({ name, at: raw.url }));
  let [deposits, starts] = [0, 0];
  const budget = { ...createRetryBudget(), deposit: () => void deposits++ };
  const onResponseStart = () => void starts++;
  const { fanOut } = forwardOf(backends, systemClock, { budget, onResponseStart });
  const settled = Promise.withResolvers<void>();
  const context = { accountId: ACCOUNT_ABC, startedMs: systemClock.monotonic(), onSettled: settled.resolve };
  const route = routeTo(backends, 'sendTransaction');
  const reply = await fanOut(callOf('sendTransaction'), route, contextOf(context), 3);
  await settled.promise;
  expect([reply.kind, raw.calls(), ids.size, deposits, starts]).toEqual(['whole', 3, 3, 1, 1]);
});

import { expect, test } from 'bun:test';
import { createFanOut } from '../../../gateway/upstream/fan-out.ts';
import { RetryBudget } from '../../../gateway/upstream/selection.ts';
import { systemClock } from '../../../shared/clock.ts';
import { plain, startRawBackend } from '../../fakes/raw-backend.ts';
import { ACCOUNT_ABC, backendOf, forwardOf, routeTo } from './of.ts';

class CountedBudget extends RetryBudget {
  deposits = 0;
  override deposit(): void {
    this.deposits++;
    super.deposit();
  }
}

test('a transaction that goes to three backends is one call for retries and for the time to its first byte', async () => {
  using raw = startRawBackend(({ send }) => send(plain('{"jsonrpc":"2.0","result":"signature","id":7}')));
  const backends = ['a', 'b', 'c'].map((name) => backendOf({ name, at: raw.url }));
  const budget = new CountedBudget();
  let starts = 0;
  const onResponseStart = () => void starts++;
  const { forward, pool } = forwardOf(backends, systemClock, { budget, onResponseStart });
  const parts = { clock: systemClock, pool, budget, forward, onResponseStart };
  const fanOut = createFanOut({ ...parts, onFanOut: () => undefined });
  const text = (value: string) => new TextEncoder().encode(value);
  const settled = Promise.withResolvers<void>();
  const reply = await fanOut(
    { kind: 'call', id: text('7'), method: 'sendTransaction', params: text('["a"]') },
    routeTo(backends, 'sendTransaction'),
    {
      acceptEncoding: 'identity',
      signal: new AbortController().signal,
      accountId: ACCOUNT_ABC,
      startedMs: systemClock.monotonic(),
      onSettled: settled.resolve,
    },
    3,
  );
  await settled.promise;
  expect([reply.kind, raw.calls(), budget.deposits, starts]).toEqual(['whole', 3, 1, 1]);
});

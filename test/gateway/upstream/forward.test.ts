import { expect, test } from 'bun:test';
import { plain, startRawBackend } from '../../fakes/raw-backend.ts';
import { createVirtualClock } from '../virtual-clock.ts';
import { backendOf, callOf, contextOf, forwardOf, routeTo } from './of.ts';

test.each(['reset', 'end'] as const)(
  'a send is not sent a second time by the transport itself when a kept-alive connection ends with %s',
  async (how) => {
    using a = startRawBackend((connection) =>
      connection.nth > 1 ? connection[how]() : connection.send(plain('{"jsonrpc":"2.0","result":1,"id":1}')),
    );
    const { clock } = createVirtualClock();
    const backends = [backendOf({ at: a.url, clock })];
    const { forward } = forwardOf(backends, clock);
    const settled: string[] = [];
    const send = (method: string) =>
      forward(
        callOf(method),
        routeTo(backends, method),
        contextOf({ startedMs: clock.monotonic(), onSettled: () => void settled.push(method) }),
      );
    expect((await send('getSlot')).kind).toBe('whole');
    expect(await send('sendTransaction')).toEqual({ kind: 'maybe-sent' });
    // The second call went over the first one's connection, so a transport that retries would have.
    expect([a.calls(), a.connections(), settled]).toEqual([2, 1, ['getSlot', 'sendTransaction']]);
  },
);

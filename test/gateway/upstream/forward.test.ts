import { expect, test } from 'bun:test';
import { failure, type Script, startBackend } from '../../fakes/backend.ts';
import { plain, startRawBackend } from '../../fakes/raw-backend.ts';
import { createVirtualClock } from '../virtual-clock.ts';
import { ACCOUNT_ABC, backendOf, callOf, contextOf, forwardOf, routeTo, textOf } from './of.ts';

/** The way to backends a, b and so on, on a clock that stands still; `settled` are the calls that no backend works on any more. */
function started(...urls: readonly string[]) {
  const { clock } = createVirtualClock();
  const settled: string[] = [];
  const backends = urls.map((at, i) => backendOf({ name: 'abc'[i] ?? '', at, clock }));
  const { forward } = forwardOf(backends, clock);
  const send = (method: string) => {
    const onSettled = () => void settled.push(method);
    const context = contextOf({ accountId: ACCOUNT_ABC, startedMs: clock.monotonic(), onSettled });
    return forward(callOf(method), routeTo(backends, method), context);
  };
  return { send, settled };
}

const says =
  (code: number): Script =>
  (seen) =>
    failure(seen, code, `says ${code}`);

test.each<[string, Script, string]>([
  ['of the first, when the next has none that mends it', says(-32016), '"says -32005"'],
  ['of the first, when the next fails', () => new Response('', { status: 502 }), '"says -32005"'],
  ['of the next, when that is final', says(-32602), '"says -32602"'],
])('an error of the method is the answer: %s', async (_, next, part) => {
  await using a = startBackend(says(-32005));
  await using b = startBackend(next);
  const { send, settled } = started(a.url, b.url);
  expect(await textOf(await send('getBlock'))).toContain(part);
  expect(settled).toEqual(['getBlock']);
});

test.each(['reset', 'end'] as const)(
  'a send is not sent a second time by the transport itself when a kept-alive connection ends with %s',
  async (how) => {
    using a = startRawBackend((connection) =>
      connection.nth > 1 ? connection[how]() : connection.send(plain('{"jsonrpc":"2.0","result":1,"id":1}')),
    );
    const { send } = started(a.url);
    expect((await send('getSlot')).kind).toBe('whole');
    expect(await send('sendTransaction')).toEqual({ kind: 'maybe-sent' });
    // The second call went over the first one's connection, so a transport that retries would have.
    expect([a.calls(), a.connections()]).toEqual([2, 1]);
  },
);

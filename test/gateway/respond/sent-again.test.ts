import { expect, test } from 'bun:test';
import type { Forward, Reply } from '../../../gateway/upstream/forward.ts';
import { createCallPermits } from '../../../gateway/limits/calls.ts';
import { createScanPermits } from '../../../gateway/limits/scans.ts';
import { readEnvelope } from '../../../gateway/request/envelope.ts';
import { createSend, planCall } from '../../../gateway/respond/planned-call.ts';
import { createRespond } from '../../../gateway/respond/respond.ts';
import { createRouter } from '../../../gateway/upstream/selection.ts';
import { backendOf, directBy } from '../upstream/of.ts';
import { createVirtualClock } from '../virtual-clock.ts';
import { callerOf, LIMITED } from '../usage/started.ts';

const BODY =
  '[{"jsonrpc":"2.0","id":0,"method":"getSlot"},{"jsonrpc":"2.0","id":1,"method":"getBlock","params":[1]}]';
const whole = (text: string): Reply => ({
  kind: 'whole',
  bytes: new TextEncoder().encode(text),
  encoding: undefined,
});

const untilAborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));

/** A batch whose block is evicted once, because the call before it waits; what `again` says is the block's second reply. */
async function withAgain(again: Reply) {
  const told: string[] = [];
  const tell = (what: string) => (place: number) => void told.push(`${what} ${place}`);
  const evicted = Promise.withResolvers<void>();
  let blocks = 0;
  const forward: Forward = async ({ method }, _route, { onWait }) => {
    if (method === 'getBlock') {
      if (blocks++ > 0) return again;
      const body = {
        cancel: () => evicted.resolve(),
        pipe: () => Promise.reject(new Error('it was evicted')),
      };
      return { kind: 'stream', body, encoding: undefined };
    }
    const over = onWait?.();
    await evicted.promise;
    over?.();
    return whole('7');
  };
  const respond = createRespond({
    send: createSend(
      directBy(forward),
      forward,
      createScanPermits(),
      createVirtualClock().clock,
      (...[call, route, context]) => forward(call, route, context),
    ),
    codings: [],
    backendNames: undefined,
    charging: {
      refund: (_caller, _plan, { credits }) => void told.push(`${credits} back`),
      creditsLeft: () => undefined,
    },
    permits: createCallPermits(),
    onCall: (method, outcome) => void told.push(`${method} ${outcome}`),
    onOutcome: () => undefined,
    gather: untilAborted,
    beat: untilAborted,
  });
  const envelope = readEnvelope(Buffer.from(BODY), 10);
  if (envelope.kind !== 'batch') throw new Error(envelope.kind);
  const routeOf = createRouter([backendOf()]);
  const planned = envelope.elements.map((one) => planCall(one, routeOf, { default: 1, methods: new Map() }));
  const response = await respond({
    request: new Request('http://gateway/', { method: 'POST' }),
    peers: { timeout: () => undefined },
    envelope,
    planned,
    caller: callerOf(1),
    plan: LIMITED,
    credits: 2,
    charge: { kind: 'charged', rate: { plan: LIMITED, tokens: 1 } },
    usage: { answered: tell('timed'), bytes: () => undefined, error: tell('error'), refund: tell('refund') },
  });
  return { text: await response.text(), told };
}

test('a call that is sent again is answered and counted once', async () => {
  const { text, told } = await withAgain(whole('"block"'));
  expect(text).toBe('[7,"block"]');
  expect(told.toSorted()).toEqual(['getBlock answered', 'getSlot answered', 'timed 0', 'timed 1']);
});

test('a call that has no answer when it is sent again has an error, and its price comes back once', async () => {
  const { text, told } = await withAgain({ kind: 'no-backend' });
  expect(text).toBe('[7,{"jsonrpc":"2.0","error":{"code":-503,"message":"No backend available"},"id":1}]');
  expect(told.toSorted()).toEqual([
    '1 back',
    'error 1',
    'getBlock answered',
    'getBlock no-backend',
    'getSlot answered',
    'refund 1',
    'timed 0',
  ]);
});

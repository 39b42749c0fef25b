import { expect, test } from 'bun:test';
import type { CallReply } from '../../../gateway/upstream/failover.ts';
import type { CallContext, Forward } from '../../../gateway/upstream/forward.ts';
import { withHistory } from '../../../gateway/history/history.ts';
import { classify } from '../../../gateway/history/tiers.ts';
import { backendOf, callOf, contextOf, routeTo, streamOf, wholeOf } from '../upstream/of.ts';
import { createVirtualClock } from '../virtual-clock.ts';
import { caller } from './world.ts';

const bytesOf = (text: string) => new TextEncoder().encode(text);
const hot = backendOf({ name: 'hot' });
const archive = backendOf({ name: 'archive', lanes: ['archive'], profile: 'superbank' });
const whole = (result: string) => wholeOf(`{"jsonrpc":"2.0","result":${result},"id":7}`);

/** A forward that tells what it is given, and answers by the name of the first backend. */
function recorded(answers: Readonly<Record<string, CallReply>>) {
  const seen: { names: string[]; method: string; params: string; context: CallContext }[] = [];
  const forward: Forward = async ({ params = bytesOf('') }, { name, backends }, context) => {
    const names = backends.map(({ config }) => config.name);
    seen.push({ names, method: name, params: new TextDecoder().decode(params), context });
    const reply = answers[names[0] ?? ''] ?? { kind: 'no-backend' };
    if (reply.kind !== 'stream') context.onSettled?.();
    return reply;
  };
  return { seen, forward };
}

test.each([
  ['getSlot', [hot, archive]],
  ['getTransactionsForAddress', [hot, archive]],
  ['getBlock', [hot]],
  ['getTransaction', [archive]],
  ['getSignaturesForAddress', [hot]],
] as const)('%s with nothing to choose goes on as it is', async (method, backends) => {
  const given: unknown[] = [];
  const reply = whole('1');
  const forward: Forward = async (...args) => {
    given.push(...args);
    return reply;
  };
  const call = [callOf(method), routeTo(backends, method), contextOf()] as const;
  expect(await withHistory(forward, createVirtualClock().clock)(...call)).toBe(reply);
  for (const [i, each] of call.entries()) expect(given[i]).toBe(each);
});

test.each([
  ['pays when a backend has worked for him', whole('null'), { kind: 'caller-left' }],
  [
    'does not pay when nothing was sent',
    { kind: 'caller-left', unsent: true },
    { kind: 'caller-left', unsent: true },
  ],
] as const)('a caller who leaves %s', async (_, first, expected) => {
  const { forward } = recorded({ hot: first, archive: { kind: 'caller-left', unsent: true } });
  const { send } = caller(createVirtualClock().clock, forward);
  expect(await send([hot, archive], 'getTransaction', ['s'])).toEqual(expected);
});

test('a permit is held until the last byte of a stream that is passed on', async () => {
  const body = { pipe: async () => ({ kind: 'complete', bytes: 0 }) as const, cancel: () => undefined };
  const stream = streamOf(body);
  const { forward, seen } = recorded({ hot: whole('null'), archive: stream });
  const { overs, send } = caller(createVirtualClock().clock, forward);
  expect(await send([hot, archive], 'getTransaction', ['s'])).toBe(stream);
  expect(overs).toEqual([]);
  seen[1]?.context.onSettled?.();
  expect(overs).toEqual(['getTransaction']);
});

const failure = (code: number, message = 'x') =>
  `{"jsonrpc":"2.0","error":{"code":${code},"message":"${message}"},"id":7}\n`;
test.each([
  ['an id of null', '{"jsonrpc":"2.0","result":1,"id":null}', 'found'],
  ['a null', '{"jsonrpc":"2.0","result":null,"id":7}\n', 'null'],
  ['-32009', failure(-32009), 'lacking'],
  ['-32602', failure(-32602, 'Invalid param'), 'refused'],
  ['-32602 for a BigTable', failure(-32602, 'BigTable query failed (maybe timeout)'), 'lacking'],
  ['what is long', `{"result":"${'x'.repeat(8_192)}"}`, 'found'],
])('an answer is judged by what it says: %s', (_, body, kind) =>
  expect<string>(classify(wholeOf(body)).kind).toBe(kind),
);

import { expect, test } from 'bun:test';
import type { Element } from '../../../gateway/request/envelope.ts';
import { planCall } from '../../../gateway/respond/planned-call.ts';
import { createRouter } from '../../../gateway/upstream/selection.ts';
import { backendOf } from '../upstream/of.ts';

const bytesOf = (text: string) => new TextEncoder().encode(text);
const call = (method: string): Element => ({ kind: 'call', id: bytesOf('"a"'), method, params: undefined });
const PRICES = { default: 3, methods: new Map([['getSlot', 7]]) };
const routeOf = createRouter([backendOf({ lanes: ['state'] })]);

function planOf(element: Element) {
  const planned = planCall(element, routeOf, PRICES);
  return planned.kind === 'answered' ? new TextDecoder().decode(planned.answer.bytes) : planned.kind;
}

test('a call of a served method is forwarded as it is', () => {
  const element = call('getSlot');
  expect(planCall(element, routeOf, PRICES)).toMatchObject({
    kind: 'forward',
    call: element,
    route: { name: 'getSlot' },
    credits: 7,
  });
});

test('a notification is neither sent nor answered, whatever its method', () => {
  expect(planOf({ kind: 'notification' })).toBe('notification');
});

test('an invalid element is answered with its reason under its id', () => {
  expect(planOf({ kind: 'invalid', id: bytesOf('7'), reason: 'Invalid request: not an object' })).toBe(
    '{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request: not an object"},"id":7}',
  );
});

test.each([
  ['getNothing', 'Method not found'],
  ['getBlock', 'Method not found: no backend here serves getBlock'],
  ['slotSubscribe', 'Method not found: subscriptions need WebSocket, which this endpoint does not offer'],
])('%s, which nobody serves, is answered -32601 under its id', (method, message) => {
  expect(planOf(call(method))).toBe(
    `{"jsonrpc":"2.0","error":{"code":-32601,"message":"${message}"},"id":"a"}`,
  );
});

test.each<[Element, string]>([
  [call('getSlot'), 'getSlot'],
  [call('getBlock'), 'getBlock'],
  [call('getNothing'), 'unknown'],
  [call('getPriorityFeeEstimate'), 'getPriorityFeeEstimate'],
  [call('__proto__'), 'unknown'],
  [call('x'.repeat(99)), 'unknown'],
  [{ kind: 'notification' }, '-'],
  [{ kind: 'invalid', id: bytesOf('7'), reason: '' }, '-'],
])('%j is counted under the name %s: callers cannot make up names', (element, label) => {
  expect(planCall(element, routeOf, PRICES).label).toBe(label);
});

test('another name of a method costs what the method does, unless it has a price of its own', () => {
  const routeOf = createRouter([backendOf({ lanes: ['assets'], profile: 'das' })]);
  const priced = (prices: Record<string, number>) => {
    const call = { kind: 'call', id: new Uint8Array(), method: 'get_asset', params: undefined } as const;
    return planCall(call, routeOf, { default: 1, methods: new Map(Object.entries(prices)) }).credits;
  };
  expect([priced({ getAsset: 10 }), priced({ getAsset: 10, get_asset: 3 }), priced({})]).toEqual([10, 3, 1]);
});

import { expect, test } from 'bun:test';
import { priceOf } from '../../../gateway/limits/charge.ts';
import { planCall } from '../../../gateway/respond/planned-call.ts';
import { createRouter } from '../../../gateway/upstream/selection.ts';
import { readAtOnce } from '../request/body.ts';
import { backendOf } from '../upstream/of.ts';

const PRICES = {
  default: 3,
  methods: new Map([
    ['getProgramAccounts', 50],
    ['getHealth', 0],
    ['getAsset', 10],
  ]),
};

const routeOf = createRouter([backendOf()]);

/** The price of a batch of these elements, planned for a backend without the assets lane. */
function priceIn(...texts: string[]) {
  const envelope = readAtOnce(`[${texts.join()}]`);
  if (envelope.kind !== 'batch') throw new Error(JSON.stringify(envelope));
  return priceOf(envelope.elements.map((element) => planCall(element, routeOf, PRICES)));
}

const call = (method: string, id = '"id":1,') => `{"jsonrpc":"2.0",${id}"method":"${method}"}`;
const scan = call('getProgramAccounts');

test.each([
  ['a method written with escapes', call('getProgram\\u0041ccounts'), 50],
  ['a free method', call('getHealth'), 0],
  ['another method', call('getSlot'), 3],
  ['a method of the table that no backend serves', call('getAsset'), 3],
  ['a method named like a part of every object', call('constructor'), 3],
  ['another letter case', call('getprogramaccounts'), 3],
  ['a notification', call('getProgramAccounts', ''), 0],
  ['an invalid element', scan.replace(':1', ':-1'), 0],
])('the price of a call: %s', (_, text, credits) => {
  expect(priceIn(text)).toEqual({ calls: 1, credits });
});

test('a batch asks for one of the rate per element, and the sum of the credits of its calls', () => {
  const slot = call('getSlot');
  expect(priceIn(scan, slot, slot, call('getSlot', ''), '7')).toEqual({ calls: 5, credits: 56 });
});

import { describe, expect, test } from 'bun:test';
import { dueMsBy, isSubscription, METHODS } from '../../../shared/config/methods.ts';
import { planCall } from '../../../gateway/respond/planned-call.ts';
import { createRouter } from '../../../gateway/upstream/selection.ts';
import { backendOf } from '../../gateway/upstream/of.ts';

/** The words of a text. */
const words = (text: string) => text.split(/[ \n]+/);

/** That the table has what the documents list, with lanes and prices, is proven beside them. */
describe('the table of methods', () => {
  test('has every asset method by its first name too, in snake case (das_api `builder.rs`), but for one that never had it (§2.8)', () => {
    const assets = [...METHODS].filter(([, { lane }]) => lane === 'assets');
    const own = assets.filter(([, { like }]) => like === undefined).map(([name]) => name);
    const first = own
      .filter((name) => name !== 'getAssetsByAuthority')
      .map((name) => [name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), name]);
    expect(assets.flatMap(([name, { like }]) => (like === undefined ? [] : [[name, like]]))).toEqual(first);
    expect(first.length).toBeGreaterThan(14);
    for (const [, row] of assets) expect(row).toMatchObject({ class: 'asset', declared: false });
  });

  test('takes exactly what changes the chain for a write, so that nothing else is never tried again and no send is', () => {
    const writes = [...METHODS].filter(([, { class: kind }]) => kind === 'write').map(([name]) => name);
    expect(writes.toSorted()).toEqual(['requestAirdrop', 'sendBundle', 'sendTransaction']);
  });

  test('has the answer of one call shared by reads alone that are the same for every caller', () => {
    const shared =
      words(`getAccountInfo getMultipleAccounts getBalance getTokenSupply getTokenAccountBalance getSlot
      getLatestBlockhash getVersion getStakeMinimumDelegation getInflationGovernor getInflationRate
      getMinimumBalanceForRentExemption`);
    const direct = [...METHODS]
      .filter(([, row]) => row.shared && row.answering === 'direct')
      .map(([name]) => name);
    expect(direct.toSorted()).toEqual(shared.toSorted());
    expect([...METHODS.values()].filter((row) => row.shared)).toHaveLength(shared.length);
  });

  test('gives every scan the class scan, which has the deadline of one', () => {
    for (const [, { lane, class: kind }] of METHODS) expect(kind === 'scan').toBe(lane === 'scan');
  });
});

test('another name of a method costs what the method does, unless it has a price of its own', () => {
  const routeOf = createRouter([backendOf({ lanes: ['assets'], profile: 'das' })]);
  const call = { kind: 'call', id: new Uint8Array(), method: 'get_asset', params: undefined } as const;
  const priced = (prices: Record<string, number>) =>
    planCall(call, routeOf, { default: 1, methods: new Map(Object.entries(prices)) }).credits;
  expect([priced({ getAsset: 10 }), priced({ getAsset: 10, get_asset: 3 }), priced({})]).toEqual([10, 3, 1]);
});

test('A17 a class has the deadline of its key, and what has none is light (§2.6.1)', () => {
  const due = { light: 10_000, meta: 10_000, asset: 10_000, history: 30_000, scan: 300_000, write: 20_000 };
  expect(dueMsBy({ light: 10_000, history: 30_000, scan: 300_000, send: 20_000 })).toEqual(due);
});

test('subscriptions are those of the WebSocket interface', () => {
  for (const subject of words('account block logs program root signature slot slotsUpdates vote'))
    for (const name of [`${subject}Subscribe`, `${subject}Unsubscribe`])
      expect([name, isSubscription(name), METHODS.has(name)]).toEqual([name, true, false]);
  const others = ['subscribe', 'accountSubscribeX', 'xaccountSubscribe', 'blockSubscribe\n', ''];
  expect(others.filter(isSubscription)).toEqual([]);
});

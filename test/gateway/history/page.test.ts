import { expect, test } from 'bun:test';
import { failure, result, type SeenCall, startBackend } from '../../fakes/backend.ts';
import { configOf } from '../../fakes/history.ts';
import { caller, closed, probed } from './world.ts';

const hot = closed(startBackend());
const archive = closed(startBackend());
const node = probed(hot.url, 'agave', 50_000, 60_000);
/** Nobody knows how far it goes, so what the live node has is left out of its pages. */
const store = probed(archive.url, 'old-faithful', 1, 0);
const { ask, send } = caller();

const row = (slot: number) => `{"signature":"s${slot}","slot":${slot}}`;

/** A page of an address with one row a slot, from `top` down to slot 1. */
function pageFrom(top: number) {
  return (call: SeenCall) => {
    if (call.method === 'getBlocksWithLimit') return result(call, '[49999]');
    const { before, limit } = configOf(call);
    const first = typeof before === 'string' ? Number(before.slice(1)) - 1 : top;
    const length = Math.min(Number(limit), first);
    return result(call, `[${Array.from({ length }, (_, i) => row(first - i)).join(',')}]`);
  };
}

/** The live node has `live` rows from slot 50,000 on; the archive has everything up to `top`. */
async function stitched(live: number, top: number): Promise<unknown> {
  archive.seen.length = 0;
  const rows = Array.from({ length: live }, (_, i) => row(50_000 + live - 1 - i));
  hot.script((call) => result(call, `[${rows.join(',')}]`));
  archive.script(pageFrom(top));
  const page = await ask([node, store], 'getSignaturesForAddress', ['a', { limit: 900 }]);
  return Array.isArray(page) ? page.map(({ slot }) => slot) : page;
}

test("an archive's pages are read on until they are below what the live node has", async () => {
  const expected = Array.from({ length: 900 }, (_, i) => 50_099 - i);
  expect(await stitched(100, 52_500)).toEqual(expected);
  const [, ...pages] = archive.seen.map(({ params }) => configOf({ params })['before']);
  expect(pages).toEqual([undefined, 's51501', 's50501', 's49501'].slice(0, pages.length));
});

test('but not more than ten of them', async () => {
  expect(await stitched(100, 59_900)).toBe(-32019);
  expect(archive.seen.filter(({ method }) => method === 'getSignaturesForAddress')).toHaveLength(10);
});

test('a row that an archive gives twice is there once', async () => {
  hot.script((call) => result(call, '[]'));
  archive.script((call) =>
    result(call, call.method === 'getBlocksWithLimit' ? '[49999]' : `[${row(7)},${row(7)},${row(6)}]`),
  );
  expect(await ask([node, store], 'getSignaturesForAddress', ['a'])).toMatchObject([
    { slot: 7 },
    { slot: 6 },
  ]);
});

test.each([
  ['a null', 'null'],
  ['a row without a slot', '[{"signature":"s"}]'],
  ['a row that is none', '[7]'],
  ['an object', '{}'],
])('%s is no page of an archive', async (_, json) => {
  hot.script((call) => result(call, '[]'));
  archive.script((call) => result(call, json));
  expect(await ask([node, store], 'getSignaturesForAddress', ['a'])).toBe(-32019);
});

test('live nodes that do not say which cursors they know leave it open whether the page is whole', async () => {
  hot.script((call) => (call.method === 'getSignatureStatuses' ? result(call, 'null') : result(call, '[]')));
  expect(await ask([node, store], 'getSignaturesForAddress', ['a', { until: 's1' }])).toBe(-32019);
});

test('a live node that keeps no history leaves the page to the archive', async () => {
  hot.script((call) => failure(call, -32011, 'Transaction history is not available from this node'));
  archive.script((call) => result(call, `[${row(7)}]`));
  expect(await ask([node, store], 'getSignaturesForAddress', ['a'])).toMatchObject([{ slot: 7 }]);
});

test('a caller who leaves while it is found out which cursors are known is answered nothing', async () => {
  const abort = new AbortController();
  hot.script((call) => {
    if (call.method !== 'getSignatureStatuses') return result(call, '[]');
    abort.abort();
    return new Promise<Response>(() => undefined);
  });
  const params = ['a', { until: 's1' }];
  const reply = await send([node, store], 'getSignaturesForAddress', params, { signal: abort.signal });
  expect(reply).toEqual({ kind: 'caller-left' });
});

import { beforeEach, describe, expect, test } from 'bun:test';
import {
  ADDRESS,
  caller,
  chainOf,
  fakesOf,
  learnt,
  probed,
  probedBigtable,
  rowsOf,
  signaturesOf as signatures,
} from './world.ts';

const METHOD = 'getSignaturesForAddress';
const history = chainOf(3);
const rows = rowsOf(history);
const live = rows.filter(({ slot }) => slot >= 60);
const oldest = live.at(-1);

const fakes = fakesOf(history);
const hot = fakes.node(60, 90);
const faithful = fakes.faithful(0, 3);
const superbank = fakes.superbank(0, 59);
const deep = fakes.node(0, 90);
const node = probed(hot.url, 'agave', 60, 90);
const faithfulAt = probed(faithful.url, 'old-faithful', 1, 79);
const superbankAt = probed(superbank.url, 'superbank');
beforeEach(() => {
  hot.state.strictCursors = true;
  learnt(superbankAt, 0, 59);
});

const { page, text } = caller();
const asked = ({ seen }: typeof faithful | typeof superbank) =>
  seen.map(({ method, params }) => ({ method, params }));

test.each(['[7]', `["${ADDRESS}",{"limit":1001}]`, `["${ADDRESS}",{"before":7}]`, `["${ADDRESS}",{},1]`])(
  'the live node answers alone what it must refuse: %s',
  async (params) => {
    await text([node, faithfulAt], METHOD, params);
    expect(hot.seen[0]?.text).toContain(`"params":${params}}`);
    expect(faithful.seen).toEqual([]);
  },
);

describe('the rest of a short page comes from the archive', () => {
  test('from below the slot of the oldest row, where the archive takes slots', async () => {
    const limit = live.length + 2;
    await page([node, superbankAt], { limit, commitment: 'confirmed', minContextSlot: 3 });
    expect(asked(superbank)).toEqual([
      { method: METHOD, params: [ADDRESS, { limit: 2, beforeSlot: oldest?.slot, commitment: 'confirmed' }] },
    ]);
  });

  test('from below the oldest row, where the archive has it', async () => {
    const until = rows.at(-1)?.signature;
    await page([node, faithfulAt], { limit: live.length + 2, until });
    const config = { limit: 2, before: oldest?.signature, until };
    expect(asked(faithful)).toEqual([{ method: METHOD, params: [ADDRESS, config] }]);
  });

  test('also when one live node knows an `until` that lies below the floor of another', async () => {
    const deeper = probed(hot.url, 'agave', 10, 90);
    const until = rows.find(({ slot }) => slot < 40)?.signature;
    hot.state.strictCursors = false;
    const all = signatures(rows);
    expect(await page([node, deeper, superbankAt], { until })).toEqual(
      all.slice(0, all.indexOf(until ?? '')),
    );
  });
});

test('a live node is asked for every part of a page without its long-term storage', async () => {
  await page([node, superbankAt], { before: live[0]?.signature, until: rows.at(-1)?.signature });
  await page([probed(hot.url, 'agave', undefined, 90), superbankAt]);
  learnt(superbankAt, 0, 50); // so that the slots up to the live node's first must be known to be skipped
  await page([node, superbankAt]);
  const methods = new Set(hot.seen.map(({ method }) => method));
  expect(methods).toEqual(new Set([METHOD, 'getSignatureStatuses', 'getBlocksWithLimit', 'getBlock']));
  expect(new Set(hot.seen.map(({ request }) => request.headers.get('x-bigtable')))).toEqual(
    new Set(['disabled']),
  );
});

test('a node that answers from its long-term storage although it is told not to changes no page', async () => {
  const all = signatures(rows);
  const [newer, older] = [all[1], all.at(-3)];
  for (const archive of [superbankAt, faithfulAt])
    for (const [before, until] of [[], [newer], [older], [undefined, older], [newer, older]]) {
      const expected = all.slice(
        before ? all.indexOf(before) + 1 : 0,
        until ? all.indexOf(until) : undefined,
      );
      const backends = [probed(deep.url, 'agave', 60, 90), archive];
      expect(await page(backends, { before, until })).toEqual(expected);
      expect(await page(backends, { before, until, limit: 2 })).toEqual(expected.slice(0, 2));
    }
});

test('a page from below a transaction of others has all rows of its slot: nothing tells their order', async () => {
  const others = history.transactions.filter((each) => !rows.includes(each));
  const foreign = others.find(({ slot }) => slot < 40 && rows.some((row) => row.slot === slot));
  const older = rows.filter(({ slot }) => slot <= (foreign?.slot ?? 0));
  expect(await page([node, faithfulAt], { before: foreign?.signature })).toEqual(signatures(older));
});

test('a cursor that nobody knows is the error of Agave 4.0', async () => {
  for (const archive of [superbankAt, faithfulAt])
    expect(await page([node, archive], { before: 'nowhere' })).toBe(-32020);
});

test('without a live node an `until` that an archive lacks although it is newer than its rows does not end the page', async () => {
  learnt(superbankAt, 0, 79);
  const newest = rows.filter(({ slot }) => slot < 80);
  const until = newest.findLast(({ slot }) => slot > 59)?.signature;
  const newer = signatures(newest).slice(0, signatures(newest).indexOf(until ?? ''));
  expect(newer.length).toBeGreaterThan(0);
  expect(await page([superbankAt, faithfulAt], { until })).toEqual(newer);
});

const bigtable = fakes.node(0, 59);
test.each([
  ['of two kinds', [node, superbankAt, probedBigtable(bigtable.url, 0, 59)]],
  ['from the first slot and from genesis', [node, faithfulAt, superbankAt]],
])('of archives that hold it all one is asked: %s', async (_, backends) => {
  expect(await page(backends, {})).toEqual(signatures(rows));
  const asked = [faithful, superbank, bigtable].map(({ seen }) => seen.length);
  expect(asked.toSorted()).toEqual([0, 0, 1]);
});

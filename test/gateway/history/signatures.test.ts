import { beforeEach, describe, expect, test } from 'bun:test';
import { rowText } from '../../fakes/history.ts';
import { refusedUrl } from '../../fakes/raw-backend.ts';
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
const others = history.transactions.filter((each) => !rows.includes(each));
const live = rows.filter(({ slot }) => slot >= 60);
const oldest = live.at(-1);
const before = (place: number) => rows.at(place)?.signature;

const fakes = fakesOf(history);
const hot = fakes.node(60, 90);
const faithful = fakes.faithful(0, 3);
const superbank = fakes.superbank(0, 59);
const node = probed(hot.url, 'agave');
const faithfulAt = probed(faithful.url, 'old-faithful');
const superbankAt = probed(superbank.url, 'superbank');
const lost = probed(refusedUrl(), 'superbank', 0, 59);
beforeEach(() => {
  Object.assign(hot.state, { held: { floor: 60, top: 90 }, strictCursors: true });
  Object.assign(faithful.state, { epochs: [0, 3], addressIndex: true });
  superbank.state.held = { floor: 0, top: 59 };
  learnt(node, 60, 90);
  learnt(faithfulAt, 1, 79);
  learnt(superbankAt, 0, 59);
});

const { page, text } = caller();
const asked = ({ seen }: typeof hot | typeof faithful | typeof superbank) =>
  seen.map(({ method, params }) => ({ method, params }));

describe('the live node answers alone', () => {
  test('a full page, byte for byte', async () => {
    const expected = live.slice(0, 5).map((row) => rowText(row, `,"transactionIndex":${row.index}`));
    expect(await text([node, superbankAt], METHOD, [ADDRESS, { limit: 5 }])).toBe(
      `{"jsonrpc":"2.0","result":[${expected.join(',')}],"id":7}\n`,
    );
    expect([hot.seen.length, superbank.seen.length]).toEqual([1, 0]);
    expect(hot.seen[0]?.request.headers.get('x-bigtable')).toBe('disabled');
  });

  test.each([
    ['[]'],
    ['[7]'],
    [`["${ADDRESS}",{"limit":0}]`],
    [`["${ADDRESS}",{"limit":1001}]`],
    [`["${ADDRESS}",{"before":7}]`],
    [`["${ADDRESS}",[]]`],
    [`["${ADDRESS}",{},1]`],
    [`{"address":"${ADDRESS}"}`],
  ])('%s, in its own words', async (params) => {
    await text([node, faithfulAt], METHOD, params);
    expect(hot.seen[0]?.text).toContain(`"params":${params}}`);
    expect(faithful.seen).toEqual([]);
  });
});

describe('the rest of a short page comes from the archive', () => {
  test('from below the slot of the oldest row, where the archive takes slots', async () => {
    const limit = live.length + 2;
    await page([node, superbankAt], { limit, commitment: 'confirmed', minContextSlot: 3 });
    expect(asked(superbank)).toEqual([
      { method: METHOD, params: [ADDRESS, { limit: 2, beforeSlot: oldest?.slot, commitment: 'confirmed' }] },
    ]);
  });

  test('from below the oldest row, where the archive has it', async () => {
    await page([node, faithfulAt], { limit: live.length + 2, until: before(-1) });
    const config = { limit: 2, before: oldest?.signature, until: before(-1) };
    expect(asked(faithful)).toEqual([{ method: METHOD, params: [ADDRESS, config] }]);
  });

  test('from its top, where that is below the oldest row', async () => {
    learnt(faithfulAt, 1, 59);
    faithful.state.epochs = [0, 2];
    await page([node, faithfulAt], { limit: live.length + 2 });
    expect(asked(faithful)).toEqual([{ method: METHOD, params: [ADDRESS, { limit: 2 }] }]);
  });

  test('also when one live node knows an `until` that lies below the floor of another', async () => {
    const deeper = learnt(probed(hot.url, 'agave'), 10, 90);
    const until = rows.find(({ slot }) => slot < 40)?.signature;
    hot.state.strictCursors = false;
    const all = signatures(rows);
    expect(await page([node, deeper, superbankAt], { until })).toEqual(
      all.slice(0, all.indexOf(until ?? '')),
    );
  });
});

describe('a page older than what the live node has', () => {
  const cursor = rows.findIndex(({ slot }) => slot < 40);

  test.each([
    ['4.0', true],
    ['3.x', false],
  ])('comes from the archive alone, the live node being Agave %s', async (_, strictCursors) => {
    Object.assign(hot.state, { strictCursors });
    expect(await page([node, faithfulAt], { before: before(cursor), limit: 3 })).toEqual(
      signatures(rows.slice(cursor + 1, cursor + 4)),
    );
    const config = { limit: 3, before: before(cursor) };
    expect(asked(faithful)).toEqual([{ method: METHOD, params: [ADDRESS, config] }]);
  });

  test('has all rows of the slot of such a transaction: nothing tells their order', async () => {
    const foreign = others.find(({ slot }) => slot < 40 && rows.some((row) => row.slot === slot));
    const older = rows.filter(({ slot }) => slot <= (foreign?.slot ?? 0));
    expect(await page([node, faithfulAt], { before: foreign?.signature })).toEqual(signatures(older));
  });
});

describe('a cursor that nobody knows', () => {
  test.each([
    ['Superbank', superbankAt],
    ['Old Faithful', faithfulAt],
  ])('is the error of Agave 4.0, with %s', async (_, archive) => {
    expect(await page([node, archive], { before: 'nowhere' })).toBe(-32020);
  });
});

describe('a page that the archive cannot complete is an error, never the end of history', () => {
  test('when it is away', async () => {
    expect(await page([node, lost], {})).toBe(-32019);
    expect(await page([node, lost], { before: before(-1) })).toBe(-32019);
  });
});

describe('without a live node', () => {
  test('an `until` that an archive lacks although it is newer than its rows does not end the page', async () => {
    learnt(superbankAt, 0, 79);
    const newest = rows.filter(({ slot }) => slot < 80);
    const until = newest.findLast(({ slot }) => slot > 59)?.signature;
    const newer = signatures(newest).slice(0, signatures(newest).indexOf(until ?? ''));
    expect(newer.length).toBeGreaterThan(0);
    expect(await page([superbankAt, faithfulAt], { until })).toEqual(newer);
  });
});

describe('of archives that hold a part each', () => {
  const old = rows.filter(({ slot }) => slot < 60);
  const newer = old.filter(({ slot }) => slot >= 40);

  test('an older one is asked up to an `until` that a newer one does not know', async () => {
    superbank.state.held = { floor: 40, top: 59 };
    learnt(superbankAt, 40, 59);
    faithful.state.epochs = [0, 1];
    learnt(faithfulAt, 1, 39);
    const backends = [node, superbankAt, faithfulAt];
    expect(await page(backends, { until: rows.at(-1)?.signature })).toEqual(signatures(rows.slice(0, -1)));
    const inner = old.find(({ slot }) => slot < 40);
    expect(await page(backends, { before: newer[0]?.signature, until: inner?.signature })).toEqual(
      signatures(newer.slice(1)),
    );
    expect(await page(backends, { until: 'nowhere' })).toBe(-32020);
  });
});

describe('of archives that hold it all', () => {
  const bigtable = fakes.node(0, 59);
  const bigtableAt = probedBigtable(bigtable.url, 0, 59);

  test.each([
    ['of two kinds', [node, superbankAt, bigtableAt]],
    ['from the first slot and from genesis', [node, faithfulAt, superbankAt]],
  ])('one is asked: %s', async (_, backends) => {
    expect(await page(backends, {})).toEqual(signatures(rows));
    const asked = [faithful, superbank, bigtable].map(({ seen }) => seen.length);
    expect(asked.toSorted()).toEqual([0, 0, 1]);
  });
});

import { afterAll, beforeEach, describe, expect, test } from 'bun:test';
import { startHotNode } from '../../fakes/hot-node.ts';
import { startOldFaithful } from '../../fakes/old-faithful.ts';
import { refusedUrl } from '../../fakes/raw-backend.ts';
import { startSuperbank } from '../../fakes/superbank.ts';
import { ADDRESS, caller, chainOf, learnt, probed, probedBigtable } from './world.ts';

const METHOD = 'getSignaturesForAddress';
const history = chainOf(3);
const rows = history.transactions.filter(({ addresses }) => addresses.includes(ADDRESS));
const live = rows.filter(({ slot }) => slot >= 60);

const hot = startHotNode({ history, held: { floor: 60, top: 90 }, bigtable: undefined, strictCursors: true });
const faithful = startOldFaithful({ history, epochs: [0, 2], addressIndex: true });
const superbank = startSuperbank({
  history,
  held: { floor: 0, top: 59 },
  timesOut: false,
  emitHttpErrors: false,
});
const bigtable = startHotNode({
  history,
  held: { floor: 0, top: 59 },
  bigtable: undefined,
  strictCursors: true,
});
const fakes = [hot, faithful, superbank, bigtable];
const node = probed(hot.url, 'agave', 60, 90);
const faithfulAt = probed(faithful.url, 'old-faithful');
const superbankAt = probed(superbank.url, 'superbank');
const bigtableAt = probedBigtable(bigtable.url);
afterAll(async () => {
  for (const { client } of [node, faithfulAt, superbankAt, bigtableAt]) client.close();
  for (const fake of fakes) await fake[Symbol.asyncDispose]();
});
beforeEach(() => {
  for (const { seen } of fakes) seen.length = 0;
  faithful.state.epochs = [0, 2];
  superbank.state.held = { floor: 0, top: 59 };
  learnt(faithfulAt, 1, 59);
  learnt(superbankAt, 0, 59);
  learnt(bigtableAt, 0, 59);
});

const { ask } = caller();
const signatures = (list: readonly { signature: string }[]) => list.map(({ signature }) => signature);
async function page(backends: Parameters<typeof ask>[0], config: object): Promise<unknown> {
  const result = await ask(backends, METHOD, [ADDRESS, config]);
  return Array.isArray(result) ? signatures(result) : result;
}

describe('of archives that hold a part each', () => {
  const laterLost = probed(refusedUrl(), 'old-faithful', 40, 59);
  const olderLost = probed(refusedUrl(), 'old-faithful', 1, 39);
  const old = rows.filter(({ slot }) => slot < 60);
  const newer = old.filter(({ slot }) => slot >= 40);

  test('a newer one that is away leaves no hole', async () => {
    faithful.state.epochs = [0, 1];
    learnt(faithfulAt, 1, 39);
    expect(await page([node, faithfulAt, laterLost], {})).toBe(-32019);
    expect(await page([node, faithfulAt, laterLost], { before: newer.at(-1)?.signature })).toBe(-32019);
  });

  test('an older one that is away is missed only when it is needed', async () => {
    faithful.state.epochs = [2, 2];
    learnt(faithfulAt, 40, 59);
    const length = live.length + newer.length;
    const backends = [node, faithfulAt, olderLost];
    expect(await page(backends, { limit: length })).toEqual(signatures(rows.slice(0, length)));
    expect(await page(backends, { limit: length + 1 })).toBe(-32019);
    expect(await page(backends, { until: newer.at(-1)?.signature })).toHaveLength(length - 1);
  });

  test('one that has it all stands in for another', async () => {
    expect(await page([node, superbankAt, laterLost], {})).toEqual(signatures(rows));
  });

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

  test('a page is empty when `until` is newer than a `before` in an older one', async () => {
    superbank.state.held = { floor: 0, top: 39 };
    learnt(superbankAt, 0, 39);
    faithful.state.epochs = [2, 2];
    learnt(faithfulAt, 40, 59);
    const inner = old.find(({ slot }) => slot < 40);
    const cursors = { before: inner?.signature, until: newer[0]?.signature };
    expect(await page([node, superbankAt, faithfulAt], cursors)).toEqual([]);
  });
});

describe('of archives that hold it all', () => {
  test.each([
    ['of two kinds', [node, superbankAt, bigtableAt]],
    ['from the first slot and from genesis', [node, faithfulAt, superbankAt]],
  ])('one is asked: %s', async (_, backends) => {
    expect(await page(backends, {})).toEqual(signatures(rows));
    const asked = [faithful, superbank, bigtable].map(({ seen }) => seen.length);
    expect(asked.toSorted()).toEqual([0, 0, 1]);
  });

  test('one whose index lags behind its top is asked again without the cursor it lacks', async () => {
    learnt(bigtableAt, 0, 90);
    expect(await page([node, bigtableAt], {})).toEqual(signatures(rows));
    expect(bigtable.seen).toHaveLength(2);
  });
});

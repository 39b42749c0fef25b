import { beforeEach, describe, expect, test } from 'bun:test';
import { createHistory } from '../../fakes/history.ts';
import {
  ADDRESS,
  caller,
  fakesOf,
  learnt,
  namedBackend,
  OTHER,
  probed,
  rowsOf,
  signaturesOf,
  slotsOf,
} from './world.ts';

const METHOD = 'getSignaturesForAddress';
const UNREACHABLE = -32019;
const history = createHistory({ seed: 5, slots: 400, epochSlots: 100, addresses: [ADDRESS, OTHER] });
const rows = rowsOf(history);
const between = (start: number, end: number) => slotsOf(history, start, end);

const fakes = fakesOf(history);
const node = fakes.node(300, 400);
const faithful = fakes.faithful(0, 1);
const superbank = fakes.superbank(250, 350);
const nodeAt = probed(node.url, 'agave');
const faithfulAt = probed(faithful.url, 'old-faithful');
const superbankAt = probed(superbank.url, 'superbank');
beforeEach(() => {
  superbank.state.held = { floor: 250, top: 350 };
  faithful.state.epochs = [0, 1];
  learnt(nodeAt, 300, 400);
  learnt(faithfulAt, 1, between(0, 199).at(-1));
  learnt(superbankAt, 250, 350);
});

const { ask, page } = caller();

const deeper = fakes.node(190, 400);
test('a gap below one live node is none where another one begins lower', async () => {
  const lower = learnt(namedBackend('deeper', deeper.url, 'agave'), 190, 400);
  const backends = [nodeAt, lower, faithfulAt];
  for (let accountId = 1; accountId <= 16; accountId++)
    // some of them prefer the other node
    expect(await page(backends, {}, { accountId })).toEqual(signaturesOf(rows));
  expect(await ask(backends, 'getBlocks', [190, 310])).toEqual(between(190, 310));
  expect(await ask(backends, 'getBlocksWithLimit', [190, 100])).toEqual(between(190, 400).slice(0, 100));
  expect(node.seen).toEqual([]);
});

const older = fakes.superbank(0, 0);
test('slots that the chain skipped between two archives are no gap', async () => {
  const skip = history.slots.find((slot, i) => slot > 100 && (history.slots[i + 1] ?? 0) > slot + 1) ?? 0;
  const next = history.slots.find((slot) => slot > skip) ?? 0;
  expect(next - skip).toBeGreaterThan(1);
  older.state.held = { floor: 0, top: skip };
  superbank.state.held = { floor: next, top: 350 };
  const backends = [
    nodeAt,
    learnt(superbankAt, next, 350),
    learnt(namedBackend('older', older.url, 'superbank'), 0, skip),
  ];
  expect(await page(backends)).toEqual(signaturesOf(rows));
  expect(await ask(backends, 'getBlocks', [50, 310])).toEqual(between(50, 310));
  expect(await ask(backends, 'getBlocksWithLimit', [50, 250])).toEqual(between(50, 400).slice(0, 250));
});

describe('an archive that never told its first block', () => {
  beforeEach(() => {
    superbank.state.held = { floor: 0, top: 350 };
    learnt(superbankAt, undefined, 350);
  });
  const backends = [nodeAt, superbankAt];

  test('is asked for it in another way where a page or a list would end on it', async () => {
    expect(await page(backends)).toEqual(signaturesOf(rows));
    expect(superbank.seen.map(({ method }) => method)).toEqual([METHOD, 'getBlocksWithLimit']);
    expect(await ask(backends, 'getBlocks', [1, 50])).toEqual(between(1, 50));
    expect(await ask(backends, 'getBlocksWithLimit', [280, 60])).toEqual(between(280, 400).slice(0, 60));
  });

  const mute = fakes.superbank(0, 350);
  test('proves no end when it does not tell it in another way either', async () => {
    mute.refuses('getBlocksWithLimit');
    const muteAt = learnt(namedBackend('mute', mute.url, 'superbank'), undefined, 350);
    expect(await page([nodeAt, muteAt])).toBe(UNREACHABLE);
    expect(await page([nodeAt, muteAt], { limit: 100 })).toEqual(signaturesOf(rows.slice(0, 100)));
    expect(await page([nodeAt, muteAt], { until: rows.at(-1)?.signature })).toEqual(
      signaturesOf(rows.slice(0, -1)),
    );
    expect(await ask([nodeAt, muteAt], 'getBlocks', [1, 50])).toBe(UNREACHABLE);
    expect(await ask([nodeAt, muteAt], 'getBlock', [1])).toMatchObject({ blockhash: 'b1' });
    expect(await page([nodeAt, muteAt], { before: 'nowhere' })).toBe(UNREACHABLE);
    faithful.state.epochs = [0, 2];
    expect(await page([nodeAt, muteAt, learnt(faithfulAt, 1, 299)])).toEqual(signaturesOf(rows));
  });
});

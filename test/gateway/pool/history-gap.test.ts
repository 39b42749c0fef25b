import { expect, test } from 'bun:test';
import { historyGap } from '../../../gateway/pool/history-gap.ts';
import { backendOf } from '../backend/of.ts';

function node(floor: number | undefined) {
  const backend = backendOf({ name: 'node' });
  backend.view.floor = floor;
  backend.view.tip.finalized = 9_000;
  return backend;
}

function archive(top: number) {
  const backend = backendOf({ name: 'archive', profile: 'old-faithful', lanes: ['archive'] });
  backend.view.tip.finalized = top;
  return backend;
}

test('there is a gap where the archives end before the live nodes begin', () => {
  expect(historyGap([node(5_000), archive(4_320)])).toEqual({ from: 4_321, to: 4_999 });
});

test('the archive that reaches furthest counts, and the live node that has least', () => {
  expect(historyGap([node(5_000), node(4_600), archive(100), archive(4_320)])).toEqual({
    from: 4_321,
    to: 4_999,
  });
});

test.each([
  ['they meet', [node(5_000), archive(4_999)]],
  ['they overlap', [node(5_000), archive(6_000)]],
  ['there is no archive', [node(5_000)]],
  ['there is no live node', [archive(4_320)]],
  ['the floor is not known', [node(undefined), archive(4_320)]],
  ['the top is not known', [node(5_000), archive(0)]],
] as const)('there is none when %s', (_, backends) => {
  expect(historyGap(backends)).toBeUndefined();
});

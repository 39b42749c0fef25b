import { expect, test } from 'bun:test';
import { historyGap } from '../../../gateway/history/tiers.ts';
import type { Lane } from '../../../shared/config/profiles.ts';
import { backendOf } from '../upstream/of.ts';

function node(floor: number | undefined) {
  const backend = backendOf({ name: 'node' });
  backend.slots.firstLocalBlock = floor;
  backend.slots.tip.finalized = 9_000;
  return backend;
}

function archive(top: number, floor?: number, lanes: readonly Lane[] = ['archive']) {
  const backend = backendOf({ name: 'archive', profile: 'old-faithful', lanes });
  backend.slots.tip.finalized = top;
  backend.slots.firstLocalBlock = floor;
  return backend;
}

test('the archive that reaches furthest counts, and the live node that has most', () => {
  expect(historyGap([node(5_000), node(4_600), archive(100), archive(4_320)])).toEqual({
    from: 4_321,
    to: 4_599,
  });
});

test.each([
  ['in the middle', [node(300), archive(199, 1), archive(350, 250)], { from: 200, to: 249 }],
  [
    'of two the lower one',
    [node(300), archive(99, 1), archive(199, 150), archive(350, 250)],
    { from: 100, to: 149 },
  ],
  ['not above what they have', [node(300), archive(199, 1), archive(400, 350)], { from: 200, to: 299 }],
  [
    'below one of a profile that is never live',
    [node(300), archive(199, 1, ['state', 'archive'])],
    { from: 200, to: 299 },
  ],
] as const)('between archives that hold a part each there is one: %s', (_, backends, gap) => {
  expect(historyGap(backends)).toEqual(gap);
});

test.each([
  ['archives overlap', [node(300), archive(260, 1), archive(350, 250)]],
  ['nobody has what is below the lowest archive', [node(300), archive(350, 250)]],
  ['an archive that told no top may reach', [node(300), archive(199, 1), archive(0, 150)]],
  ['they meet', [node(5_000), archive(4_999)]],
  ['there is no live node', [archive(4_320)]],
  ['the floor is not known', [node(undefined), archive(4_320)]],
] as const)('there is none when %s', (_, backends) => {
  expect(historyGap(backends)).toBeUndefined();
});

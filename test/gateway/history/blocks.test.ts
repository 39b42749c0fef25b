import { beforeEach, describe, expect, test } from 'bun:test';
import { result, startBackend } from '../../fakes/backend.ts';
import { refusedUrl } from '../../fakes/raw-backend.ts';
import { caller, chainOf, fakesOf, learnt, probed, slotsOf } from './world.ts';

const history = chainOf(1);
const fakes = fakesOf(history);
const hot = fakes.node(50, 90);
const superbank = fakes.superbank(0, 49);
beforeEach(() => reach(50, 0));

const node = probed(hot.url, 'agave', 50, 90);
const superbankAt = probed(superbank.url, 'superbank', 0, 49);
const { ask, text } = caller();
const paramsSeen = ({ seen }: typeof hot | typeof superbank) => seen.map(({ params }) => params);
const between = (start: number, end: number) => slotsOf(history, start, end);

/** A live node from `floor` on; the archive to `overlap` slots beyond it. */
function reach(floor: number, overlap: number, known = true): void {
  hot.state.held = { floor, top: 90 };
  learnt(node, floor, 90);
  superbank.state.held = { floor: 0, top: floor - 1 + overlap };
  learnt(superbankAt, 0, known ? superbank.state.held.top : 0);
}

test.each([
  ['an end and a config', '[ 40, 60, {"commitment":"confirmed","minContextSlot":7} ]', 60],
  ['a config alone: 500,000 slots', '[40,{"commitment":"confirmed","minContextSlot":7}]', 500_040],
])(
  'each tier is asked for its own part, the archive without what it may not know: %s',
  async (_, params, end) => {
    await ask([node, superbankAt], 'getBlocks', params);
    expect(paramsSeen(superbank)).toEqual([[40, 49, { commitment: 'confirmed' }]]);
    expect(paramsSeen(hot)).toEqual([[50, end, { commitment: 'confirmed', minContextSlot: 7 }]]);
  },
);

test.each([
  ['getBlocks', '[40,600000]'],
  ['getBlocks', '["40",60]'],
  ['getBlocksWithLimit', '[40,0]'],
  ['getBlocksWithLimit', '[40,500001]'],
])("%s with %s goes on as it is, for the node's own words", async (method, params) => {
  await text([node, superbankAt], method, params);
  expect(hot.seen[0]?.text).toContain(`"params":${params}}`);
});

describe('a list that one tier cannot give is an error, never a shorter list', () => {
  const withoutArchive = [node, probed(refusedUrl(), 'superbank', 0, 49)];
  const withoutLive = [probed(refusedUrl(), 'agave', 50, 90), superbankAt];

  test.each(['getBlocks', 'getBlocksWithLimit'])(
    '%s without its archive or its live node',
    async (method) => {
      expect(await ask(withoutArchive, method, [40, 60])).toBe(-32019);
      expect(await ask(withoutLive, method, [40, 60])).toBe('no-backend');
    },
  );

  test('an archive stands in for the live node as far as it reaches', async () => {
    reach(50, 20);
    expect(await ask(withoutLive, 'getBlocks', [55, 69])).toEqual(between(55, 69));
    expect(await ask(withoutLive, 'getBlocks', [55, 70])).toBe('no-backend');
    const count = between(55, 69).length;
    expect(await ask(withoutLive, 'getBlocksWithLimit', [55, count])).toEqual(between(55, 69));
    expect(await ask(withoutLive, 'getBlocksWithLimit', [55, count + 1])).toBe('no-backend');
  });

  test.each([['null'], ['[1,"a"]'], ['[[1]]'], ['[-1]'], ['[1.5]']])(
    'with %s in place of a list',
    async (json) => {
      await using odd = startBackend((call) => result(call, json));
      const backends = [node, probed(odd.url, 'superbank', 0, 49)];
      expect(await ask(backends, 'getBlocks', [40, 60])).toBe(-32019);
      expect(await ask(backends, 'getBlocksWithLimit', [40, 60])).toBe(-32019);
    },
  );
});

test('lists keep the bytes they came in', async () => {
  await using old = startBackend((call) => result(call, '[ 40 ,\n 41 ]'));
  await using none = startBackend((call) => result(call, ' [ ] '));
  const rest = await text([node], 'getBlocks', [50, 60]);
  const list = /\[(.*)\]/.exec(rest)?.[1] ?? '';
  expect(await text([node, probed(old.url, 'superbank', 0, 49)], 'getBlocks', [40, 60])).toBe(
    `{"jsonrpc":"2.0","result":[ 40 ,\n 41 ,${list}],"id":7}`,
  );
  expect(await text([node, probed(none.url, 'superbank', 0, 49)], 'getBlocks', [40, 60])).toBe(
    `{"jsonrpc":"2.0","result":[${list}],"id":7}`,
  );
});

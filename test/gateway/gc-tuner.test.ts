import { expect, test } from 'bun:test';
import { createGcTuner } from '../../gateway/gc-tuner.ts';

const MB = 1_024 * 1_024;

/** A heap of `state.mb`, of which a collection or compaction leaves `left`; with `isSlow` a collection beside the process leaves all. */
function watching(left = 10, isSlow = false) {
  const state = { mb: left, collections: 0, atOnce: 0, compactions: 0 };
  const shrink = () => void (state.mb = left);
  const look = createGcTuner({
    bytes: () => state.mb * MB,
    collect() {
      state.collections++;
      if (!isSlow) shrink();
    },
    collectNow() {
      state.atOnce++;
      shrink();
    },
    compact() {
      state.compactions++;
      shrink();
    },
  });
  return {
    state,
    /** Looks so often, while the heap grows by so much each time; gives the collections. */
    looks(times: number, growthMb = 0) {
      const before = state.collections;
      for (let i = 0; i < times; i++) {
        state.mb += growthMb;
        look();
      }
      return state.collections - before;
    },
  };
}

test('a heap that grows is collected when it has grown by 16 MB to more than 32, at every second look at most', () => {
  const [slowly, fast] = [watching(), watching()];
  expect([slowly.looks(10, 2), slowly.looks(1, 2)]).toEqual([0, 1]);
  expect([fast.looks(100, 16.5), fast.state.atOnce]).toEqual([50, 0]);
});

test.each([
  ['by 32 MB', 10, 9, 6, 5],
  ['by half of it, when it needs much', 200, 20, 1, 99.9],
])('a heap that grows although it is collected is collected at once: %s', (_, left, rest, times, growth) => {
  const { looks, state } = watching(left, true);
  looks(rest);
  looks(times, growth);
  expect(state.atOnce).toBe(0);
  looks(1, growth);
  expect(state.atOnce).toBe(1);
});

test('however fast it grows, it is collected at once at every fifth look at most', () => {
  const { looks, state } = watching(10, true);
  looks(90, 50);
  expect(state.atOnce).toBe(18);
});

test('what does not shrink is not collected again until it has grown again', () => {
  const { looks, state } = watching(200);
  state.mb = 184;
  looks(1);
  state.mb = 200;
  expect(looks(3)).toBe(1);
  expect(looks(15, 1)).toBe(0);
  expect(looks(5, 1) + state.atOnce).toBe(1);
});

test('at rest it is compacted after 40, 80, 160 and 320 seconds, and again after the next use', () => {
  const { looks, state } = watching();
  const compacted: number[] = [];
  for (let second = 1; second <= 3_600; second++) {
    const before = state.compactions;
    looks(4);
    if (state.compactions > before) compacted.push(second);
  }
  expect(compacted).toEqual([40, 80, 160, 320]);
  looks(20, 0.5);
  looks(159);
  expect(state.compactions).toBe(4);
  looks(1);
  expect(state.compactions).toBe(5);
});

import { describe, expect, test } from 'bun:test';
import { createBatchScheduler, type OnWait, type Part } from '../../../gateway/respond/batch.ts';

const settled = () => new Promise(setImmediate);
const BYTES: Part = { kind: 'bytes', bytes: new TextEncoder().encode('{}') };

/** `count` calls whose answers begin, wait and are evicted under the test's eyes. */
function scheduled(count: number, parallelMax = 8) {
  const abort = new AbortController();
  const begun: ((part: Part) => void)[] = [];
  const onWaits: OnWait[] = [];
  const evicted: number[] = [];
  const started: number[] = [];
  const startOf = (place: number) => (onWait: OnWait) => {
    started.push(place);
    onWaits[place] = onWait;
    const { promise, resolve } = Promise.withResolvers<Part>();
    begun[place] = resolve;
    return promise;
  };
  const starts = Array.from({ length: count }, (_, place) => startOf(place));
  const { turn, done } = createBatchScheduler(starts, parallelMax, abort.signal);
  const begin = async (place: number, part: Part) => {
    begun[place]?.(part);
    await settled();
  };
  return {
    turn,
    abort,
    /** Places of calls in the order in which they were started. */
    started,
    /** Places of streams in the order in which they were evicted. */
    evicted,
    bytes: (place: number) => begin(place, BYTES),
    stream: (place: number, mayRepeat = true) =>
      begin(place, {
        kind: 'stream',
        mayRepeat,
        body: {
          pipe: () => Promise.resolve({ kind: 'complete', bytes: 0 }),
          cancel: () => void evicted.push(place),
        },
      }),
    waits: (place: number) => onWaits[place]?.() ?? (() => undefined),
    /** Its turn comes and it has gone. */
    async pass(place: number) {
      if ((await turn(place)).kind === 'stream') done();
    },
  };
}

describe('while a call waits for what others hold', () => {
  test('streams behind it are evicted, the last first, and none that comes before it', async () => {
    const { stream, waits, evicted } = scheduled(5);
    for (const place of [1, 3, 4]) await stream(place);
    waits(2);
    expect(evicted).toEqual([4]);
    for (let i = 0; i < 5; i++) await settled();
    expect(evicted).toEqual([4, 3]);
  });
});

describe('a call whose answer was evicted', () => {
  test('is sent again when its turn comes, and not before; from then on it stays', async () => {
    const { stream, bytes, waits, evicted, started, pass, turn } = scheduled(2);
    await stream(1);
    waits(0)();
    await settled();
    await bytes(0);
    await pass(0);
    expect([evicted, started]).toEqual([[1], [0, 1]]);
    const again = turn(1);
    waits(1);
    await stream(1);
    expect((await again).kind).toBe('stream');
    expect([evicted, started]).toEqual([[1], [0, 1, 1]]);
  });

  test('keeps its number among those under way, so that no others are begun in its stead', async () => {
    const { stream, bytes, waits, started, pass, turn } = scheduled(4, 2);
    await stream(1);
    waits(0);
    await settled();
    expect(started).toEqual([0, 1]);
    await bytes(0);
    expect(started).toEqual([0, 1, 2]);
    await pass(0);
    void turn(1);
    await bytes(1);
    expect(started).toEqual([0, 1, 2, 1, 3]);
  });
});

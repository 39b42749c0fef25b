import { describe, expect, test } from 'bun:test';
import { createLine, type Line, type OnWait, type Part } from '../../../gateway/respond/batch.ts';

const settled = () => new Promise(setImmediate);
const BYTES: Part = { kind: 'bytes', bytes: new TextEncoder().encode('{}') };

/** A line of `count` calls whose answers begin, wait and are let go under the test's eyes. */
function lineOf(count: number, parallelMax = 8) {
  const abort = new AbortController();
  const asks = Array.from({ length: count }, (): ((part: Part) => void)[] => []);
  const onWaits: OnWait[] = [];
  const letGo: number[] = [];
  const started: number[] = [];
  const line: Line = createLine(
    asks.map((ofCall, place) => (onWait: OnWait) => {
      started.push(place);
      onWaits[place] = onWait;
      const { promise, resolve } = Promise.withResolvers<Part>();
      ofCall.push(resolve);
      return promise;
    }),
    parallelMax,
    abort.signal,
  );
  const begin = async (place: number, part: Part) => {
    asks[place]?.at(-1)?.(part);
    await settled();
  };
  return {
    line,
    abort,
    /** Places of calls in the order in which they were started. */
    started,
    /** Places of streams in the order in which they were let go. */
    letGo,
    bytes: (place: number) => begin(place, BYTES),
    stream: (place: number, mayRepeat = true) =>
      begin(place, {
        kind: 'stream',
        mayRepeat,
        body: {
          pipe: () => Promise.resolve({ kind: 'complete', bytes: 0 }),
          cancel: () => void letGo.push(place),
        },
      }),
    waits: (place: number) => onWaits[place]?.() ?? (() => undefined),
    /** Its turn comes and it has gone. */
    async pass(place: number) {
      line.done(await line.turn(place));
    },
  };
}

describe('while a call waits for what others hold', () => {
  test('streams behind it are let go, the last first, and none that comes before it', async () => {
    const { stream, waits, letGo } = lineOf(5);
    for (const place of [1, 3, 4]) await stream(place);
    waits(2);
    expect(letGo).toEqual([4]);
    for (let i = 0; i < 5; i++) await settled();
    expect(letGo).toEqual([4, 3]);
  });

  test('no more are let go than it takes', async () => {
    const { stream, waits, letGo } = lineOf(5);
    for (const place of [1, 2, 3, 4]) await stream(place);
    const over = waits(0);
    expect(letGo).toEqual([4]);
    over();
    for (let i = 0; i < 5; i++) await settled();
    expect(letGo).toEqual([4]);
  });

  test('a stream that begins behind it is let go at once, while bytes are kept', async () => {
    const { stream, bytes, waits, letGo, started } = lineOf(3);
    waits(0);
    await bytes(1);
    await stream(2);
    expect([letGo, started]).toEqual([[2], [0, 1, 2]]);
  });

  test('the stream whose turn it is stays', async () => {
    const { line, stream, waits, letGo } = lineOf(3);
    await stream(0);
    await stream(1);
    void line.turn(0);
    waits(0);
    await settled();
    await settled();
    expect(letGo).toEqual([1]);
  });

  test('the answer of a write is never let go, and the write is never asked again', async () => {
    const { stream, bytes, waits, letGo, started, pass } = lineOf(2);
    await stream(1, false);
    waits(0)();
    waits(0);
    await settled();
    await bytes(0);
    await pass(0);
    await pass(1);
    expect([letGo, started]).toEqual([[], [0, 1]]);
  });
});

describe('a call whose answer was let go', () => {
  test('is asked again when nobody before it waits any longer', async () => {
    const { stream, waits, started } = lineOf(4);
    await stream(2);
    await stream(3);
    const [first, second] = [waits(0), waits(1)];
    for (let i = 0; i < 3; i++) await settled();
    second();
    expect(started).toEqual([0, 1, 2, 3]);
    first();
    expect(started).toEqual([0, 1, 2, 3, 2, 3]);
  });

  test('a second time is asked when its turn comes, and not before; so it is asked three times at most', async () => {
    const { stream, bytes, waits, letGo, started, pass, line } = lineOf(2);
    for (let times = 0; times < 2; times++) {
      await stream(1);
      const over = waits(0);
      await settled();
      over();
    }
    expect([letGo, started]).toEqual([
      [1, 1],
      [0, 1, 1],
    ]);
    await bytes(0);
    await pass(0);
    const turn = line.turn(1);
    expect(started).toEqual([0, 1, 1, 1]);
    waits(1);
    await stream(1);
    expect((await turn).kind).toBe('stream');
    expect(letGo).toEqual([1, 1]);
  });

  test('keeps its number among those under way, so that no others are begun in its stead', async () => {
    const { stream, bytes, waits, started, pass } = lineOf(4, 2);
    await stream(1);
    const over = waits(0);
    await settled();
    expect(started).toEqual([0, 1]);
    over();
    expect(started).toEqual([0, 1, 1]);
    await bytes(0);
    expect(started).toEqual([0, 1, 1, 2]);
    await pass(0);
    await bytes(1);
    expect(started).toEqual([0, 1, 1, 2, 3]);
  });

  test('is not asked again when the batch has ended', async () => {
    const { stream, waits, started, abort, bytes } = lineOf(3, 2);
    await stream(1);
    const over = waits(0);
    await settled();
    abort.abort();
    over();
    await bytes(0);
    expect(started).toEqual([0, 1]);
  });
});

import { expect, test } from 'bun:test';
import {
  type Beat,
  HELD_BYTES_MAX,
  type Part,
  type BatchedCall,
  spliceBatch,
} from '../../../gateway/respond/batch.ts';
import { createVirtualClock } from '../virtual-clock.ts';
import { streamBodyOf, textOfBody } from '../stream-body.ts';

const bytes = (text: string): Part => ({ kind: 'bytes', bytes: new TextEncoder().encode(text) });

const untilAborted: Beat = (signal) => createVirtualClock().clock.sleep(1, signal);

const batchOf = (begins: readonly BatchedCall['begin'][], gather = untilAborted, beat = untilAborted) =>
  spliceBatch(
    begins.map((begin) => ({ isLight: false, begin })),
    new AbortController(),
    () => undefined,
    gather,
    beat,
  );

const textOf = (body: Awaited<ReturnType<typeof spliceBatch>>) =>
  body instanceof Uint8Array ? Buffer.from(body).toString() : textOfBody(body);

const large: Part = { kind: 'stream', body: streamBodyOf(new Blob(['"a"']).stream()) };
test.each<[string, Part]>([
  ['large one', large],
  ['quarter of a megabyte', bytes(JSON.stringify('a'.repeat(262_144)))],
])('the answers of a batch are a stream from the first %s on', async (_, part) => {
  const body = await batchOf([async () => part, async () => bytes('1')]);
  expect(body).not.toBeInstanceOf(Uint8Array);
  expect(JSON.parse(await textOf(body))).toHaveLength(2);
});

test('a batch that waits for an answer gives a sign of life, which is white space between its elements', async () => {
  const slow = Promise.withResolvers<Part>();
  let beats = 0;
  const beat: Beat = async (signal) => {
    if (beats++ < 3) return;
    slow.resolve(bytes('{"id":0}'));
    await untilAborted(signal);
  };
  const starts = [() => slow.promise, async () => bytes('{"id":1}')];
  const body = await batchOf(starts, () => Promise.resolve(), beat);
  expect(await textOf(body)).toBe('[   {"id":0},{"id":1}]');
});

test.each(['an earlier answer is not there', 'its caller does not read'])(
  'L26 while %s, a batch starts no call that it had no room for',
  async (why) => {
    const first = Promise.withResolvers<Part>();
    const reading = Promise.withResolvers<void>();
    const part = bytes(JSON.stringify('a'.repeat(65_534)));
    let started = 0;
    const starts = Array.from({ length: 100 }, (_, i) => async () => {
      started++;
      return i === 0 ? first.promise : part;
    });
    if (why !== 'an earlier answer is not there') first.resolve(part);
    const body = await batchOf(starts, () => new Promise(setImmediate));
    const pieces: Buffer[] = [];
    const piped =
      body instanceof Uint8Array
        ? undefined
        : body.pipe((piece) => {
            pieces.push(Buffer.from(piece));
            return reading.promise;
          });
    for (let turn = 0; turn < 100; turn++) await new Promise(setImmediate);
    // What is held, and the eight that were under way.
    expect(started).toBeGreaterThan(8);
    expect(started).toBeLessThanOrEqual(HELD_BYTES_MAX / 65_536 + 8 + 1);
    first.resolve(part);
    reading.resolve();
    expect((await piped)?.kind).toBe('complete');
    expect(JSON.parse(Buffer.concat(pieces).toString())).toHaveLength(100);
  },
);

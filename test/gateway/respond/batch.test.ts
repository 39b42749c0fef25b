import { expect, test } from 'bun:test';
import { type Beat, type Part, type Start, spliceBatch } from '../../../gateway/respond/batch.ts';
import { createVirtualClock } from '../virtual-clock.ts';
import { streamBodyOf, textOfBody } from '../stream-body.ts';

const bytes = (text: string): Part => ({ kind: 'bytes', bytes: new TextEncoder().encode(text) });

const untilAborted: Beat = (signal) => createVirtualClock().clock.sleep(1, signal);

const batchOf = (starts: readonly Start[], gather = untilAborted, beat = untilAborted) =>
  spliceBatch(starts, new AbortController(), () => undefined, gather, beat);

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

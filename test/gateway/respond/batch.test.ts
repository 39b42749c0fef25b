import { expect, test } from 'bun:test';
import { type Beat, type Part, type Start, spliceBatch } from '../../../gateway/respond/batch.ts';
import { createVirtualClock } from '../virtual-clock.ts';
import { streamBodyOf, textOfBody } from '../stream-body.ts';

const bytes = (text: string): Part => ({ kind: 'bytes', bytes: new TextEncoder().encode(text) });

/** A stream whose chunks come when the test pushes them. */
function pushed() {
  const { readable, writable } = new TransformStream<Uint8Array<ArrayBuffer>>(undefined, {
    highWaterMark: 9,
  });
  const writer = writable.getWriter();
  const part: Part = { kind: 'stream', body: streamBodyOf(readable) };
  const push = (text: string) => void writer.write(new TextEncoder().encode(text));
  return { part, push, end: () => void writer.close() };
}

function streamOf(text: string): Part {
  const { part, push, end } = pushed();
  push(text);
  end();
  return part;
}

/** Starts that are noted when they are called and begin when the test says so. */
function gated(count: number) {
  const slots = Array.from({ length: count }, () => Promise.withResolvers<Part>());
  const launched: number[] = [];
  const starts = slots.map(({ promise }, i): Start => () => {
    launched.push(i);
    return promise;
  });
  return { starts, launched, begin: (i: number, part: Part) => slots[i]?.resolve(part) };
}

const untilAborted: Beat = (signal) => createVirtualClock().clock.sleep(1, signal);

/** The batch's body, while no time passes. */
const batchOf = (starts: readonly Start[], gather = untilAborted, beat = untilAborted) =>
  spliceBatch(starts, new AbortController(), () => undefined, gather, beat);

async function read(batch: ReturnType<typeof spliceBatch>): Promise<string> {
  const body = await batch;
  return body instanceof Uint8Array ? Buffer.from(body).toString() : textOfBody(body);
}

const settled = () => new Promise(setImmediate);

test('under way at once are eight calls, streams until their last byte has gone and those that began out of turn', async () => {
  const { starts, launched, begin } = gated(10);
  const slow = pushed();
  const text = read(batchOf(starts));
  await settled();
  begin(0, slow.part);
  for (let i = 1; i < 8; i++) begin(i, streamOf(String(i)));
  slow.push('"a');
  await settled();
  expect(launched.length).toBe(8);
  slow.push('b"');
  slow.end();
  for (const i of [8, 9]) begin(i, bytes(String(i)));
  expect(await text).toBe('["ab",1,2,3,4,5,6,7,8,9]');
  expect(launched.length).toBe(10);
});

test.each<[string, Part]>([
  ['large one', streamOf('"a"')],
  ['quarter of a megabyte', bytes(JSON.stringify('a'.repeat(262_144)))],
])('the answers of a batch are a stream from the first %s on', async (_, part) => {
  const { starts, begin } = gated(2);
  const body = batchOf(starts);
  begin(0, part);
  begin(1, bytes('1'));
  expect(await body).not.toBeInstanceOf(Uint8Array);
  expect(JSON.parse(await read(body))).toHaveLength(2);
});

test('a batch that waits for an answer gives a sign of life, which is white space between its elements', async () => {
  const { starts, begin } = gated(2);
  const beats: PromiseWithResolvers<void>[] = [];
  const beat: Beat = (signal) => {
    const next = Promise.withResolvers<void>();
    beats.push(next);
    signal.addEventListener('abort', () => next.resolve(), { once: true });
    return next.promise;
  };
  const text = read(batchOf(starts, () => Promise.resolve(), beat));
  await settled();
  for (let i = 0; i < 3; i++) {
    beats.at(-1)?.resolve();
    await settled();
  }
  begin(0, bytes('{"id":0}'));
  begin(1, bytes('{"id":1}'));
  const whole = await text;
  expect(whole).toBe('[   {"id":0},{"id":1}]');
  expect(JSON.parse(whole)).toEqual([{ id: 0 }, { id: 1 }]);
});

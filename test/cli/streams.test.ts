import { describe, expect, test } from 'bun:test';
import { Writable } from 'node:stream';
import { createLines, hasRoom } from '../../cli/frame/streams.ts';

/** A stream that holds ten bytes and takes what it got when the test says so. */
function slow() {
  let take: (error?: Error) => void = () => undefined;
  const stream = new Writable({
    highWaterMark: 10,
    write: (_bytes, _encoding, done) => void (take = done),
  });
  return { stream, take: (error?: Error) => take(error) };
}

test('a stream that is full has room when what it holds was taken, and not before', async () => {
  const { stream, take } = slow();
  stream.write('1234567890');
  let room = false;
  const waiting = hasRoom(stream).then((is) => (room = is));
  await new Promise(setImmediate);
  expect(room).toBe(false);
  take();
  expect(await waiting).toBe(true);
  expect(stream.listenerCount('drain')).toBe(0);
});

test('a reader that goes is no error, during the wait and after it', async () => {
  const { stream, take } = slow();
  stream.write('1234567890');
  const waiting = hasRoom(stream);
  take(new Error('EPIPE'));
  expect(await waiting).toBe(false);
  expect(await hasRoom(stream)).toBe(false);
});

describe('lines', () => {
  const linesOf = (...chunks: Uint8Array[]) => {
    const lines: string[] = [];
    const feed = createLines((line) => lines.push(line));
    for (const chunk of chunks) feed(chunk);
    return lines;
  };
  const bytes = (text: string) => new TextEncoder().encode(text);

  test('are put together from chunks cut anywhere, inside a character too', () => {
    const whole = bytes('erste Zeile\nzwei ü\n\nrest');
    for (let cut = 0; cut <= whole.length; cut++) {
      expect(linesOf(whole.slice(0, cut), whole.slice(cut))).toEqual(['erste Zeile', 'zwei ü', '']);
    }
  });
  test('are bounded: a line without an end is cut and never grows', () => {
    const lines = linesOf(...Array.from({ length: 10 }, () => bytes('x'.repeat(5_000))), bytes('\nnext\n'));
    expect(lines.map((line) => line.length)).toEqual([8_192, 4]);
  });
});

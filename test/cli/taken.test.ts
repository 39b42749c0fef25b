import { expect, test } from 'bun:test';
import { Writable } from 'node:stream';
import { taken } from '../../cli/taken.ts';

/** A stream that holds ten bytes and takes what it got when the test says so. */
function slow() {
  let take: (error?: Error) => void = () => undefined;
  const stream = new Writable({
    highWaterMark: 10,
    write: (_bytes, _encoding, done) => void (take = done),
  });
  return { stream, take: (error?: Error) => take(error) };
}

test('there is room in a stream that holds little', async () => {
  const { stream } = slow();
  stream.write('12345');
  expect(await taken(stream)).toBe(true);
});

test('a stream that is full has room when what it holds was taken, and not before', async () => {
  const { stream, take } = slow();
  stream.write('1234567890');
  let room = false;
  const waiting = taken(stream).then((is) => (room = is));
  await new Promise(setImmediate);
  expect(room).toBe(false);
  take();
  expect(await waiting).toBe(true);
  expect(stream.listenerCount('drain')).toBe(0);
});

test('a reader that goes is no error, during the wait and after it', async () => {
  const { stream, take } = slow();
  stream.write('1234567890');
  const waiting = taken(stream);
  take(new Error('EPIPE'));
  expect(await waiting).toBe(false);
  expect(await taken(stream)).toBe(false);
});

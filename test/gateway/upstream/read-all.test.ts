import { expect, test } from 'bun:test';
import { readAll } from '../../../gateway/upstream/probe.ts';
import { streamBodyOf } from '../stream-body.ts';

function bodyOf(...pieces: readonly string[]) {
  return streamBodyOf(
    new ReadableStream<Uint8Array>({
      start(controller) {
        for (const piece of pieces) controller.enqueue(new TextEncoder().encode(piece));
        controller.close();
      },
    }),
  );
}

test('a body is read to its end, up to its bound and not a byte further', async () => {
  const read = await readAll(bodyOf('ab', 'cd'), 4);
  expect(read.kind === 'all' ? new TextDecoder().decode(read.bytes) : read.kind).toBe('abcd');
  expect((await readAll(bodyOf('ab', 'cd', 'e'), 4)).kind).toBe('too-long');
});

test('one that breaks off says how', async () => {
  const broken = new ReadableStream<Uint8Array>({
    start: (controller) => controller.error(new Error('gone')),
  });
  expect(await readAll(streamBodyOf(broken), 10)).toEqual({ kind: 'cut', reason: 'closed', bytes: 0 });
});

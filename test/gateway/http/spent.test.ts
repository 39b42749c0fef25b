import { describe, expect, test } from 'bun:test';
import { createHttpClient } from '../../../gateway/upstream/http-client.ts';
import { free, SPENT, type WritePiece } from '../../../gateway/upstream/http-connection.ts';
import { systemClock } from '../../../shared/clock.ts';
import { startRawBackend } from '../../fakes/raw-backend.ts';

const READ_BYTES = 65_536;

describe('memory given back', () => {
  test('is gone for whoever looks at it', () => {
    const bytes = Buffer.from(new ArrayBuffer(READ_BYTES));
    free(bytes);
    expect(bytes.length).toBe(0);
  });

  test.each([
    ['a part of something larger', Buffer.from(new ArrayBuffer(READ_BYTES + 1)).subarray(1)],
    ['the start of something larger', Buffer.from(new ArrayBuffer(READ_BYTES + 1)).subarray(0, READ_BYTES)],
    ['small', Buffer.from(new ArrayBuffer(100))],
    ['shared between threads', Buffer.from(new SharedArrayBuffer(READ_BYTES))],
  ])('is left alone when it is %s', (_, bytes) => {
    const { length } = bytes;
    free(bytes);
    expect(bytes).toHaveLength(length);
  });
});

describe('a reader of a body', () => {
  /** The pieces of a body of 8 MB after it has ended, each large enough to be given back. */
  async function piecesAfter(write: WritePiece): Promise<readonly Buffer[]> {
    const body = Buffer.alloc(8 << 20, 'x');
    using backend = startRawBackend(async ({ send }) => {
      await send(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length + 1}\r\n\r\n{`);
      await send(body);
    });
    const client = createHttpClient({
      url: new URL(backend.url),
      headers: new Map(),
      clock: systemClock,
      idleMs: 60_000,
    });
    const request = { body: Buffer.from('{}'), acceptEncoding: 'identity', dueMs: 60_000, fresh: false };
    const reply = await client.send(request, new AbortController().signal);
    if (reply.kind !== 'reply') throw new Error(reply.kind);
    const pieces: Buffer[] = [];
    let bytes = 0;
    await reply.body.pipe((piece) => {
      bytes += piece.length;
      if (piece.length >= READ_BYTES && piece.length === piece.buffer.byteLength) pieces.push(piece);
      return write(piece);
    });
    client.close();
    expect(bytes).toBe(body.length + 1);
    expect(pieces.length).toBeGreaterThan(0);
    return pieces;
  }

  test('keeps its pieces unless it says that they are spent', async () => {
    for (const piece of await piecesAfter(() => undefined)) expect(piece.toString()).toMatch(/^x+$/);
  });

  test('loses a piece that it says is spent', async () => {
    for (const piece of await piecesAfter(() => SPENT)) expect(piece.length).toBe(0);
  });

  test('loses a piece when its promise says so, and not before', async () => {
    let lost = 0;
    const pieces = await piecesAfter(async (piece) => {
      const { length } = piece;
      await new Promise(setImmediate);
      lost += length - piece.length;
      return SPENT;
    });
    expect(lost).toBe(0);
    // The last one ends the body, so that nothing waits for its promise.
    for (const piece of pieces.slice(0, -1)) expect(piece.length).toBe(0);
  });
});

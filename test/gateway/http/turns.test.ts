import { describe, expect, test } from 'bun:test';
import type { WritePiece } from '../../../gateway/http/stream-body.ts';
import { free, TURN_BYTES } from '../../../gateway/http/turns.ts';
import { startRawBackend } from '../../fakes/raw-backend.ts';
import { clientOf, REQUEST } from '../upstream/of.ts';

const READ_BYTES = 65_536;
const BODY_BYTES = 32 << 20;
const PATTERN = Buffer.from(Array.from({ length: 251 }, (_, i) => i));
const BODY = Buffer.alloc(BODY_BYTES, PATTERN);

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

/** Pipes as many bodies at once as there are writers; gives what did not come as it was sent. */
async function piped(writers: readonly WritePiece[]): Promise<readonly string[]> {
  using backend = startRawBackend(async ({ send }) => {
    await send(`HTTP/1.1 200 OK\r\ncontent-length: ${BODY_BYTES}\r\n\r\n`);
    await send(BODY);
  });
  const client = clientOf(backend.url);
  const faults: string[] = [];
  const pipe = async (write: WritePiece) => {
    const reply = await client.send(REQUEST, new AbortController().signal);
    if (reply.kind !== 'reply') throw new Error(reply.kind);
    let bytes = 0;
    const end = await reply.body.pipe((piece) => {
      if (!piece.equals(BODY.subarray(bytes, bytes + piece.length))) faults.push(`wrong from byte ${bytes}`);
      bytes += piece.length;
      return write(piece);
    });
    if (end.kind !== 'complete' || bytes !== BODY_BYTES) faults.push(`${end.kind} after ${bytes} bytes`);
  };
  await Promise.all(writers.map(pipe));
  // A connection that carried a long body carries the next one.
  await Promise.all(writers.map(pipe));
  client.close();
  return faults;
}

describe('bodies at full speed', () => {
  test('move in a turn of the event loop no more than its share and one read each', async () => {
    let inTurn = 0;
    let most = 0;
    let isOver = false;
    setImmediate(function turn() {
      most = Math.max(most, inTurn);
      inTurn = 0;
      if (!isOver) setImmediate(turn);
    });
    const count = (piece: Buffer) => void (inTurn += piece.length);
    expect(await piped([count, count, count])).toEqual([]);
    isOver = true;
    expect(most).toBeLessThanOrEqual(4 * TURN_BYTES);
  });

  test('arrive as they were sent, whether their readers wait or not', async () => {
    const wait = () => new Promise(setImmediate);
    const seldom = (piece: Buffer) => (piece.length % 3 === 0 ? wait() : undefined);
    expect(await piped([() => undefined, wait, seldom])).toEqual([]);
  });
});

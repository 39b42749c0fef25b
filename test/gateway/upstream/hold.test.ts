import { beforeEach, describe, expect, test } from 'bun:test';
import { type Choice, hold } from '../../../gateway/upstream/response-reader.ts';
import type { BodyEnd, ReplyBody, WritePiece } from '../../../gateway/upstream/http-connection.ts';
import { textOfBody } from '../stream-body.ts';
import { createVirtualClock } from '../virtual-clock.ts';

const DUE_MS = 1_000;
let virtual: ReturnType<typeof createVirtualClock>;
let caller: AbortController;
beforeEach(() => {
  virtual = createVirtualClock(0);
  caller = new AbortController();
});

/** A body that a test sends piece by piece; what a piece asks to wait for is given back. */
function sent() {
  const ended = Promise.withResolvers<BodyEnd>();
  let write: WritePiece = () => undefined;
  let bytes = 0;
  const body: ReplyBody = {
    begun: () => ({ pieces: [], ended: false }),
    cancel: () => ended.resolve({ kind: 'cut', reason: 'cancelled', bytes }),
    pipe(given) {
      write = given;
      return ended.promise;
    },
  };
  return {
    body,
    piece(text: string): unknown {
      bytes += text.length;
      return write(Buffer.from(text));
    },
    end: () => ended.resolve({ kind: 'complete', bytes }),
  };
}

const held = (body: ReplyBody, choose: (piece: Buffer) => Choice = () => 'hold') =>
  hold(body, choose, { clock: virtual.clock, dueAtMs: DUE_MS, signal: caller.signal });
const text = (result: Awaited<ReturnType<typeof held>>) =>
  result.kind === 'ended' ? `${result.end.kind} ${Buffer.from(result.bytes).toString()}` : result.kind;

describe('a body that is held', () => {
  test('is given whole when it ends, and nothing waits any more', async () => {
    const { body, piece, end } = sent();
    const result = held(body);
    for (const each of ['a', 'b', 'c']) expect(piece(each)).toBeUndefined();
    end();
    expect(text(await result)).toBe('complete abc');
    expect(virtual.sleeping()).toBe(0);
  });

  test('is let go of when its time is over, however it drips', async () => {
    const { body, piece } = sent();
    const result = held(body);
    for (let ms = 0; ms < DUE_MS; ms += 100) {
      piece('.');
      virtual.advance(100);
    }
    expect(await result).toMatchObject({ kind: 'ended', end: { kind: 'cut', reason: 'stalled', bytes: 10 } });
  });

  test('is let go of when its time was over before', async () => {
    virtual.advance(2 * DUE_MS);
    const result = held(sent().body);
    virtual.advance(0);
    expect(await result).toMatchObject({ end: { reason: 'stalled' } });
  });

  test('is let go of when its caller leaves, or has left', async () => {
    for (const leave of [() => caller.abort(), () => undefined]) {
      const result = held(sent().body);
      leave();
      expect(await result).toMatchObject({ kind: 'ended', end: { kind: 'cut', reason: 'cancelled' } });
      expect(virtual.sleeping()).toBe(0);
    }
  });

  test('is let go of when it is refused', async () => {
    const { body, piece } = sent();
    const result = held(body, () => 'refuse');
    piece('<html>');
    expect((await result).kind).toBe('refused');
    expect(await body.pipe(() => undefined)).toMatchObject({ kind: 'cut', reason: 'cancelled' });
  });
});

describe('a body that is passed on', () => {
  const untilB = (piece: Buffer) => (piece.toString() === 'b' ? 'pass' : 'hold');

  test('waits for its reader, and gives what was held first', async () => {
    const { body, piece, end } = sent();
    const result = held(body, untilB);
    expect(piece('a')).toBeUndefined();
    const taken = piece('b');
    expect(taken).toBeInstanceOf(Promise);
    const passed = await result;
    if (passed.kind !== 'passed') throw new Error(passed.kind);
    expect(Buffer.concat(passed.pieces).toString()).toBe('ab');
    expect(await Promise.race([taken, 'not yet'])).toBe('not yet');
    const read = textOfBody(passed.body);
    await taken;
    piece('c');
    end();
    expect(await read).toBe('abc');
  });

  test('has neither time nor caller to mind: its reader has', async () => {
    const { body, piece, end } = sent();
    const result = held(body, untilB);
    piece('b');
    const passed = await result;
    expect(virtual.sleeping()).toBe(0);
    caller.abort();
    end();
    expect(passed.kind === 'passed' && (await textOfBody(passed.body))).toBe('b');
  });

  test('waits where its reader waits, and goes on when the reader fails', async () => {
    const { body, piece, end } = sent();
    const result = held(body, untilB);
    void piece('a');
    void piece('b');
    const passed = await result;
    if (passed.kind !== 'passed') throw new Error(passed.kind);
    const seen: string[] = [];
    const behind = Promise.withResolvers<void>();
    const piped = passed.body.pipe((each) => {
      seen.push(each.toString());
      return seen.length === 1 ? behind.promise : undefined;
    });
    expect(seen).toEqual(['a']);
    behind.reject(new Error('gone'));
    end();
    await piped;
    expect(seen).toEqual(['a', 'b']);
  });
});

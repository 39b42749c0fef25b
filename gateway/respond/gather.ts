import { bodyOf } from '../upstream/cache.ts';
import type { WritePiece } from '../upstream/http-connection.ts';
import type { StreamBody } from '../upstream/response-reader.ts';
import type { Beat } from './batch.ts';

/** Longer answers are streamed from their first byte. */
const BYTES_MAX = 1_048_576;
/** What a process holds of such answers, those too that their callers have not read yet. */
const HELD_BYTES_MAX = 67_108_864;

/**
 * Gathers an answer of known length that comes before `beat` into a stream that the listener has whole at once, so that it
 * sends the length. What is longer, later, cut, or would hold too much stays a body under way.
 */
export function createGather(beat: Beat) {
  let heldBytes = 0;

  return async function gather(body: StreamBody, length: number): Promise<ReadableStream | StreamBody> {
    if (length > BYTES_MAX || heldBytes + length > HELD_BYTES_MAX) return body;
    heldBytes += length;
    let isHeld = true;
    const release = () => {
      if (isHeld) heldBytes -= length;
      isHeld = false;
    };
    const bytes = Buffer.allocUnsafe(length);
    let filled = 0;
    let write: WritePiece = (piece) => {
      bytes.set(piece, filled);
      filled += piece.length;
    };
    const end = body.pipe((piece) => write(piece));
    const over = new AbortController();
    const early = await Promise.race([end, beat(over.signal)]);
    over.abort();
    if (early?.kind === 'complete') return wholeStream(bytes, release);
    let lead: StreamBody | undefined;
    return {
      cancel(reason?: 'evicted') {
        lead?.cancel();
        body.cancel(reason);
        release();
      },
      async pipe(next) {
        for (let from = 0; from < filled;) {
          lead = bodyOf([bytes.subarray(from, filled)]);
          from = filled;
          const led = await lead.pipe(next);
          if (led.kind === 'cut') return led;
        }
        write = next;
        release();
        return end;
      },
    };
  };
}

/** `onOver` is called when the caller has read it, or left. */
function wholeStream(bytes: Uint8Array, onOver: () => void): ReadableStream {
  const source: Bun.DirectUnderlyingSource = {
    type: 'direct',
    async pull(controller) {
      try {
        controller.write(bytes);
        await controller.end();
      } finally {
        onOver();
      }
    },
    cancel: onOver,
  };
  // Below this mark nothing leaves before the end, and the length is known.
  return new ReadableStream(source, { highWaterMark: bytes.length + 1 });
}

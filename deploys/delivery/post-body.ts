import type { IncomingMessage } from 'node:http';

/** How a body ended: all of it is kept, it was longer than what is kept, or it broke off or was too slow. */
export type BodyKind = 'whole' | 'cut' | 'incomplete';

/** Most of an answer that is kept; receivers are not asked for more than a word. */
const BODY_BYTES_MAX = 16_384;

/** The beginning of an answer's body, undecoded, until it ends, is longer than is kept, or `over` aborts. Never rejects. */
export function collectBody(
  response: IncomingMessage,
  over: AbortSignal,
): Promise<Readonly<{ body: Uint8Array; bodyKind: BodyKind }>> {
  const kept: Uint8Array[] = [];
  let bytes = 0;
  return new Promise((resolve) => {
    const end = (bodyKind: BodyKind) => resolve({ body: Uint8Array.from(Buffer.concat(kept)), bodyKind });
    response.on('data', (piece: Uint8Array) => {
      const room = BODY_BYTES_MAX - bytes;
      if (room > 0) kept.push(piece.subarray(0, room));
      bytes += piece.length;
      if (bytes <= BODY_BYTES_MAX) return;
      response.pause();
      end('cut');
    });
    response.on('end', () => end(response.complete ? 'whole' : 'incomplete'));
    response.on('error', () => end('incomplete'));
    response.on('close', () => end('incomplete'));
    over.addEventListener('abort', () => end('incomplete'), { once: true });
  });
}

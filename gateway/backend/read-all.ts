import type { BodyEnd } from '../http/reply.ts';
import type { StreamBody, StreamEnd } from './begun.ts';

/** How a body was read: its bytes, how it was cut, or that it is longer than was wanted. */
export type ReadBody =
  | { readonly kind: 'all'; readonly bytes: Uint8Array<ArrayBuffer> }
  | Extract<StreamEnd, { kind: 'cut' }>
  | { readonly kind: 'too-long' };

/** What can be read: a body of a reply, or one that is watched on its way. */
type Body = Readonly<{
  pipe(write: (piece: Buffer) => void): Promise<BodyEnd | StreamEnd>;
  cancel: StreamBody['cancel'];
}>;

/** Reads a body to its end, and lets go of one longer than `bytesMax`. Never rejects. */
export async function readAll(body: Body, bytesMax: number): Promise<ReadBody> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  const end = await body.pipe((piece) => {
    bytes += piece.length;
    if (bytes > bytesMax) body.cancel();
    else pieces.push(piece);
  });
  if (bytes > bytesMax) return { kind: 'too-long' };
  return end.kind === 'cut' ? end : { kind: 'all', bytes: new Uint8Array(Buffer.concat(pieces)) };
}

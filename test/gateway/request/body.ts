import { type BodyRead, readEnvelope } from '../../../gateway/request/envelope.ts';

/** What a body is that is read at once, however long it is. */
export function readAtOnce(body: string | Uint8Array, elementsMax = 100): BodyRead {
  const read = readEnvelope(Buffer.from(body), elementsMax, Infinity);
  if (read instanceof Promise) throw new Error('a body was read in slices');
  return read;
}

/** A body longer than the config allows. `isEndless`: so much of it is still to come that its connection is better closed. */
export type BodyRefusal = { readonly kind: 'body-too-large'; readonly isEndless: boolean };

export type Body =
  { readonly kind: 'body'; readonly bytes: Uint8Array } | BodyRefusal | { readonly kind: 'caller-left' };

/** Reads at most `bytesMax` bytes; a longer body is told without reading the rest. Never rejects. */
export async function readBody(request: Request, bytesMax: number): Promise<Body> {
  const length = request.headers.get('content-length');
  if (length !== null && Number(length) > bytesMax) return tooLarge(Number(length) > READ_OUT_BYTES_MAX);
  try {
    // The listener reads no more than the declared length, so the fast whole read cannot exceed it.
    if (length !== null) return { kind: 'body', bytes: new Uint8Array(await request.arrayBuffer()) };
    return await readChunks(request.body, bytesMax);
  } catch {
    return { kind: 'caller-left' };
  }
}

async function readChunks(stream: ReadableStream<Uint8Array> | null, bytesMax: number): Promise<Body> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of stream ?? []) {
    bytes += chunk.length;
    if (bytes > bytesMax) return tooLarge(true);
    chunks.push(chunk);
  }
  return { kind: 'body', bytes: Buffer.concat(chunks) };
}

/**
 * The listener reads the rest of a refused body, so that a caller who sends first and reads then sees the refusal. It
 * would do so for ever.
 */
const READ_OUT_BYTES_MAX = 16_777_216;

function tooLarge(isEndless: boolean): BodyRefusal {
  return { kind: 'body-too-large', isEndless };
}

/** A request's body as text, or why it was not taken. */
export type ReadBody =
  Readonly<{ kind: 'text'; text: string }> | Readonly<{ kind: 'too-large' }> | Readonly<{ kind: 'not-utf8' }>;

/** Reads a body, and stops reading at `bytesMax`. */
export async function readBody(request: Request, bytesMax: number): Promise<ReadBody> {
  if (Number(request.headers.get('content-length') ?? 0) > bytesMax) return { kind: 'too-large' };
  const chunks: Uint8Array[] = [];
  let total = 0;
  if (request.body !== null) {
    for await (const chunk of request.body) {
      total += chunk.byteLength;
      if (total > bytesMax) return { kind: 'too-large' };
      chunks.push(chunk);
    }
  }
  try {
    return {
      kind: 'text',
      text: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.concat(chunks)),
    };
  } catch {
    return { kind: 'not-utf8' };
  }
}

import type { StreamBody, StreamEnd } from '../../gateway/http/stream-body.ts';

/** A web stream as a backend's body under way: `cancel` cancels it, an error of it is a cut. */
export function streamBodyOf(stream: ReadableStream<Uint8Array>): StreamBody {
  const reader = stream.getReader();
  let cancelled = false;
  return {
    cancel() {
      cancelled = true;
      void reader.cancel();
    },
    async pipe(write): Promise<StreamEnd> {
      let bytes = 0;
      try {
        for (;;) {
          const { done, value } = await reader.read();
          if (cancelled) return { kind: 'cut', reason: 'cancelled', bytes };
          if (done) return { kind: 'complete', bytes };
          bytes += value.length;
          await write(Buffer.from(value));
        }
      } catch {
        return { kind: 'cut', reason: 'closed', bytes };
      }
    },
  };
}

/** The whole body as text, or how it was cut. */
export async function textOfBody(body: StreamBody): Promise<string> {
  const pieces: Buffer[] = [];
  const end = await body.pipe((piece) => void pieces.push(Buffer.from(piece)));
  return end.kind === 'complete' ? Buffer.concat(pieces).toString() : `cut: ${end.reason}`;
}

import { createLine, type Part, type Start } from './line.ts';

/** Calls of one batch under way at once. */
const PARALLEL_MAX = 8;

const OPEN = Buffer.from('[');
const COMMA = Buffer.from(',');
const CLOSE = Buffer.from(']');
const SPACE = Buffer.from(' ');

/** Resolves when it is time for a sign of life, or when `signal` aborts. */
export type Beat = (signal: AbortSignal) => Promise<void>;

/**
 * The answers as one JSON array in the batch's order, spliced as bytes, holding one chunk at a time. A later answer
 * that is large waits at its backend, or is asked for again when an earlier call needs its place (`line.ts`). When one breaks off after its first byte the whole stream fails, so that the
 * caller's connection is cut, and `onCut` is told its place. `abort` ends every call; it is fired when the caller
 * leaves.
 */
export function streamBatch(
  starts: readonly Start[],
  abort: AbortController,
  onCut: (place: number) => void,
  beat: Beat,
): ReadableStream {
  const source: Bun.DirectUnderlyingSource = {
    type: 'direct',
    async pull(controller) {
      try {
        const line = createLine(starts, PARALLEL_MAX, abort.signal);
        for (const i of starts.keys()) {
          await controller.write(i === 0 ? OPEN : COMMA);
          abort.signal.throwIfAborted();
          const part = await whileBeating(line.turn(i), beat, () => controller.write(SPACE));
          abort.signal.throwIfAborted();
          const whole = await writePart(controller, part);
          abort.signal.throwIfAborted();
          if (!whole) {
            onCut(i);
            throw new Error('an answer of the batch broke off');
          }
          line.done(part);
          await controller.flush();
        }
        await controller.write(CLOSE);
        controller.close();
      } catch (error) {
        abort.abort(error);
        controller.close(error instanceof Error ? error : new Error('the batch was cut', { cause: error }));
      }
    },
    cancel(reason) {
      abort.abort(reason);
    },
  };
  return new ReadableStream(source);
}

/** Waits for an answer to begin, and writes white space meanwhile: the caller's connection must not look idle. */
async function whileBeating(begun: Promise<Part>, beat: Beat, write: () => unknown): Promise<Part> {
  const over = new AbortController();
  const beating = (async () => {
    for (;;) {
      await beat(over.signal);
      if (over.signal.aborted) return;
      await write();
    }
  })();
  try {
    return await begun;
  } finally {
    over.abort();
    await beating;
  }
}

/** Writes one answer; gives false when it broke off. */
async function writePart(controller: ReadableStreamDirectController, part: Part): Promise<boolean> {
  if (part.kind === 'bytes') {
    await controller.write(part.bytes);
    part.onSent?.();
    return true;
  }
  const end = await part.body.pipe((piece) => controller.write(piece));
  return end.kind === 'complete';
}

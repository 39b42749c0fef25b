import type { Answer } from './answer.ts';

const CHUNK_CHARACTERS = 64 * 1024;

/** A body of answers: one text when all are, a stream when one is a scan. `onBatch` says whether brackets stand around them. */
export function bodyFrom(answers: readonly Answer[], isBatch: boolean): string | ReadableStream<Uint8Array> {
  const texts: string[] = [];
  for (const answer of answers) {
    if (answer.kind === 'pieces') return streamOf(answers, isBatch);
    texts.push(answer.text);
  }
  return `${isBatch ? `[${texts.join(',')}]` : texts.join(',')}\n`;
}

function* piecesOf(answers: readonly Answer[], isBatch: boolean): Generator<string> {
  if (isBatch) yield '[';
  for (const [index, answer] of answers.entries()) {
    if (index > 0) yield ',';
    if (answer.kind === 'text') {
      yield answer.text;
      continue;
    }
    yield answer.head;
    yield* answer.result.pieces;
    answer.result.release();
    yield answer.tail;
  }
  yield isBatch ? ']\n' : '\n';
}

/** The pieces in chunks, made when the reader asks for one; a reader that leaves releases all scans. */
function streamOf(answers: readonly Answer[], isBatch: boolean): ReadableStream<Uint8Array> {
  const pieces = piecesOf(answers, isBatch);
  const encoder = new TextEncoder();
  function release(): void {
    for (const answer of answers) if (answer.kind === 'pieces') answer.result.release();
  }
  function pull(controller: ReadableStreamDefaultController<Uint8Array>): void {
    let chunk = '';
    try {
      while (chunk.length < CHUNK_CHARACTERS) {
        const next = pieces.next();
        if (next.done === true) {
          if (chunk !== '') controller.enqueue(encoder.encode(chunk));
          controller.close();
          return release();
        }
        chunk += next.value;
      }
      controller.enqueue(encoder.encode(chunk));
    } catch (cause) {
      release();
      throw cause;
    }
  }
  return new ReadableStream({ pull, cancel: release }, { highWaterMark: 1 });
}

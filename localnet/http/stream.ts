/*
 * Bodies, written as they are read: an element of a batch is carried out when all before it were written, so that a
 * body of any size holds one answer, and of that one chunk.
 */
import type { Answer } from './dispatch.ts';

const CHUNK_CHARACTERS = 64 * 1024;

/** Carries out one element of a body. */
type Work = () => Answer;

// Where the event loop must turn: the machine's copies of accounts are only given back when it does.
const TURN: unique symbol = Symbol('turn');
type Step = string | typeof TURN;
type Chunk = Readonly<{ text: string; isLast: boolean }>;

/** The body of one answer: one text when it fits into a chunk, else a stream. */
export function singleBody(work: Work): Promise<string | ReadableStream<Uint8Array>> {
  return bodyFrom(singleSteps(work));
}

/** The body of a batch, its answers in the order of `works`; as `singleBody`. */
export function batchBody(works: readonly Work[]): Promise<string | ReadableStream<Uint8Array>> {
  return bodyFrom(batchSteps(works));
}

function* answerSteps(work: Work): Generator<Step> {
  const { head, result, tail } = work();
  try {
    yield head;
    yield* result.pieces;
    yield tail;
  } finally {
    result.release();
  }
}

function* singleSteps(work: Work): Generator<Step> {
  yield* answerSteps(work);
  yield '\n';
}

function* batchSteps(works: readonly Work[]): Generator<Step> {
  for (const [index, work] of works.entries()) {
    yield index === 0 ? '[' : ',';
    yield* answerSteps(work);
    yield TURN;
  }
  yield ']\n';
}

async function bodyFrom(steps: Generator<Step>): Promise<string | ReadableStream<Uint8Array>> {
  const first = await nextChunk(steps);
  return first.isLast ? first.text : streamOf(first, steps);
}

async function nextChunk(steps: Generator<Step>): Promise<Chunk> {
  let text = '';
  while (text.length < CHUNK_CHARACTERS) {
    const next = steps.next();
    if (next.done === true) return { text, isLast: true };
    if (next.value === TURN) await turn();
    else text += next.value;
  }
  return { text, isLast: false };
}

/** The chunks, each made when the reader asks for it; a reader that leaves ends the steps, and so their holds. */
function streamOf(first: Chunk, steps: Generator<Step>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let ready: Chunk | undefined = first;
  async function pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    // A fast reader of a long body must not keep the others waiting.
    if (ready === undefined) await turn();
    const chunk = ready ?? (await nextChunk(steps));
    ready = undefined;
    if (chunk.text !== '') controller.enqueue(encoder.encode(chunk.text));
    if (chunk.isLast) controller.close();
  }
  return new ReadableStream({ pull, cancel: () => void steps.return(undefined) }, { highWaterMark: 1 });
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

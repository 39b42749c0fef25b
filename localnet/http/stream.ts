/*
 * Bodies, written as they are read: an element of a batch is carried out when all before it were written, so that a
 * body of any size holds one answer, and of that one chunk.
 */
import type { Element } from '../request/envelope.ts';
import type { Dispatch } from './dispatch.ts';

const CHUNK_CHARACTERS = 64 * 1024;

// Where the event loop must turn: the machine's copies of accounts are only given back when it does.
const TURN: unique symbol = Symbol('turn');
type Step = string | typeof TURN;
type Chunk = Readonly<{ text: string; isLast: boolean }>;

/** The body with the answers to elements, in their order: one text when it fits into a chunk, else a stream. */
export async function bodyOf(elements: readonly Element[], isBatch: boolean, dispatch: Dispatch) {
  const steps = isBatch ? batchSteps(elements, dispatch) : singleSteps(elements, dispatch);
  const first = await nextChunk(steps);
  return first.isLast ? first.text : streamOf(first, steps);
}

function* singleSteps(elements: readonly Element[], dispatch: Dispatch): Generator<Step> {
  for (const element of elements) yield* dispatch(element);
  yield '\n';
}

function* batchSteps(elements: readonly Element[], dispatch: Dispatch): Generator<Step> {
  for (const [index, element] of elements.entries()) {
    yield index === 0 ? '[' : ',';
    yield* dispatch(element);
    yield TURN;
  }
  yield ']\n';
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

/** The chunks, each made when its reader wants it; a reader that leaves ends the steps, which releases what they hold. */
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

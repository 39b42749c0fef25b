import { arrayOf } from '../json/slices.ts';
import { isUnread, type StreamBody, type StreamEnd, type WritePiece } from '../http/stream-body.ts';

/** One element's answer, ready to be spliced. */
export type Part =
  /** `onSent` is called when the bytes were handed to the caller's connection. */
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array<ArrayBuffer>; onSent?(): void }
  /** `mayRepeat`: the call may be sent again, so its answer may be evicted before its turn. */
  | { readonly kind: 'stream'; readonly body: StreamBody; readonly mayRepeat?: boolean };

/** Called when a call waits for a permit that others hold; the function that it returns is called when the wait ends. */
export type OnWait = () => () => void;

/** Lets go of an answer that waits for its turn; false when none does. */
export type Evict = () => boolean;

/** A call of a batch. */
export type BatchedCall = Readonly<{
  /** A light read: many of them are one exchange with a backend. */
  isLight: boolean;
  /** Begins its answer, once more when it was evicted. Never rejects. */
  begin(onWait: OnWait, evict: Evict): Promise<Part>;
}>;

/** Calls of one batch under way at once: of light reads, and of others. */
const LIGHT_MAX = 32;
const OTHERS_MAX = 8;
/** While a batch holds so much of its answers, for its caller does not read them or an earlier one is not there, it starts no more calls. */
export const HELD_BYTES_MAX = 524_288;

/**
 * The calls of one batch, started in order; a next one starts when an answer is held whole, or its stream has been written.
 * A stream out of turn holds a connection of its backend, and a scan's a permit of its account: while an earlier call of
 * the batch waits for either, the streams behind it are evicted, the last first, and sent again in their turn. So no call
 * waits for an answer that waits for it. A stream out of turn is evicted as well when another account needs its connection.
 */
function createBatchScheduler(starts: readonly BatchedCall[], signal: AbortSignal) {
  /** Answers under way or there, by index; `undefined` before that, and when they were evicted. */
  const parts: (Promise<Part> | undefined)[] = [];
  /** The index of a call for each permit that it waits for. */
  const waits: number[] = [];
  /** Streams that wait for their turn, and may be evicted. */
  const held = new Map<number, StreamBody>();
  const free = { light: LIGHT_MAX, others: OTHERS_MAX };
  let heldBytes = 0;
  let next = 0;
  let now = 0;
  let isEvicting = false;

  function launch(): void {
    while (heldBytes < HELD_BYTES_MAX && next < starts.length && !signal.aborted) {
      if (free[kindOf(next)] === 0) return;
      free[kindOf(next)]--;
      void begin(next++);
    }
  }

  const kindOf = (index: number) => (starts[index]?.isLight === true ? 'light' : 'others');

  function finish(index: number): void {
    free[kindOf(index)]++;
    launch();
  }

  function begin(index: number): Promise<Part> {
    const answer = starts[index]?.begin(
      () => wait(index),
      () => evict(index),
    );
    if (answer === undefined) throw new RangeError(`a batch of ${starts.length} has no call ${index}`);
    parts[index] = answer;
    void answer.then((part) => {
      if (part.kind === 'bytes') {
        heldBytes += part.bytes.length;
        finish(index);
      } else if (part.mayRepeat && index > now) {
        held.set(index, part.body);
        void evictForWaiters();
      }
    });
    return answer;
  }

  function wait(index: number): () => void {
    waits.push(index);
    void evictForWaiters();
    return () => void waits.splice(waits.indexOf(index), 1);
  }

  /** Evicts one stream after the other while an earlier call waits: another batch may take what one gave up. */
  async function evictForWaiters(): Promise<void> {
    if (isEvicting) return;
    isEvicting = true;
    for (let last = lastHeld(); last > Math.min(...waits); last = lastHeld()) {
      evict(last);
      await new Promise(setImmediate); // in which a call that has got its permit says so
    }
    isEvicting = false;
  }

  function evict(index: number): boolean {
    const body = held.get(index);
    if (body === undefined) return false;
    held.delete(index);
    parts[index] = undefined;
    body.cancel();
    return true;
  }

  const lastHeld = () => Math.max(...held.keys());

  launch();
  return {
    /** The answer at `index`, whose turn has come. From then on it is cut, not sent again, when it is not read while others wait. */
    turn(index: number): Promise<Part> {
      now = index;
      held.delete(index);
      return parts[index] ?? begin(index);
    },
    /** Called when the answer at `index` has been written. */
    written(index: number, part: Part): void {
      parts[index] = undefined;
      if (part.kind === 'stream') return finish(index);
      heldBytes -= part.bytes.length;
      launch();
    },
  };
}

/** Small answers are gathered up to so many bytes, and sent as one; more is sent as it comes. */
const GATHERED_BYTES_MAX = 262_144;

/** Resolves when it is time to send what there is, or a sign of life; or when `signal` aborts. */
export type Beat = (signal: AbortSignal) => Promise<void>;

const [COMMA, CLOSE_ARRAY, SPACE] = [Buffer.from(','), Buffer.from(']'), Buffer.from(' ')];

/**
 * The answers as one JSON array in the batch's order, spliced as bytes: whole when all are small and come soon, else a
 * stream that holds one piece at a time. A later answer that is large waits at its backend, or is sent again when
 * an earlier call needs its permit. When one breaks off after its first byte the whole stream is cut, and `onCut` gets its
 * index. `abort` ends every call; it is fired when the stream is cancelled.
 */
export async function spliceBatch(
  starts: readonly BatchedCall[],
  abort: AbortController,
  onCut: (index: number) => void,
  gather: Beat,
  beat: Beat,
): Promise<Uint8Array<ArrayBuffer> | StreamBody> {
  const { signal } = abort;
  const scheduler = createBatchScheduler(starts, signal);
  const gathered: Extract<Part, { kind: 'bytes' }>[] = [];
  const stop = new AbortController();
  // An answer that is there must not wait long for the one behind it.
  await Promise.race([gatherParts(), gather(stop.signal)]);
  stop.abort();
  const whole = arrayOf(gathered.map(({ bytes }) => bytes));
  if (gathered.length < starts.length || signal.aborted) return { pipe, cancel: () => abort.abort() };
  gathered.forEach(({ onSent }) => onSent?.());
  return whole;

  async function gatherParts(): Promise<void> {
    for (let bytes = 0; gathered.length < starts.length && !signal.aborted;) {
      const part = await scheduler.turn(gathered.length);
      if (stop.signal.aborted || part.kind === 'stream' || bytes > GATHERED_BYTES_MAX) return;
      gathered.push(part);
      bytes += part.bytes.length;
    }
  }

  async function pipe(write: WritePiece): Promise<StreamEnd> {
    let bytes = 0;
    const put: WritePiece = (piece) => {
      bytes += piece.length;
      return write(piece);
    };
    try {
      await put(Buffer.from(whole.buffer, whole.byteOffset, whole.length - 1));
      const count = gathered.length;
      gathered.splice(0).forEach((part, i) => {
        part.onSent?.();
        scheduler.written(i, part);
      });
      for (let i = count; i < starts.length; i++) await writeElement(i, put);
      await put(CLOSE_ARRAY);
      return { kind: 'complete', bytes };
    } catch (error) {
      abort.abort(error);
      return { kind: 'cut', reason: 'cancelled', bytes };
    }
  }

  async function writeElement(index: number, write: WritePiece): Promise<void> {
    if (index > 0) await write(COMMA);
    signal.throwIfAborted();
    const part = await whileBeating(scheduler.turn(index), beat, () => write(SPACE));
    signal.throwIfAborted();
    if (part.kind === 'bytes') {
      const { buffer, byteOffset, length } = part.bytes;
      await write(Buffer.from(buffer, byteOffset, length));
      part.onSent?.();
      return scheduler.written(index, part);
    }
    const end = await part.body.pipe(write);
    signal.throwIfAborted();
    if (end.kind === 'cut') {
      if (!isUnread(end)) onCut(index);
      throw new Error('an answer of the batch broke off');
    }
    scheduler.written(index, part);
  }
}

/** Waits for an answer to begin, and writes white space meanwhile: the caller's connection must not look idle. */
async function whileBeating(pending: Promise<Part>, beat: Beat, write: () => unknown): Promise<Part> {
  const over = new AbortController();
  try {
    for (;;) {
      const part = await Promise.race([pending, beat(over.signal)]);
      if (part !== undefined) return part;
      await write();
    }
  } finally {
    over.abort();
  }
}

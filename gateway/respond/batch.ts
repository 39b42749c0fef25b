import { unreachable } from '../../shared/brand.ts';
import type { Charging } from '../limits/charge.ts';
import type { CallContext, Reply } from '../upstream/forward.ts';
import type { StreamBody } from '../upstream/response-reader.ts';
import { countedBody } from '../usage/usage.ts';
import {
  type Admitted,
  type ForwardCall,
  isMethodError,
  isUnanswered,
  type Outcome,
  outcomeOf,
  type PlannedCall,
  type Refund,
  refundsOf,
  type Send,
} from './planned-call.ts';
import { INVALID_REQUEST, NO_BACKEND, rpcError } from './refusal.ts';

/** One element's answer, ready to be spliced. */
export type Part =
  /** `onSent` is called when the bytes were handed to the caller's connection. */
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array<ArrayBuffer>; onSent?(): void }
  /** `mayRepeat`: the call may be sent again, so its answer may be evicted before its turn. */
  | { readonly kind: 'stream'; readonly body: StreamBody; readonly mayRepeat?: boolean };

/** Called when a call waits for a permit that others hold; the function that it returns is called when the wait ends. */
export type OnWait = () => () => void;

/** Begins one element's answer, once more when it was let go. Never rejects. */
export type Start = (onWait: OnWait) => Promise<Part>;

/** The calls of one batch, under way a few at a time. */
export type BatchScheduler = Readonly<{
  /** The answer at `place`, whose turn has come; from now on it is not let go. */
  turn(place: number): Promise<Part>;
  /** Called when an answer has been written. */
  done(part: Part): void;
}>;

/** One call. `begun` is its answer, under way or there; `undefined` before it, and when it was let go. */
type Slot = { readonly place: number; readonly start: Start; begun: Promise<Part> | undefined; asks: number };

/** How often a call is sent before its turn; once more it is sent when its turn comes. */
const EARLY_ASKS_MAX = 2;

/**
 * Starts at most `parallelMax` calls at once, in order. Bytes give their number up when they are whole, streams when
 * they are gone. A stream out of turn holds a place at its backend, and a scan's a permit: while an earlier call of the
 * batch waits for either, the streams behind it are let go, the last first, until it has what it waits for. So whoever
 * waits, waits for answers that are being made or read, never for one that waits for him.
 */
export function createBatchScheduler(
  starts: readonly Start[],
  parallelMax: number,
  signal: AbortSignal,
): BatchScheduler {
  const slots = starts.map((start, place): Slot => ({ place, start, begun: undefined, asks: 0 }));
  const unstarted = slots.values();
  /** One for each permit or place that a call waits for. */
  const waits = new Set<Readonly<{ place: number }>>();
  /** Streams that wait for their turn, and may be let go. */
  const held = new Map<Slot, StreamBody>();
  const evicted = new Set<Slot>();
  let free = parallelMax;
  let now = 0;
  let isEvicting = false;

  function launch(): void {
    while (free > 0 && !signal.aborted) {
      const { value: slot, done } = unstarted.next();
      if (done) return;
      free--;
      void begin(slot);
    }
  }

  function begin(slot: Slot): Promise<Part> {
    slot.asks++;
    slot.begun = slot
      .start(() => wait(slot))
      .then((part) => {
        if (part.kind === 'bytes') release();
        else if (part.mayRepeat && slot.place > now) {
          held.set(slot, part.body);
          void evictForWaiters();
        }
        return part;
      });
    return slot.begun;
  }

  function release(): void {
    free++;
    launch();
  }

  function wait({ place }: Slot): () => void {
    const waiting = { place };
    waits.add(waiting);
    void evictForWaiters();
    return () => {
      waits.delete(waiting);
      resume();
    };
  }

  const firstWaiting = () => Math.min(...[...waits].map(({ place }) => place));

  /** Lets go of one stream after the other while an earlier call waits. What one gave up may be another batch's to take. */
  async function evictForWaiters(): Promise<void> {
    if (isEvicting) return;
    isEvicting = true;
    for (let last = lastBehind(firstWaiting()); last; last = lastBehind(firstWaiting())) {
      const [slot, body] = last;
      held.delete(slot);
      evicted.add(slot);
      slot.begun = undefined;
      body.cancel();
      await new Promise(setImmediate); // in which a call that has got its place says so
    }
    isEvicting = false;
  }

  function lastBehind(place: number): readonly [Slot, StreamBody] | undefined {
    return [...held].filter(([slot]) => slot.place > place).sort(([a], [b]) => b.place - a.place)[0];
  }

  /** Sends evicted calls again, in order, up to the first one that waits. */
  function resume(): void {
    for (const slot of [...evicted].sort((a, b) => a.place - b.place)) {
      if (signal.aborted || slot.place > firstWaiting()) return;
      if (slot.asks < EARLY_ASKS_MAX) restart(slot);
    }
  }

  function restart(slot: Slot): Promise<Part> {
    evicted.delete(slot);
    return begin(slot);
  }

  launch();
  return {
    turn(place) {
      const slot = slots[place];
      if (slot === undefined) throw new RangeError(`a batch of ${slots.length} has no call ${place}`);
      now = place;
      held.delete(slot);
      return slot.begun ?? restart(slot);
    },
    done(part) {
      if (part.kind === 'stream') release();
    },
  };
}

/** Calls of one batch under way at once. */
const PARALLEL_MAX = 8;
/** Small answers are gathered up to so many bytes, and sent as one; more is sent as it comes. */
const GATHERED_BYTES_MAX = 262_144;

const OPEN = Buffer.from('[');
const COMMA = Buffer.from(',');
const CLOSE = Buffer.from(']');
const SPACE = Buffer.from(' ');

/** Resolves when it is time to send what there is, or a sign of life; or when `signal` aborts. */
export type Beat = (signal: AbortSignal) => Promise<void>;

/**
 * The answers as one JSON array in the batch's order, spliced as bytes: whole when all are small and come soon, else a
 * stream that holds one chunk at a time. A later answer that is large waits at its backend, or is sent again when
 * an earlier call needs its place. When one breaks off after its first byte the whole stream fails, so that the caller's
 * connection is cut, and `onCut` gets its index. `abort` ends every call; it is fired when the caller leaves.
 */
export function spliceBatch(
  starts: readonly Start[],
  abort: AbortController,
  onCut: (place: number) => void,
  gather: Beat,
  beat: Beat,
): Promise<Uint8Array<ArrayBuffer> | ReadableStream> {
  const line = createBatchScheduler(starts, PARALLEL_MAX, abort.signal);
  const pieces: Uint8Array[] = [];
  const sent: (() => void)[] = [];
  const gathered = new AbortController();
  let bytes = 0;
  let next = 0;
  const { promise, resolve } = Promise.withResolvers<Uint8Array<ArrayBuffer> | ReadableStream>();
  // An answer that is there must not wait long for the one behind it.
  void gather(gathered.signal).then(stream);
  turn();
  return promise;

  /** Gathers the answer whose turn it is, and then the next ones. */
  function turn(): void {
    if (abort.signal.aborted) return stream();
    if (next === starts.length) return finish();
    void line.turn(next).then((part) => {
      if (gathered.signal.aborted) return;
      if (part.kind === 'stream' || bytes > GATHERED_BYTES_MAX) return stream();
      pieces.push(next === 0 ? OPEN : COMMA, part.bytes);
      bytes += part.bytes.length;
      if (part.onSent !== undefined) sent.push(part.onSent);
      next++;
      turn();
    });
  }

  function finish(): void {
    gathered.abort();
    pieces.push(CLOSE);
    resolve(new Uint8Array(Buffer.concat(pieces)));
    for (const onSent of sent) onSent();
  }

  function stream(): void {
    if (gathered.signal.aborted) return;
    gathered.abort();
    resolve(streamFrom(line, starts.length, next, Buffer.concat(pieces), sent, { abort, onCut, beat }));
  }
}

type Stream = Readonly<{ abort: AbortController; onCut: (place: number) => void; beat: Beat }>;

/** The array from `first` on, behind the bytes of what stands before it. */
function streamFrom(
  line: BatchScheduler,
  count: number,
  first: number,
  before: Buffer,
  sent: readonly (() => void)[],
  { abort, onCut, beat }: Stream,
): ReadableStream {
  const source: Bun.DirectUnderlyingSource = {
    type: 'direct',
    async pull(controller) {
      try {
        if (before.length > 0) await controller.write(before);
        await controller.flush();
        for (const onSent of sent) onSent();
        for (let i = first; i < count; i++) {
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

type Parts = Readonly<{
  send: Send;
  charging: Pick<Charging, 'refund'>;
  onCall(method: string, outcome: Outcome): void;
  gather: Beat;
  beat: Beat;
}>;

/** An element of a batch that is answered, and how often its answer was begun. */
type Answered = {
  readonly place: number;
  readonly planned: Exclude<PlannedCall, { kind: 'notification' }>;
  asks: number;
};

/** The body of the answer to a batch; `undefined` when it has notifications alone. */
type AnswerBatch = (admitted: Admitted) => Promise<Uint8Array<ArrayBuffer> | ReadableStream> | undefined;

export function createBatch({ send, charging, onCall, gather, beat }: Parts): AnswerBatch {
  return function answerBatch(admitted) {
    const { request, usage } = admitted;
    const abort = new AbortController();
    const refund = refundsOf(charging, admitted);
    const answered = admitted.planned.flatMap((planned, place): Answered[] =>
      planned.kind === 'notification' ? [] : [{ place, planned, asks: 0 }],
    );
    if (answered.length === 0) return undefined;
    // What was never sent costs nothing, whoever broke the batch off.
    const refundUnsent = () => answered.forEach(({ place, asks }) => asks === 0 && refund(place));
    abort.signal.addEventListener('abort', refundUnsent, { once: true });
    // The caller may have left while the charge was written; an aborted signal fires no event.
    const leave = () => abort.abort(request.signal.reason);
    if (request.signal.aborted) leave();
    else request.signal.addEventListener('abort', leave, { once: true });
    const starts = answered.map((one) => startOf(one, admitted, refund, abort.signal));
    return spliceBatch(starts, abort, refundFrom, gather, beat);

    /** What a batch that broke off did not deliver is not paid for: the answer at `first` and all behind it. */
    function refundFrom(first: number): void {
      if (request.signal.aborted) return;
      for (const { place } of answered.slice(first)) {
        refund(place);
        usage.error(place);
      }
    }
  };

  /** Begins the answer of a batch's element; that of a call whose answer was let go, once more. */
  function startOf(one: Answered, admitted: Admitted, refund: Refund, signal: AbortSignal): Start {
    const { place, planned } = one;
    const { caller, plan, usage } = admitted;
    return (onWait) => {
      const isFirst = one.asks++ === 0;
      if (planned.kind === 'answered') {
        usage.error(place);
        return Promise.resolve(countedAnswer(planned.bytes));
      }
      const context: CallContext = {
        acceptEncoding: 'identity',
        signal,
        onSettled: nothing,
        accountId: caller.accountId,
        onWait,
        batchPosition: { batch: admitted, index: place },
      };
      const { promise, resolve } = Promise.withResolvers<Reply>();
      send(planned, plan, context, resolve);
      return promise.then((reply) => {
        const outcome = outcomeOf(reply);
        if (isFirst || outcome !== 'answered') onCall(planned.label, outcome);
        // One that was let go has been sent before.
        if (isUnanswered(reply) && (isFirst || outcome !== 'caller-left')) refund(place);
        return partOf(reply, planned);
      });
    };

    function partOf(reply: Reply, { call, route }: ForwardCall): Part {
      switch (reply.kind) {
        case 'whole':
          if (isMethodError(reply)) usage.error(place);
          return countedAnswer(reply.bytes);
        case 'stream':
          return {
            kind: 'stream',
            body: countedBody(reply.body, usage, place),
            mayRepeat: route.method.class !== 'write',
          };
        case 'too-large':
          usage.error(place);
          return countedBytes(rpcError(INVALID_REQUEST, 'Request body too large', call.id));
        case 'no-backend':
          usage.error(place);
          return countedBytes(rpcError(NO_BACKEND, 'No backend available', call.id));
        case 'caller-left':
          return { kind: 'bytes', bytes: rpcError(NO_BACKEND, 'No backend available', call.id) };
        default:
          return unreachable(reply);
      }
    }

    function countedAnswer(bytes: Uint8Array<ArrayBuffer>): Part {
      const onSent = () => {
        usage.answered(place);
        usage.bytes(place, bytes.length);
      };
      return { kind: 'bytes', bytes, onSent };
    }

    function countedBytes(bytes: Uint8Array<ArrayBuffer>): Part {
      return { kind: 'bytes', bytes, onSent: () => usage.bytes(place, bytes.length) };
    }
  }
}

function nothing(): void {
  // a call that holds no permit has none to give back
}

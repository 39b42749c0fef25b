import { unreachable } from '../../shared/brand.ts';
import type { Charging } from '../limits/charge.ts';
import type { Asking, Reply } from '../upstream/forward.ts';
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
  /** `mayRepeat` says that the call may be asked again, so that its answer may be let go before its turn. */
  | { readonly kind: 'stream'; readonly body: StreamBody; readonly mayRepeat?: boolean };

/** Told that a call waits for what others hold: a permit, or a place at a backend; what it gives says that it waits no longer. */
export type OnWait = () => () => void;

/** Begins one element's answer, once more when it was let go. Never rejects. */
export type Start = (onWait: OnWait) => Promise<Part>;

/** The calls of one batch, under way a few at a time. */
export type Line = Readonly<{
  /** The answer at `place`, whose turn has come; from now on it is not let go. */
  turn(place: number): Promise<Part>;
  /** Told that an answer has gone. */
  done(part: Part): void;
}>;

/** One call. `begun` is its answer, under way or there; `undefined` before it, and when it was let go. */
type Slot = { readonly place: number; readonly start: Start; begun: Promise<Part> | undefined; asks: number };

/** How often a call is asked before its turn; a last time it is asked when its turn has come. */
const EARLY_ASKS_MAX = 2;

/**
 * Starts at most `parallelMax` calls at once, in order. Bytes give their number up when they are whole, streams when
 * they are gone. A stream out of turn holds a place at its backend, and a scan's a permit: while an earlier call of the
 * batch waits for either, the streams behind it are let go, the last first, until it has what it waits for. So whoever
 * waits, waits for answers that are being made or read, never for one that waits for him.
 */
export function createLine(starts: readonly Start[], parallelMax: number, signal: AbortSignal): Line {
  const slots = starts.map((start, place): Slot => ({ place, start, begun: undefined, asks: 0 }));
  const unstarted = slots.values();
  /** One for each permit or place that a call waits for. */
  const waits = new Set<Readonly<{ place: number }>>();
  /** Streams that wait for their turn, and may be let go. */
  const held = new Map<Slot, StreamBody>();
  const letGo = new Set<Slot>();
  let free = parallelMax;
  let now = 0;
  let relieving = false;

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
          void relieve();
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
    void relieve();
    return () => {
      waits.delete(waiting);
      resume();
    };
  }

  const firstWaiting = () => Math.min(...[...waits].map(({ place }) => place));

  /** Lets go of one stream after the other while an earlier call waits. What one gave up may be another batch's to take. */
  async function relieve(): Promise<void> {
    if (relieving) return;
    relieving = true;
    for (let last = lastBehind(firstWaiting()); last; last = lastBehind(firstWaiting())) {
      const [slot, body] = last;
      held.delete(slot);
      letGo.add(slot);
      slot.begun = undefined;
      body.cancel();
      await new Promise(setImmediate); // in which a call that has got its place says so
    }
    relieving = false;
  }

  function lastBehind(place: number): readonly [Slot, StreamBody] | undefined {
    return [...held].filter(([slot]) => slot.place > place).sort(([a], [b]) => b.place - a.place)[0];
  }

  /** Asks again, in order, for what was let go and has nobody waiting before it. */
  function resume(): void {
    for (const slot of [...letGo].sort((a, b) => a.place - b.place)) {
      if (signal.aborted || slot.place > firstWaiting()) return;
      if (slot.asks < EARLY_ASKS_MAX) restart(slot);
    }
  }

  function restart(slot: Slot): Promise<Part> {
    letGo.delete(slot);
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
 * stream that holds one chunk at a time. A later answer that is large waits at its backend, or is asked for again when
 * an earlier call needs its place. When one breaks off after its first byte the whole stream fails, so that the caller's
 * connection is cut, and `onCut` is told its place. `abort` ends every call; it is fired when the caller leaves.
 */
export function spliceBatch(
  starts: readonly Start[],
  abort: AbortController,
  onCut: (place: number) => void,
  gather: Beat,
  beat: Beat,
): Promise<Uint8Array<ArrayBuffer> | ReadableStream> {
  const line = createLine(starts, PARALLEL_MAX, abort.signal);
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
  line: Line,
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
      const context: Asking = {
        acceptEncoding: 'identity',
        signal,
        onOver: nothing,
        accountId: caller.accountId,
        onWait,
        sibling: { batch: admitted, place },
      };
      return new Promise((resolve) =>
        send(planned, plan, context, (reply) => {
          const outcome = outcomeOf(reply);
          if (isFirst || outcome !== 'answered') onCall(planned.label, outcome);
          // One that was let go has been sent before.
          if (isUnanswered(reply) && (isFirst || outcome !== 'caller-left')) refund(place);
          resolve(partOf(reply, planned));
        }),
      );
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

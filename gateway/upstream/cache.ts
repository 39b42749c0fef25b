import { afterSpace } from '../json/scan.ts';
import type { Call } from '../request/envelope.ts';
import { beginsResult, idAtEnd, RESULT_AT } from './direct.ts';
import { type CallContext, type Forward, type Reply, watched } from './forward.ts';
import { type StreamBody, WHOLE_BYTES_MAX } from './response-reader.ts';
import type { Pool } from './selection.ts';
import { awaitTurn, moved } from './turns.ts';

/** An answer in pieces; the caller's id goes between `before` and `after`. */
type Answer = Readonly<{ before: readonly Buffer[]; after: Buffer; bytes: number }>;

type Entry = Answer & {
  /** What it counts for, its key included. */
  readonly cost: number;
  /** Callers who read it piece by piece. */
  readers: number;
};

/** A copy of an answer that passes in pieces. */
type Copy = Readonly<{
  push(piece: Buffer): void;
  /** Gives the whole of it, once; `undefined` when it was too long to keep. */
  end(): readonly Buffer[] | undefined;
}>;

/** What an entry takes beside its bytes and its key. */
const ENTRY_BYTES = 256;
/** The share of the memory that one answer may take, and that all copies under way may take together. */
const ENTRY_SHARE = 1 / 16;
const COPIES_SHARE = 1 / 4;
/** Room for a long answer among thousands of short ones is made in several calls, so that none of them stalls the others. */
const EVICTIONS_MAX = 1_024;
/** As many streams are remembered that were not copied. */
const PASSED_MAX = 1_024;
/** A stream's bytes are kept in pieces of this length: they are copied once, and written without another copy. */
const PIECE_BYTES = 65_536;

/**
 * Answers that never change, within `bytesMax`; those used longest ago are dropped first. The bound is for all memory that
 * it causes: copies under way too, and what was dropped while a slow caller still reads it.
 */
export class Cache {
  readonly #bytesMax: number;
  /** In the order of their last use. */
  readonly #entries = new Map<string, Entry>();
  /** Goes on where it was: from the start it would pass over all that was deleted, 18 µs for each entry that is kept. */
  #oldest = this.#entries.entries();
  /** Keys of the copies under way: many readers of one block make one copy. */
  readonly #copies = new Set<string>();
  /** Hashes of keys whose streams were not copied for want of room. */
  readonly #passed = new Set<number>();
  #copiedBytes = 0;
  #bytes = 0;
  #hits = 0;
  #misses = 0;
  #resets = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** The bytes that it holds now, and how many calls found an answer and how many did not. */
  counts(): Readonly<{ bytes: number; hits: number; misses: number }> {
    return { bytes: this.#bytes, hits: this.#hits, misses: this.#misses };
  }

  /** The answer of a key; none from before the pool's last reset. */
  find(key: string, resets: number): Entry | undefined {
    if (resets !== this.#resets) {
      this.#resets = resets;
      for (const [old, entry] of this.#entries) this.#drop(old, entry);
    }
    const entry = this.#entries.get(key);
    if (entry === undefined) return void this.#misses++;
    this.#hits++;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry;
  }

  keep(key: string, answer: Answer): void {
    const cost = answer.bytes + key.length + ENTRY_BYTES;
    if (cost > this.#bytesMax * ENTRY_SHARE || this.#entries.has(key) || !this.#take(cost)) return;
    this.#entries.set(key, { ...answer, cost, readers: 0 });
  }

  /**
   * Begins to copy an answer; `undefined` when that is under way already, or when others would be dropped for one that is
   * not known to be wanted twice: who reads the chain block by block must not pay a third more for it, nor empty the cache.
   */
  copy(key: string): Copy | undefined {
    if (this.#copies.has(key) || this.#entries.has(key)) return undefined;
    if (this.#bytes > this.#bytesMax * (1 - ENTRY_SHARE) && !this.#hasPassed(key)) return undefined;
    this.#copies.add(key);
    let pieces: Buffer[] | undefined = [];
    let free = 0;
    let taken = 0;

    const end = () => {
      const whole = pieces;
      if (whole === undefined) return undefined;
      this.#copies.delete(key);
      this.#bytes -= taken;
      this.#copiedBytes -= taken;
      pieces = undefined;
      const last = whole.pop();
      if (last !== undefined) whole.push(last.subarray(0, last.length - free));
      return whole;
    };
    const hasRoom = () =>
      taken + PIECE_BYTES <= this.#bytesMax * ENTRY_SHARE &&
      this.#copiedBytes + PIECE_BYTES <= this.#bytesMax * COPIES_SHARE &&
      this.#take(PIECE_BYTES);
    const push = (piece: Buffer) => {
      for (let at = 0; at < piece.length && pieces !== undefined;) {
        if (free === 0) {
          if (!hasRoom()) return void end();
          taken += PIECE_BYTES;
          this.#copiedBytes += PIECE_BYTES;
          pieces.push(Buffer.allocUnsafeSlow(PIECE_BYTES));
          free = PIECE_BYTES;
        }
        const copied = piece.copy(pieces.at(-1) ?? piece, PIECE_BYTES - free, at);
        at += copied;
        free -= copied;
      }
    };
    return { push, end };
  }

  /** Holds an entry for a reader until the given function is called, once. */
  hold(key: string, entry: Entry): () => void {
    entry.readers++;
    return () => {
      entry.readers--;
      if (entry.readers === 0 && this.#entries.get(key) !== entry) this.#bytes -= entry.cost;
    };
  }

  /** Whether an answer has passed without a copy lately; notes that it does. */
  #hasPassed(key: string): boolean {
    const hash = Bun.hash.xxHash32(key);
    if (this.#passed.delete(hash)) return true;
    if (this.#passed.size === PASSED_MAX)
      for (const oldest of this.#passed.keys().take(1)) this.#passed.delete(oldest);
    this.#passed.add(hash);
    return false;
  }

  /** Takes room; false when there is none. To drop what is still read would give none back. */
  #take(bytes: number): boolean {
    for (let seen = 0; this.#bytes + bytes > this.#bytesMax && seen < EVICTIONS_MAX; seen++) {
      let next = this.#oldest.next();
      if (next.done) next = (this.#oldest = this.#entries.entries()).next();
      if (next.done) break;
      const [key, entry] = next.value;
      if (entry.readers === 0) this.#drop(key, entry);
    }
    if (this.#bytes + bytes > this.#bytesMax) return false;
    this.#bytes += bytes;
    return true;
  }

  #drop(key: string, entry: Entry): void {
    this.#entries.delete(key);
    if (entry.readers === 0) this.#bytes -= entry.cost;
  }
}

/**
 * Adds answers from memory to calls that always have the same one: those about slots that were finalized before the call
 * was sent. A call is kept by its method and its caller's own bytes of parameters, so every option counts.
 */
export function withCache(forward: Forward, cache: Cache, pool: Pick<Pool, 'finality'>): Forward {
  return function forwardUnlessKept(call, route, context) {
    const { immutable } = route.method;
    const key = immutable === undefined ? undefined : keyOf(route.name, call);
    if (key === undefined) return forward(call, route, context);
    const { slot, resets } = pool.finality();
    const entry = cache.find(key, resets);
    if (entry !== undefined) return Promise.resolve(replyOf(key, entry, call, context));
    const reply = forward(call, route, context);
    if (slot === 0 || (immutable === 'slot-in-params' && slotOfCall(call) > slot)) return reply;

    const keep = (pieces: readonly Uint8Array[]) => {
      if (pool.finality().resets !== resets) return;
      if (immutable === 'slot-in-result' && slotOfResult(pieces) > slot) return;
      const answer = answerOf(pieces, call.id);
      if (answer !== undefined) cache.keep(key, answer);
    };
    const copied = (body: StreamBody): StreamBody => ({
      ...body,
      async pipe(write) {
        const copy = cache.copy(key);
        const end = await body.pipe((piece) => {
          copy?.push(piece);
          return write(piece);
        });
        const pieces = copy?.end();
        if (end.kind === 'complete' && pieces !== undefined) keep(pieces);
        return end;
      },
    });
    return reply.then((start) => {
      if ((start.kind !== 'whole' && start.kind !== 'stream') || start.encoding !== undefined) return start;
      if (start.kind === 'stream') return { ...start, body: copied(start.body) };
      keep([start.bytes]);
      return start;
    });
  };

  function replyOf(key: string, entry: Entry, { id }: Call, context: CallContext): Reply {
    const { before, after, bytes } = entry;
    const parts = [...before, Buffer.from(id), after];
    if (bytes + id.length > WHOLE_BYTES_MAX) {
      const release = cache.hold(key, entry);
      const onEnd = () => {
        release();
        context.onSettled();
      };
      return { kind: 'stream', body: watched(bodyOf(parts), context.signal, onEnd), encoding: undefined };
    }
    context.onSettled();
    return { kind: 'whole', bytes: Buffer.concat(parts), encoding: undefined, isResult: true };
  }
}

/** Longer parameters are not looked up: real ones of these methods have 200 bytes at most. */
const PARAMS_BYTES_MAX = 1_024;

/** The call without its id; `undefined` when its answer is never kept. */
function keyOf(name: string, { params }: Call): string | undefined {
  if (params === undefined) return name;
  if (params.length > PARAMS_BYTES_MAX) return undefined;
  const text = Buffer.from(params).toString('latin1');
  // What is escaped may be the commitment; clients do not escape what needs no escape.
  return text.includes('\\') || text.includes('"processed"') ? undefined : `${name} ${text}`;
}

const FIRST_NUMBER = /^\[\s*(\d{1,15})\s*[,\]]/;

/** The slot that a call names; `Infinity` when it is not known. */
function slotOfCall({ params }: Call): number {
  return numberIn(FIRST_NUMBER.exec(Buffer.from(params ?? NOTHING).toString('latin1')));
}

const NOTHING = new Uint8Array();

function numberIn(match: RegExpExecArray | null): number {
  return Number(match?.[1] ?? Infinity);
}

/** A longer id is not searched for. */
const ID_BYTES_MAX = 256;
const LETTER_N = 0x6e;

/** The pieces of a whole result around its id; `undefined` for an error, a null, and what is written in another form. */
function answerOf(pieces: readonly Uint8Array[], id: Uint8Array): Answer | undefined {
  const [first] = pieces;
  if (first === undefined || id.length > ID_BYTES_MAX || !beginsResult(first)) return undefined;
  if (first[afterSpace(first, RESULT_AT)] === LETTER_N) return undefined;
  const tail = joined(pieces.slice(-2));
  const idAt = idAtEnd(tail, id);
  if (idAt === -1) return undefined;
  const before = [...pieces.slice(0, -2).map(viewOf), tail.subarray(0, idAt)];
  const after = tail.subarray(idAt + id.length);
  return { before, after, bytes: bytesIn(before) + after.length };
}

/** A copy in memory of its own: a piece of a shared pool would keep all of the pool. */
function joined(pieces: readonly Uint8Array[]): Buffer {
  const all = Buffer.allocUnsafeSlow(bytesIn(pieces));
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}

function bytesIn(pieces: readonly Uint8Array[]): number {
  return pieces.reduce((sum, { length }) => sum + length, 0);
}

function viewOf({ buffer, byteOffset, length }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, length);
}

const SLOT_MEMBER = Buffer.from('"slot":');
const SLOT = /^(\d{1,15})[,}]/;

/**
 * The highest slot that any member of a result names; `Infinity` when one is not known or there is none. A transaction
 * names its own and, in votes, older ones. To find its own exactly would cost as much as the call: 45 µs.
 */
function slotOfResult(pieces: readonly Uint8Array[]): number {
  const [first = NOTHING] = pieces;
  const all = pieces.length === 1 ? viewOf(first) : joined(pieces);
  let slot = -Infinity;
  for (let at = all.indexOf(SLOT_MEMBER); at !== -1; at = all.indexOf(SLOT_MEMBER, at + 1)) {
    const from = at + SLOT_MEMBER.length;
    slot = Math.max(slot, numberIn(SLOT.exec(all.toString('latin1', from, from + 16))));
  }
  return slot === -Infinity ? Infinity : slot;
}

/** Pieces as a body. They are read by many at once, so each reader has no more in memory than what its socket takes. */
function bodyOf(parts: readonly Buffer[]): StreamBody {
  const cancelled = Promise.withResolvers<void>();
  let isCancelled = false;
  return {
    cancel() {
      isCancelled = true;
      cancelled.resolve();
    },
    async pipe(write) {
      let bytes = 0;
      for (const part of parts) {
        if (isCancelled) break;
        const wait = write(part);
        bytes += part.length;
        if (wait instanceof Promise) await Promise.race([wait.catch(() => undefined), cancelled.promise]);
        if (moved(part.length)) await new Promise<void>(awaitTurn);
      }
      return isCancelled ? { kind: 'cut', reason: 'cancelled', bytes } : { kind: 'complete', bytes };
    },
  };
}

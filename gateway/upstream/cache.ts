import { afterName, afterSpace, afterValue, COMMA, OPEN_OBJECT } from '../json/scan.ts';
import type { Call } from '../request/envelope.ts';
import { beginsResult, idAtEnd, RESULT_AT } from './direct.ts';
import { type Asking, type Forward, type Reply, watched } from './forward.ts';
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
/** A stream's bytes are kept in pieces of this length: they are copied once, and written without another copy. */
const PIECE_BYTES = 65_536;

/**
 * Answers that never change, within `bytesMax`; those used longest ago are dropped first. The bound is for all memory that
 * it causes: copies under way too, and what was dropped while a slow caller still reads it.
 */
export class Cache {
  readonly #bytesMax: number;
  readonly #entries = new Map<string, Entry>();
  /** Keys of the copies under way: many readers of one block make one copy. */
  readonly #copies = new Set<string>();
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

  /** Begins to copy an answer; `undefined` when that is under way already. */
  copy(key: string): Copy | undefined {
    if (this.#copies.has(key) || this.#entries.has(key)) return undefined;
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

  /** Takes room; false when there is none. To drop what is still read would give none back. */
  #take(bytes: number): boolean {
    let seen = 0;
    for (const [key, entry] of this.#entries) {
      if (this.#bytes + bytes <= this.#bytesMax || seen++ === EVICTIONS_MAX) break;
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
  return function forwardUnlessKept(call, route, asking) {
    const { immutable } = route.method;
    const key = immutable === undefined ? undefined : keyOf(route.name, call);
    if (key === undefined) return forward(call, route, asking);
    const { slot, resets } = pool.finality();
    const entry = cache.find(key, resets);
    if (entry !== undefined) return Promise.resolve(replyOf(key, entry, call, asking));
    const reply = forward(call, route, asking);
    if (slot === 0 || (immutable === 'slot-in-params' && slotOfCall(call) > slot)) return reply;

    const keep = (pieces: readonly Uint8Array[]) => {
      const answer = answerOf(pieces, call.id);
      if (answer === undefined || pool.finality().resets !== resets) return;
      if (immutable !== 'slot-in-result' || slotOfResult(answer) <= slot) cache.keep(key, answer);
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
    return reply.then((begun) => {
      if ((begun.kind !== 'whole' && begun.kind !== 'stream') || begun.encoding !== undefined) return begun;
      if (begun.kind === 'stream') return { ...begun, body: copied(begun.body) };
      keep([begun.bytes]);
      return begun;
    });
  };

  function replyOf(key: string, entry: Entry, { id }: Call, asking: Asking): Reply {
    const { before, after, bytes } = entry;
    const parts = [...before, Buffer.from(id), after];
    if (bytes + id.length > WHOLE_BYTES_MAX) {
      const release = cache.hold(key, entry);
      const onEnd = () => {
        release();
        asking.onOver();
      };
      return { kind: 'stream', body: watched(bodyOf(parts), asking.signal, onEnd), encoding: undefined };
    }
    asking.onOver();
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
  // What is escaped may be the commitment; nobody escapes what needs no escape.
  return text.includes('\\') || text.includes('"processed"') ? undefined : `${name} ${text}`;
}

const FIRST_NUMBER = /^\[\s*(\d{1,15})\s*[,\]]/;

/** The slot that a call names; `Infinity` when it cannot be told. */
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

/** A transaction's slot stands behind its logs; no more than these pieces are searched for it. */
const SEARCHED_PIECES = 4;
const SLOT_MEMBER = /^"slot"\s*:\s*(\d{1,15})\s*[,}]/;

/** The slot of a result that is an object; `Infinity` when it cannot be told. */
function slotOfResult({ before }: Answer): number {
  const head = joined(before.slice(0, SEARCHED_PIECES));
  let at = afterSpace(head, RESULT_AT);
  if (head[at] !== OPEN_OBJECT) return Infinity;
  do {
    at = afterSpace(head, at + 1);
    const slot = SLOT_MEMBER.exec(head.toString('latin1', at, at + 64));
    if (slot !== null) return numberIn(slot);
    at = afterSpace(head, afterValue(head, afterName(head, at)));
  } while (head[at] === COMMA);
  return Infinity;
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

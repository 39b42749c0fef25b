import { afterSpace, wholeNumberAt } from '../json/scan.ts';
import { elementsOf, numberIn } from '../json/slices.ts';
import type { Call } from '../request/envelope.ts';
import { mapBody, type StreamBody, watched } from '../http/stream-body.ts';
import { awaitTurn, moved } from '../http/turns.ts';
import { endIdAt, RESULT_AT } from './followed-answer.ts';
import type { CallReply } from './failover.ts';
import type { CallContext, Forward } from './forward.ts';
import { WHOLE_BYTES_MAX } from './response-reader.ts';
import type { Pool } from './selection.ts';

/** A kept answer, and who gave it; the caller's id goes between `before` and `after`. */
type Entry = Readonly<{ before: Buffer; after: Buffer; cost: number; backend: string | undefined }> & {
  readers: number;
};

/** Memory of an entry, or of a piece of a copy, beside its bytes and its key. */
const ENTRY_BYTES = 256;
/** The share of the memory that one answer may take. */
const ENTRY_SHARE = 1 / 16;
/** Room for a long answer among thousands of short ones is made in several calls, so that none of them stalls the others. */
const EVICTIONS_MAX = 1_024;
const PASSED_MAX = 1_024;
const PIECE_BYTES = 65_536;
const LETTER_N = 0x6e;

/** Answers that never change, the longest unused dropped first; `bytesMax` is for all memory that they cause. */
export class Cache {
  readonly #bytesMax: number;
  readonly #entries = new Map<string, Entry>();
  /** Goes on where it was: from the start it would pass over all that was deleted, 18 µs for each entry that is kept. */
  #oldest = this.#entries.entries();
  /** Keys of the copies under way: many readers of one block make one copy. */
  readonly #copies = new Set<string>();
  /** Hashes of keys whose streams were not copied for want of room. */
  readonly #passed = new Set<number>();
  /** The bytes that it holds now, and how many calls found an answer and how many did not. */
  readonly counts = { bytes: 0, hits: 0, misses: 0 };
  #resets = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** The answer of a key; none from before the pool's last reset. */
  find(key: string, resets: number): Entry | undefined {
    if (resets !== this.#resets) for (const [old, entry] of this.#entries) this.#drop(old, entry);
    this.#resets = resets;
    const entry = this.#entries.get(key);
    if (entry === undefined) return void this.counts.misses++;
    this.counts.hits++;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry;
  }

  /** Keeps a plain result that is not null, in memory of its own. */
  keep(key: string, bytes: Buffer, id: Uint8Array, backend?: string): void {
    const isNull = bytes[afterSpace(bytes, RESULT_AT)] === LETTER_N;
    const idAt = isNull ? -1 : endIdAt(bytes, id);
    const cost = bytes.length + key.length + ENTRY_BYTES;
    if (idAt === -1 || this.#entries.has(key) || !this.#take(cost, cost)) return;
    const [before, after] = [bytes.subarray(0, idAt), bytes.subarray(idAt + id.length)];
    this.#entries.set(key, { before, after, cost, backend, readers: 0 });
  }

  /**
   * Begins to copy an answer; `undefined` when another copy is under way, or when others would be dropped for one that may
   * never be read again: reading the chain block by block must not cost a third more, nor empty the cache. `end` gives all
   * pieces, once; none when they were too many to keep.
   */
  copy(key: string) {
    if (this.#copies.has(key) || this.#entries.has(key)) return undefined;
    if (this.counts.bytes > this.#bytesMax * (1 - 2 * ENTRY_SHARE) && !this.#hasPassed(key)) return undefined;
    this.#copies.add(key);
    let pieces: Buffer[] | undefined = [];
    let taken = 0;
    const end = () => {
      const all = pieces ?? [];
      if (pieces !== undefined) this.#copies.delete(key);
      this.counts.bytes -= 2 * taken;
      taken = 0;
      pieces = undefined;
      return all;
    };
    const push = (piece: Buffer) => {
      const cost = piece.length + ENTRY_BYTES;
      if (pieces === undefined) return;
      // Twice, because they will be joined.
      if (!this.#take(2 * cost, taken + cost)) return void end();
      taken += cost;
      pieces.push(Buffer.from(piece));
    };
    return { push, end };
  }

  /** A reader has come to the end of an entry: its memory counts until then, also when it was dropped meanwhile. */
  release(key: string, entry: Entry): void {
    entry.readers--;
    if (entry.readers === 0 && this.#entries.get(key) !== entry) this.counts.bytes -= entry.cost;
  }

  /** Whether an answer has passed without a copy lately; notes that it does. */
  #hasPassed(key: string): boolean {
    const hash = Bun.hash.xxHash32(key);
    if (this.#passed.delete(hash)) return true;
    if (this.#passed.size === PASSED_MAX) this.#passed.clear();
    this.#passed.add(hash);
    return false;
  }

  /** Takes room for an answer of so many bytes until now; false when there is none. To drop what is still read gives none back. */
  #take(bytes: number, answerBytes: number): boolean {
    if (answerBytes > this.#bytesMax * ENTRY_SHARE) return false;
    for (let seen = 0; this.counts.bytes + bytes > this.#bytesMax && seen < EVICTIONS_MAX; seen++) {
      let next = this.#oldest.next();
      if (next.done) next = (this.#oldest = this.#entries.entries()).next();
      if (next.done) break;
      const [key, entry] = next.value;
      if (entry.readers === 0) this.#drop(key, entry);
    }
    if (this.counts.bytes + bytes > this.#bytesMax) return false;
    this.counts.bytes += bytes;
    return true;
  }

  #drop(key: string, entry: Entry): void {
    this.#entries.delete(key);
    if (entry.readers === 0) this.counts.bytes -= entry.cost;
  }
}

/** Adds answers from memory to calls about what was finalized before, by method and the caller's own parameters. */
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

    const keep = (pieces: readonly Uint8Array[], backend: string | undefined) => {
      // In memory of its own: a piece of a shared pool would keep all of the pool.
      const bytes = Buffer.from(Bun.concatArrayBuffers([...pieces]));
      const isFinal = immutable !== 'slot-in-result' || slotOfResult(bytes) <= slot;
      if (isFinal && pool.finality().resets === resets) cache.keep(key, bytes, call.id, backend);
    };
    return reply.then((start) => {
      if (start.kind !== 'whole' && start.kind !== 'stream') return start;
      if (start.kind === 'whole') {
        keep([start.bytes], start.backend);
        return start;
      }
      /** `undefined` before its first piece. */
      let copy: { of: ReturnType<Cache['copy']> } | undefined;
      const body = mapBody(start.body, {
        piece(piece, write) {
          copy ??= { of: cache.copy(key) };
          copy.of?.push(piece);
          return write(piece);
        },
        end(end) {
          const pieces = copy?.of?.end() ?? [];
          if (end.kind === 'complete') keep(pieces, start.backend);
          return end;
        },
      });
      return { ...start, body };
    });
  };

  function replyOf(key: string, entry: Entry, { id }: Call, { signal, onSettled }: CallContext): CallReply {
    const parts = [entry.before, Buffer.from(id), entry.after];
    const { backend } = entry;
    if (entry.cost > WHOLE_BYTES_MAX) {
      entry.readers++;
      const onEnd = () => {
        cache.release(key, entry);
        onSettled?.();
      };
      const length = parts.reduce((bytes, part) => bytes + part.length, 0);
      const body = watched(bodyOf(parts), signal, onEnd);
      return { kind: 'stream', body, code: undefined, length, backend };
    }
    onSettled?.();
    return { kind: 'whole', bytes: Buffer.concat(parts), code: undefined, backend };
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

/** The slot that a call names; `Infinity` when it is not known. */
function slotOfCall({ params }: Call): number {
  return numberIn(elementsOf(params)?.[0]) ?? Infinity;
}

const SLOT_MEMBER = Buffer.from('"slot":');

/** The highest slot that a result names, as a transaction does its own; `Infinity` when one is not known or none is. */
function slotOfResult(bytes: Buffer): number {
  let slot = -Infinity;
  for (let at = bytes.indexOf(SLOT_MEMBER); at !== -1; at = bytes.indexOf(SLOT_MEMBER, at + 1)) {
    slot = Math.max(slot, wholeNumberAt(bytes, at + SLOT_MEMBER.length));
  }
  return Number.isFinite(slot) ? slot : Infinity;
}

/** A body from memory. It is read by many at once, so each reader has no more in memory than what its socket takes. */
export function bodyOf(parts: readonly Uint8Array[]): StreamBody {
  const cancelled = Promise.withResolvers<void>();
  let isCancelled = false;
  return {
    cancel() {
      isCancelled = true;
      cancelled.resolve();
    },
    async pipe(write) {
      let bytes = 0;
      for (const part of parts)
        for (let at = 0; at < part.length && !isCancelled; at += PIECE_BYTES) {
          const length = Math.min(PIECE_BYTES, part.length - at);
          const wait = write(Buffer.from(part.buffer, part.byteOffset + at, length));
          bytes += length;
          if (wait instanceof Promise) await Promise.race([wait.catch(() => undefined), cancelled.promise]);
          if (moved(length)) await new Promise<void>(awaitTurn);
        }
      return isCancelled ? { kind: 'cut', reason: 'cancelled', bytes } : { kind: 'complete', bytes };
    },
  };
}

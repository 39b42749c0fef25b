import type { Clock } from '../../shared/clock.ts';
import { afterSpace, afterValue, CLOSE_ARRAY, CLOSE_OBJECT, COMMA, OPEN_ARRAY } from '../json/scan.ts';
import { memberOf } from '../json/slices.ts';
import { SEND_ID_BYTES } from '../request/send-id.ts';
import type { Backend } from './backend.ts';
import { codingOf, DecodedBody } from './decoded-body.ts';
import { type Failure, GIVEN_UP } from './failure.ts';
import { CHECKED_BYTES_MAX, plainIdAt } from './followed-answer.ts';
import { type Connection, type ExchangeHandler, type HttpReply, type NoReply } from './http-connection.ts';
import { bufferUntil } from './response-reader.ts';

/** A light read of a caller's batch, which its backend may get together with others. */
export type BatchedRead = Readonly<{
  accountId: number;
  hasOther(): boolean;
  hasLeft(): boolean;
  /** Its request, and the length of that. */
  requestBytes: number;
  writeAs(sentId: Uint8Array, into: Buffer, at: number): number;
  /** Takes its element of the answer, which `plainIdAt` found plain at `idAt`, or not: -1. */
  onElement(element: Buffer, idAt: number, cameMs: number, connection: Distrusted): void;
  /** The batch failed, and it with it. */
  onFailure(failure: Failure): void;
  /** The batch has no element for it, or the backend takes no batches. It has entered the backend still. */
  sendAlone(): void;
}>;

/** Destroyed by a read whose element is no answer: what comes next over it may be late answers to others. */
type Distrusted = Pick<Connection, 'destroy'>;

/** Reads that travel together: as many as a batch begins at once (`respond/batch.ts`). */
const READS_MAX = 32;
/** A longer answer is given up, and its reads sent alone, whose answers may be streams. */
const ANSWER_BYTES_MAX = 262_144;
/** As deep as the parts of a short answer may nest (`followed-answer.ts`). */
const DEPTH_MAX = CHECKED_BYTES_MAX;

type BatchedReadsParts = Readonly<{
  clock: Clock;
  nextId(): Uint8Array;
  /** Where the request is written, over the one before. */
  message: Buffer;
  /** The longest body that it has room for. */
  bodyBytesMax: number;
}>;

/**
 * Puts reads together that one batch of a caller sends to one backend at the same moment, in an array as JSON-RPC has it:
 * most of what a small read costs is its own exchange. The answer is divided by the ids of our own, and each read judges its
 * element as if it had come alone. A backend that does not answer an array with one gets single reads for some minutes.
 *
 * ```mermaid
 * stateDiagram-v2
 *   [*] --> open: the first read
 *   open --> open: another one of the batch
 *   open --> alone: the turn is over, and it is the only one
 *   open --> sent: the turn is over, or it is full
 *   sent --> answered: an array, each read with its element
 *   sent --> alone: reads without one; no array, or too long; another status; it closed
 *   sent --> failed: in time no answer, or no connection; a status that each would have; the backend was given up
 * ```
 */
export function createBatchedReads(parts: BatchedReadsParts) {
  let open: BatchedReads | undefined;

  /** Adds a read of `batch`, to be sent before the event loop goes on, and answered by `dueAtMs`. */
  return function add(read: BatchedRead, batch: object, backend: Backend, dueAtMs: number): void {
    const bytesMax = Math.min(backend.config.bodyBytesMax ?? Infinity, parts.bodyBytesMax);
    if (open?.takes(read, batch, backend, bytesMax) !== true) {
      open?.send();
      const reads = new BatchedReads(parts, batch, backend, dueAtMs);
      open = reads;
      queueMicrotask(() => {
        if (open === reads) open = undefined;
        reads.send();
      });
    }
    open.add(read);
  };
}

class BatchedReads implements ExchangeHandler {
  readonly kind = 'light';
  readonly #parts: BatchedReadsParts;
  readonly #batch: object;
  readonly #backend: Backend;
  readonly #dueAtMs: number;
  readonly #reads: BatchedRead[] = [];
  readonly #ids: Uint8Array[] = [];
  #bytes = 1;
  #isSent = false;

  constructor(parts: BatchedReadsParts, batch: object, backend: Backend, dueAtMs: number) {
    this.#parts = parts;
    this.#batch = batch;
    this.#backend = backend;
    this.#dueAtMs = dueAtMs;
  }

  get accountId(): number {
    return this.#reads[0]?.accountId ?? 0;
  }

  hasOther(): boolean {
    return this.#reads.every((read) => read.hasOther());
  }

  hasLeft(): boolean {
    return this.#reads.every((read) => read.hasLeft());
  }

  takes({ requestBytes }: BatchedRead, batch: object, backend: Backend, bytesMax: number): boolean {
    const isTheirs = !this.#isSent && batch === this.#batch && backend === this.#backend;
    return isTheirs && this.#reads.length < READS_MAX && this.#bytes + requestBytes + 1 <= bytesMax;
  }

  add(read: BatchedRead): void {
    this.#reads.push(read);
    this.#bytes += read.requestBytes + 1;
  }

  send(): void {
    if (this.#isSent) return;
    this.#isSent = true;
    const { message, nextId, clock } = this.#parts;
    const { client } = this.#backend;
    const [first] = this.#reads;
    if (this.#reads.length === 1) return first?.sendAlone();
    message.set(client.head);
    let at = client.head.length + message.write(`${this.#bytes}\r\n\r\n[`, client.head.length, 'latin1');
    for (const read of this.#reads) {
      const sentId = nextId();
      this.#ids.push(sentId);
      at = read.writeAs(sentId, message, at);
      message[at++] = COMMA;
    }
    message[at - 1] = CLOSE_ARRAY;
    client.start(message, at, clock.monotonic(), this.#dueAtMs, this);
  }

  onSmallReply(body: Buffer, cameMs: number, connection: Distrusted): void {
    if (body.length > ANSWER_BYTES_MAX) return this.#sendAlone();
    const { found, isWhole } = divided(body, this.#ids);
    if (!isWhole) connection.destroy('bad-framing');
    if (found.length === 0) return this.#refused();
    for (const [i, read] of this.#reads.entries()) {
      const { element, idAt } = found[i] ?? {};
      if (element === undefined || idAt === undefined) read.sendAlone();
      else read.onElement(element, idAt, cameMs, connection);
    }
  }

  onOutcome(outcome: HttpReply | NoReply): void {
    if (outcome.kind === 'reply') void this.#read(outcome);
    else if (outcome.kind === 'no-answer' && outcome.stale === true) this.#sendAlone();
    else if (outcome.kind === 'unsent' || OF_ALL.has(outcome.reason)) this.#fail(outcome);
    else this.#refused();
  }

  /** Reads a reply that did not come in one piece, or is none of 200. */
  async #read({ head: { status, isJson, encoding }, body: came }: HttpReply): Promise<void> {
    const coding = codingOf(encoding);
    if (status !== 200 || !isJson || coding === undefined) {
      came.cancel();
      return OF_THE_ACCOUNT.has(status) ? this.#fail({ kind: 'status', status }) : this.#refused();
    }
    const body = coding === 'identity' ? came : new DecodedBody(came, coding);
    const choice = await bufferUntil(body, whileShort, NEVER);
    if (body.end?.kind === 'complete') {
      const connection = { destroy: () => body.distrust?.() };
      return this.onSmallReply(Buffer.concat(body.pieces), this.#parts.clock.monotonic(), connection);
    }
    if (choice === 'pass') body.cancel();
    else if (body.end !== undefined && OF_ALL.has(body.end.reason))
      return this.#fail({ kind: 'no-answer', reason: body.end.reason });
    this.#sendAlone();
  }

  #fail(failure: Failure): void {
    for (const read of this.#reads) read.onFailure(failure);
  }

  #sendAlone(): void {
    for (const read of this.#reads) read.sendAlone();
  }

  /** The backend takes no batches, or not this one: one read that it cannot take is no failure of the others. */
  #refused(): void {
    this.#backend.refuseBatches(this.#parts.clock);
    this.#sendAlone();
  }
}

/** Why nothing came that each read alone would meet too: time is over, or the backend was given up. */
const OF_ALL: ReadonlySet<string> = new Set(['stalled', 'cancelled', ...GIVEN_UP]);
/** Statuses that reads alone would have too: our credentials, its limits. */
const OF_THE_ACCOUNT = new Set([401, 403, 429]);

const NEVER = new AbortController().signal;

function whileShort(pieces: readonly Buffer[]): 'buffer' | 'pass' {
  return pieces.reduce((sum, { length }) => sum + length, 0) > ANSWER_BYTES_MAX ? 'pass' : 'buffer';
}

type FoundElement = Readonly<{ element: Buffer; idAt: number }>;

/**
 * The elements of an array by the ids that they answer, whose order they nearly always have: then one search finds the end of
 * each, and its grammar is checked once. `isWhole`: it is an array of nothing else.
 */
export function divided(
  body: Buffer,
  ids: readonly Uint8Array[],
): Readonly<{ found: readonly (FoundElement | undefined)[]; isWhole: boolean }> {
  const found: (FoundElement | undefined)[] = [];
  let at = afterSpace(body, 0);
  if (body[at] !== OPEN_ARRAY) return { found, isWhole: false };
  for (let nth = 0, isKnown = true; ; nth++) {
    const from = afterSpace(body, at + 1);
    const expected = ids[nth];
    const plain = expected === undefined ? undefined : plainAt(body, from, expected);
    const to = plain?.to ?? afterValue(body, from, DEPTH_MAX);
    if (to < 0) return { found, isWhole: false };
    const element = body.subarray(from, to);
    if (plain !== undefined) found[nth] = { element, idAt: plain.idAt };
    else {
      const id = memberOf(element, 'id');
      const own = ids.findIndex((each) => id?.equals(each) === true);
      if (id !== undefined && own !== -1 && found[own] === undefined)
        found[own] = { element, idAt: plainIdAt(element, id) };
      else isKnown = false;
    }
    at = afterSpace(body, to);
    if (body[at] === COMMA) continue;
    return {
      found,
      isWhole: isKnown && body[at] === CLOSE_ARRAY && afterSpace(body, at + 1) === body.length,
    };
  }
}

/** The end of a plain answer under an id that begins at an index, and where its id stands in it. */
function plainAt(
  body: Buffer,
  from: number,
  id: Uint8Array,
): Readonly<{ to: number; idAt: number }> | undefined {
  const found = body.indexOf(id, from);
  const to = found + SEND_ID_BYTES + 1;
  // A longer one may be several, in another order.
  if (found === -1 || body[to - 1] !== CLOSE_OBJECT || to - from > CHECKED_BYTES_MAX) return undefined;
  const idAt = plainIdAt(body.subarray(from, to), id);
  return idAt === -1 ? undefined : { to, idAt };
}

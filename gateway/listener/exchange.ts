import { EMPTY } from '../http/slab.ts';
import { BodyDecoder } from '../http/body-decoder.ts';
import { SendingState } from '../http/outgoing.ts';
import type { StreamBody } from '../http/stream-body.ts';
import type { RequestHead } from '../http/request-head.ts';
import type { BodyBudget, Holder, Share } from './body-budget.ts';
import { CallerRequest } from './caller-request.ts';
import type { RequestBody, BodyRefusal } from './rpc.ts';

/** Bytes that are kept of a body that nobody has asked for yet, and of requests behind the one under way. */
export const WAITING_BYTES_MAX = 65_536;
/** A body that came whole with its head is not counted up to this size, and neither is what waits behind a request. */
export const UNCOUNTED_BYTES_MAX = 16_384;
/** Of a body that drips, smaller pieces are put together: each costs more than its bytes. */
const PIECE_BYTES_MIN = 4_096;
const CALLER_LEFT = { kind: 'caller-left' } as const;
const KEPT = { kind: 'kept' } as const;
const GIVEN = { kind: 'given' } as const;

/**
 * How the body is read.
 *
 * ```mermaid
 * stateDiagram-v2
 *   [*] --> kept: a head has come
 *   kept --> given: it is asked for, and whole
 *   kept --> awaited: it is asked for
 *   awaited --> given: it is whole
 *   kept --> refused: too long, no memory, or answered without it
 *   awaited --> refused: likewise
 *   kept --> left: the caller has left, as from every state
 * ```
 */
type BodyReading =
  /** Nobody has asked for it yet. */
  | typeof KEPT
  | Readonly<{ kind: 'awaited'; bytesMax: number; give(body: RequestBody): void }>
  | typeof GIVEN
  /** All that comes is thrown away. */
  | Readonly<{ kind: 'refused'; refusal: BodyRefusal }>
  | { readonly kind: 'left'; refusal: typeof CALLER_LEFT };

/** The connection as its exchange needs it. */
type ExchangeConnection = Readonly<{
  peer: Bun.SocketAddress | null;
  /** Reads the body of the request under way; `isExpected`: its caller waits for `100 Continue`. */
  readOn(isExpected: boolean): void;
}>;

/** The same bytes in memory that holds not much more than them. */
export function compact(bytes: Buffer): Buffer {
  const { byteLength } = bytes.buffer;
  return byteLength > UNCOUNTED_BYTES_MAX && 2 * bytes.length < byteLength ? Buffer.concat([bytes]) : bytes;
}

/** The request under way on a connection. */
export class Exchange extends CallerRequest {
  readonly headers: RequestHead;
  readonly #connection: ExchangeConnection;
  /** There for a body in chunks. */
  readonly #decoder: BodyDecoder | undefined;
  /** The rest of the body; infinite while one in chunks has not ended. */
  leftBytes: number;
  #reading: BodyReading = KEPT;
  #pieces: Buffer[] = [];
  /** The bytes of the body so far. */
  bodyBytes = 0;
  /** Whose memory the body is, as far as that is known, and how much that is. */
  holder: Holder | undefined;
  #heldBytes = 0;
  readonly #budget: BodyBudget;
  #share: Share | undefined;
  #abort: AbortController | undefined;
  /** The answer, while it is passed on. */
  stream: StreamBody | undefined;
  readonly sending = new SendingState();

  constructor(head: RequestHead, connection: ExchangeConnection, budget: BodyBudget) {
    super();
    this.headers = head;
    this.#connection = connection;
    this.#budget = budget;
    this.#decoder = head.framing === 'chunked' ? new BodyDecoder(head.framing, true) : undefined;
    this.leftBytes = head.framing === 'chunked' ? Infinity : head.framing;
  }

  get peer(): Bun.SocketAddress | null {
    return this.#connection.peer;
  }

  get signal(): AbortSignal {
    this.#abort ??= new AbortController();
    if (this.#reading.kind === 'left') this.#abort.abort();
    return this.#abort.signal;
  }

  get isWhole(): boolean {
    return this.leftBytes === 0;
  }

  /** Whether its key was found to be valid. */
  get hasKey(): boolean {
    return typeof this.holder === 'number';
  }

  /** Whether so much has come that no more is read until it is asked for. */
  get isWaiting(): boolean {
    return this.#reading.kind === 'kept' && this.bodyBytes > WAITING_BYTES_MAX;
  }

  /** Takes what the bytes hold of the body; gives those behind it, or that its framing is broken. */
  receive(bytes: Buffer): Buffer | 'bad' {
    let [piece, restBytes] = [bytes, Math.max(0, bytes.length - this.leftBytes)];
    if (this.#decoder !== undefined) {
      piece = this.#decoder.push(bytes);
      const { state, surplusBytes } = this.#decoder;
      if (state === 'bad') return 'bad';
      if (state === 'end' || state === 'surplus') this.leftBytes = 0;
      restBytes = surplusBytes;
    } else {
      if (restBytes > 0) piece = bytes.subarray(0, this.leftBytes);
      this.leftBytes -= piece.length;
    }
    this.bodyBytes += piece.length;
    if (piece.length > 0) this.#keep(piece);
    const reading = this.#reading;
    if (reading.kind === 'awaited') {
      if (this.bodyBytes > reading.bytesMax) this.#refuse('body-too-large');
      else if (this.isWhole) reading.give(this.#whole());
    }
    return restBytes === 0 ? EMPTY : bytes.subarray(bytes.length - restBytes);
  }

  readBody(bytesMax: number, holder?: number): RequestBody | Promise<RequestBody> {
    this.count(holder ?? 'keyless');
    if ('refusal' in this.#reading) return this.#reading.refusal;
    const { framing, expectsContinue } = this.headers;
    if ((framing === 'chunked' ? this.bodyBytes : framing) > bytesMax) return this.#refuse('body-too-large');
    if (this.isWhole) return this.#whole();
    const isExpected = this.bodyBytes === 0 && expectsContinue;
    // Who has no valid key and waits for a 100 has sent nothing, and need not.
    if (isExpected && holder === undefined) return this.#refuse('body-too-large');
    const { promise, resolve } = Promise.withResolvers<RequestBody>();
    this.#reading = { kind: 'awaited', bytesMax, give: resolve };
    this.#connection.readOn(isExpected);
    return promise;
  }

  /** Reads no more of the body than its end. */
  refuseBody(): void {
    if (!('refusal' in this.#reading)) this.#refuse('body-too-large');
  }

  leave(): void {
    this.#endReading({ kind: 'left', refusal: CALLER_LEFT });
    this.#abort?.abort();
    this.sending.sent();
    this.stream?.cancel();
  }

  onSent(then: () => void): void {
    this.sending.onSent(then);
  }

  /** Counts what is held, from now on, as the holder's; without room for it the body is refused. */
  count(holder: Holder): void {
    this.holder = holder;
    if (this.#heldBytes > 0) this.#share ??= this.#budget.share();
    if (this.#share?.(holder, this.#heldBytes) === false) this.#refuse('bodies-full');
  }

  /** Holds no more memory. */
  release(): void {
    this.#pieces = [];
    this.#heldBytes = 0;
    this.#share?.(this.holder ?? 'unknown', 0);
  }

  #keep(piece: Buffer): void {
    if ('refusal' in this.#reading) return;
    if (this.#pieces.length === 0 && this.isWhole && piece.length <= UNCOUNTED_BYTES_MAX)
      return void this.#pieces.push(piece);
    const last = this.#pieces.at(-1);
    const isSmall = last !== undefined && last.length < PIECE_BYTES_MIN;
    const kept = isSmall ? Buffer.concat([last, piece]) : compact(piece);
    if (isSmall) this.#heldBytes -= this.#pieces.pop()?.buffer.byteLength ?? 0;
    this.#pieces.push(kept);
    this.#heldBytes += kept.buffer.byteLength;
    if (this.holder !== undefined) this.count(this.holder);
  }

  #whole(): RequestBody {
    this.#reading = GIVEN;
    if (this.#pieces.length > 1) this.#pieces = [Buffer.concat(this.#pieces)];
    return { kind: 'body', bytes: this.#pieces[0] ?? EMPTY };
  }

  #refuse(kind: BodyRefusal['kind']): BodyRefusal {
    const refusal = { kind };
    this.#endReading({ kind: 'refused', refusal });
    return refusal;
  }

  #endReading(ended: Extract<BodyReading, { refusal: RequestBody }>): void {
    const reading = this.#reading;
    this.#reading = ended;
    this.release();
    if (reading.kind === 'awaited') reading.give(ended.refusal);
  }
}

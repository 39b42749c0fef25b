import { EMPTY } from '../http/slab.ts';
import { BodyDecoder } from '../http/body-decoder.ts';
import { Sending } from '../http/outgoing.ts';
import type { RequestHead } from '../http/request-head.ts';
import type { BodyBudget, Holder, Share } from './body-budget.ts';
import { CallerRequest } from './caller-request.ts';
import type { ResponseBody, BodyRefusal } from './rpc.ts';

/** What is kept of a body that nobody has asked for yet, and of requests behind the one under way. */
export const WAITING_BYTES_MAX = 65_536;
/** What is read of a refused body, so that a caller who sends first sees the refusal. */
export const READ_OUT_BYTES_MAX = 16_777_216;
/** A body that came whole with its head is not counted up to this size, and neither is what waits behind a request. */
export const UNCOUNTED_BYTES_MAX = 16_384;
/** Of a body that drips, smaller pieces are put together: each costs more than its bytes. */
const PIECE_BYTES_MIN = 4_096;
const CALLER_LEFT: ResponseBody = { kind: 'caller-left' };

/** What an exchange asks of its connection. */
type Connection = Readonly<{
  peer: Bun.SocketAddress | null;
  /** Reads the body of the request under way; `isExpected`: its caller waits for `100 Continue`. */
  readOn(isExpected: boolean): void;
}>;

/** The same bytes in memory that holds not much more than them. */
function compact(bytes: Buffer): Buffer {
  const { byteLength } = bytes.buffer;
  return byteLength > UNCOUNTED_BYTES_MAX && 2 * bytes.length < byteLength ? Buffer.concat([bytes]) : bytes;
}

/** The request under way on a connection. */
export class Exchange extends CallerRequest {
  readonly headers: RequestHead;
  /** When its head began. */
  readonly beganMs: number;
  readonly #connection: Connection;
  /** There for a body in chunks. */
  readonly #decoder: BodyDecoder | undefined;
  /** What is to come of the body; infinite while one in chunks has not ended. */
  leftBytes: number;
  #pieces: Buffer[] = [];
  /** What has come of the body. */
  bodyBytes = 0;
  /** What is read of the body at most; `undefined`: nobody has asked for it yet. */
  #bytesMax: number | undefined;
  /** Whose memory the body is, how much that is, and whether it is counted in the share. */
  holder: Holder = 'unknown';
  #heldBytes = 0;
  isCounted = false;
  readonly #budget: BodyBudget;
  #share: Share | undefined;
  #settle: ((body: ResponseBody) => void) | undefined;
  #abort: AbortController | undefined;
  #hasLeft = false;
  /** Why the body is read no more, but for its end. */
  #refused: ResponseBody | undefined;
  /** `undefined` while the answer has not been written. */
  answeredMs: number | undefined;
  readonly sending = new Sending();

  constructor(head: RequestHead, connection: Connection, budget: BodyBudget, beganMs: number) {
    super();
    this.headers = head;
    this.#connection = connection;
    this.#budget = budget;
    this.beganMs = beganMs;
    this.#decoder = head.framing === 'chunked' ? new BodyDecoder(head.framing, true) : undefined;
    this.leftBytes = head.framing === 'chunked' ? Infinity : head.framing;
  }

  get peer(): Bun.SocketAddress | null {
    return this.#connection.peer;
  }

  get signal(): AbortSignal {
    this.#abort ??= new AbortController();
    if (this.#hasLeft) this.#abort.abort();
    return this.#abort.signal;
  }

  get isWhole(): boolean {
    return this.leftBytes === 0;
  }

  get isAnswered(): boolean {
    return this.answeredMs !== undefined;
  }

  /** Whether its key was found to be valid. */
  get hasKey(): boolean {
    return typeof this.holder === 'number';
  }

  /** Takes what the bytes hold of the body; gives those behind it, or that its framing is broken. */
  take(bytes: Buffer): Buffer | 'bad' {
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
    if (this.#settle !== undefined) {
      if (this.isWhole) this.#give(this.#whole());
      else if (this.bodyBytes > (this.#bytesMax ?? Infinity)) this.#give(this.#refuse('body-too-large'));
    }
    return restBytes === 0 ? EMPTY : bytes.subarray(bytes.length - restBytes);
  }

  /** Whether so much has come that no more is read until it is asked for. */
  get isWaiting(): boolean {
    return this.#bytesMax === undefined && this.#refused === undefined && this.bodyBytes > WAITING_BYTES_MAX;
  }

  get isEndless(): boolean {
    return this.#refused !== undefined && this.bodyBytes > READ_OUT_BYTES_MAX;
  }

  readBody(bytesMax: number, holder?: number): ResponseBody | Promise<ResponseBody> {
    this.#bytesMax = bytesMax;
    this.count(holder ?? 'keyless');
    if (this.#refused !== undefined) return this.#refused;
    const { framing, expectsContinue } = this.headers;
    if (framing !== 'chunked' && framing > bytesMax) return this.#refuse('body-too-large');
    if (this.bodyBytes > bytesMax) return this.#refuse('body-too-large');
    if (this.isWhole) return this.#whole();
    if (this.#hasLeft) return CALLER_LEFT;
    const isExpected = this.bodyBytes === 0 && expectsContinue;
    // Who has no valid key and waits for a 100 has sent nothing, and need not.
    if (isExpected && holder === undefined) return this.#refuse('body-too-large');
    const { promise, resolve } = Promise.withResolvers<ResponseBody>();
    this.#settle = resolve;
    this.#connection.readOn(isExpected);
    return promise;
  }

  /** Reads no more of the body than its end. */
  refuseBody(): void {
    this.#refused ??= { kind: 'body-too-large' };
    this.release();
  }

  leave(): void {
    this.#hasLeft = true;
    this.release();
    this.#give(CALLER_LEFT);
    this.#abort?.abort();
    this.sending.sent();
  }

  onSent(then: () => void): void {
    this.sending.onSent(then);
  }

  /** Counts what is held, from now on, as the holder's; without room for it the body is refused. */
  count(holder: Holder): void {
    this.holder = holder;
    this.isCounted = true;
    if (this.#heldBytes > 0) this.#share ??= this.#budget.share();
    if (this.#share?.(holder, this.#heldBytes) === false) this.#give(this.#refuse('bodies-full'));
  }

  /** Holds no more memory. */
  release(): void {
    this.#pieces = [];
    this.#heldBytes = 0;
    this.#share?.(this.holder, 0);
  }

  #keep(piece: Buffer): void {
    if (this.#refused !== undefined) return;
    if (this.#pieces.length === 0 && this.isWhole && piece.length <= UNCOUNTED_BYTES_MAX)
      return void this.#pieces.push(piece);
    const last = this.#pieces.at(-1);
    const isSmall = last !== undefined && last.length < PIECE_BYTES_MIN;
    const kept = isSmall ? Buffer.concat([last, piece]) : compact(piece);
    if (isSmall) this.#heldBytes -= this.#pieces.pop()?.buffer.byteLength ?? 0;
    this.#pieces.push(kept);
    this.#heldBytes += kept.buffer.byteLength;
    if (this.isCounted) this.count(this.holder);
  }

  #whole(): ResponseBody {
    if (this.#bytesMax !== undefined && this.bodyBytes > this.#bytesMax)
      return this.#refuse('body-too-large');
    const [first = EMPTY] = this.#pieces;
    if (this.#pieces.length > 1) this.#pieces = [Buffer.concat(this.#pieces)];
    return { kind: 'body', bytes: this.#pieces[0] ?? first };
  }

  #refuse(kind: BodyRefusal['kind']): ResponseBody {
    this.#refused = { kind };
    this.release();
    return this.#refused;
  }

  #give(body: ResponseBody): void {
    const asked = this.#settle;
    this.#settle = undefined;
    asked?.(body);
  }
}

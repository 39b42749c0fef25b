import { EMPTY } from '../upstream/http-connection.ts';
import { BodyDecoder } from '../upstream/http-parser.ts';
import { CallerRequest } from './caller-request.ts';
import type { Body } from './http.ts';
import type { RequestHead } from './request-head.ts';

/** What is kept of a body that nobody has asked for yet, and of requests behind the one under way. */
export const WAITING_BYTES_MAX = 65_536;
/** What is read of a refused body, so that a caller who sends first sees the refusal. */
export const READ_OUT_BYTES_MAX = 16_777_216;
/** Of a body that drips, smaller pieces are put together: each costs more than its bytes. */
const PIECE_BYTES_MIN = 4_096;
const CALLER_LEFT: Body = { kind: 'caller-left' };

/** What an exchange asks of its connection. */
type Connection = Readonly<{
  peer: Bun.SocketAddress | null;
  /** Reads the body of the request under way; `isExpected`: its caller waits for `100 Continue`. */
  readOn(isExpected: boolean): void;
}>;

/** The request under way on a connection. */
export class Exchange extends CallerRequest {
  readonly headers: RequestHead;
  readonly beganMs: number;
  readonly #connection: Connection;
  /** There for a body in chunks. */
  readonly #decoder: BodyDecoder | undefined;
  /** What is to come of the body; infinite while one in chunks has not ended. */
  leftBytes: number;
  #pieces: Buffer[] = [];
  #bytes = 0;
  /** What is read of the body at most; `undefined`: nobody has asked for it yet. */
  #bytesMax: number | undefined;
  #settle: ((body: Body) => void) | undefined;
  #abort: AbortController | undefined;
  #hasLeft = false;
  /** Whether the body is read no more, but for its end. */
  #isRefused = false;
  isAnswered = false;
  #isSent = false;
  #afterSent: (() => void) | undefined;

  constructor(head: RequestHead, connection: Connection, beganMs: number) {
    super();
    this.headers = head;
    this.#connection = connection;
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

  /** Takes what the bytes hold of the body; gives those behind it, or that its framing is broken. */
  take(bytes: Buffer): Buffer | 'bad' {
    let [piece, restBytes] = [bytes, Math.max(0, bytes.length - this.leftBytes)];
    if (this.#decoder !== undefined) {
      piece = this.#decoder.push(bytes);
      // It must not hold on to all that it came in, which may be chunk sizes.
      if (2 * piece.length < bytes.length) piece = Buffer.from(piece);
      const { state, surplusBytes } = this.#decoder;
      if (state === 'bad') return 'bad';
      if (state === 'end' || state === 'surplus') this.leftBytes = 0;
      restBytes = surplusBytes;
    } else {
      if (restBytes > 0) piece = bytes.subarray(0, this.leftBytes);
      this.leftBytes -= piece.length;
    }
    this.#bytes += piece.length;
    if (!this.#isRefused && piece.length > 0) this.#keep(piece);
    if (this.#settle !== undefined) {
      if (this.isWhole) this.#give(this.#whole());
      else if (this.#bytes > (this.#bytesMax ?? Infinity)) this.#give(this.#tooLarge());
    }
    return restBytes === 0 ? EMPTY : bytes.subarray(bytes.length - restBytes);
  }

  /** Whether so much has come that no more is read until it is asked for. */
  get isWaiting(): boolean {
    return this.#bytesMax === undefined && !this.#isRefused && this.#bytes > WAITING_BYTES_MAX;
  }

  get isEndless(): boolean {
    return this.#isRefused && this.#bytes > READ_OUT_BYTES_MAX;
  }

  readBody(bytesMax: number): Body | Promise<Body> {
    this.#bytesMax = bytesMax;
    const { framing } = this.headers;
    if (framing !== 'chunked' && framing > bytesMax) return this.#tooLarge();
    if (this.#bytes > bytesMax) return this.#tooLarge();
    if (this.isWhole) return this.#whole();
    if (this.#hasLeft) return CALLER_LEFT;
    const { promise, resolve } = Promise.withResolvers<Body>();
    this.#settle = resolve;
    this.#connection.readOn(this.#bytes === 0 && this.headers.expectsContinue);
    return promise;
  }

  /** Reads no more of the body than its end. */
  refuseBody(): void {
    this.#isRefused = true;
    this.#pieces = [];
  }

  leave(): void {
    this.#hasLeft = true;
    this.#give(CALLER_LEFT);
    this.#abort?.abort();
    this.sent();
  }

  onSent(then: () => void): void {
    if (this.#isSent) return then();
    const before = this.#afterSent;
    this.#afterSent = before === undefined ? then : () => (before(), then());
  }

  /** Whether anything waits for the answer to be sent. */
  get isAwaited(): boolean {
    return this.#afterSent !== undefined;
  }

  sent(): void {
    const then = this.#afterSent;
    this.#isSent = true;
    this.#afterSent = undefined;
    then?.();
  }

  #keep(piece: Buffer): void {
    const last = this.#pieces.at(-1);
    if (last === undefined || last.length >= PIECE_BYTES_MIN) this.#pieces.push(piece);
    else this.#pieces[this.#pieces.length - 1] = Buffer.concat([last, piece]);
  }

  #whole(): Body {
    if (this.#bytesMax !== undefined && this.#bytes > this.#bytesMax) return this.#tooLarge();
    const [first = EMPTY] = this.#pieces;
    return { kind: 'body', bytes: this.#pieces.length <= 1 ? first : Buffer.concat(this.#pieces) };
  }

  #tooLarge(): Body {
    this.refuseBody();
    return { kind: 'body-too-large' };
  }

  #give(body: Body): void {
    const asked = this.#settle;
    this.#settle = undefined;
    asked?.(body);
  }
}

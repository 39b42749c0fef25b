import { brotliDecompressSync, gunzipSync, inflateSync, zstdDecompressSync } from 'node:zlib';
import { unreachable } from '../../shared/brand.ts';
import type { Clock } from '../../shared/clock.ts';
import { createMembers, type Members } from '../json/members.ts';
import { createStructure } from '../json/structure.ts';
import { type Failure, failureOf } from './failure.ts';
import type { BodyEnd, CutReason, HttpReply, ReplyBody, WritePiece } from './http-connection.ts';

/** Bytes at an answer's beginning in which its slot stands, on every known node. */
const HEAD_BYTES = 256;

const CONTEXT = /"context":\s*\{(?:"apiVersion":"[^"]*",)?"slot":(\d{1,15})[,}]/;
const RESULT = /"result":\s*(\d{1,15})[,}]/;

/** The slot that an answer says it was read at: its context's, or the result of `getSlot`; 0 when it says none. */
export function answerSlot(method: string, answer: Uint8Array): number {
  return method === 'getSlot' ? slotIn(RESULT, answer) : contextSlot(answer);
}

/** The slot of an answer's context; 0 when it has none. */
function contextSlot(answer: Uint8Array): number {
  return slotIn(CONTEXT, answer);
}

function slotIn(pattern: RegExp, answer: Uint8Array): number {
  const head = Buffer.from(answer.buffer, answer.byteOffset, Math.min(answer.length, HEAD_BYTES));
  return Number(pattern.exec(head.toString('latin1'))?.[1] ?? 0);
}

/** An answer that has begun. `encoding` is its content-encoding, passed on untouched. */
export type ResponseStart =
  /** All of it, held: it is small. */
  | {
      readonly kind: 'whole';
      readonly bytes: Uint8Array<ArrayBuffer>;
      readonly encoding: string | undefined;
      /** It is known to be a result, and no error. */
      readonly isResult?: boolean;
    }
  /** Its bytes as they come. */
  | {
      readonly kind: 'stream';
      readonly body: StreamBody;
      readonly encoding: string | undefined;
      /** The slot that its first bytes say it was read at; 0 or absent: none. */
      readonly slot?: number;
    };

/** A body under way from a backend. Single-use: `pipe` or `cancel` must be called, or a connection stays taken. */
export type StreamBody = Readonly<{
  /** Hands on every piece as it comes, waiting where `write` gives a promise. Never rejects. */
  pipe(write: WritePiece): Promise<StreamEnd>;
  /** Lets go of it: the backend's connection is closed. */
  cancel(): void;
  /** Reports that what came is no whole answer, although nothing on its way noticed: the backend cut it. */
  reject?(): void;
}>;

/** How a stream ended. Only `complete` may end the caller's answer cleanly (DESIGN 3.6). */
export type StreamEnd =
  | Extract<BodyEnd, { kind: 'complete' }>
  | { readonly kind: 'cut'; readonly reason: CutReason | 'bad-json'; readonly bytes: number };

/**
 * Follows the members of an answer's object as far as they tell what it is, however its bytes are cut. A real result
 * must not wait for what comes behind its first byte; an error or a null may, because another backend may do better.
 */
type Beginning = Readonly<{
  /**
   * Takes the next bytes. Gives true while the answer is an error, a null, or about to say whether it is one: the name
   * of a member that tells has begun.
   */
  push(bytes: Buffer): boolean;
}>;

/** The members that tell, whatever stands before them. */
const TELLING = ['error', 'result'];
const LETTER_N = 0x6e;

export function createBeginning(): Beginning {
  let decision: 'smallBody' | 'result' | undefined;
  const members = createMembers(([name = '', ...inner], first) => {
    const isNull = first === LETTER_N;
    if (inner.length > 0 || !TELLING.includes(name)) return false;
    // An error that is null says nothing; what follows it will.
    if (name === 'result') decision = isNull ? 'smallBody' : 'result';
    else if (!isNull) decision = 'smallBody';
    return decision !== undefined;
  });

  function push(bytes: Buffer): boolean {
    if (decision === undefined) members.push(bytes, 0);
    return decision === 'smallBody' || (decision === undefined && isAboutToTell(members));
  }

  return { push };
}

function isAboutToTell(members: Members): boolean {
  const { text, isWhole } = members.name();
  return text !== '' && TELLING.some((each) => (isWhole ? each === text : each.startsWith(text)));
}

/** No null and no error that matters is longer. */
export const SMALL_BODY_BYTES_MAX = 4_096;

/**
 * The bytes of a whole answer as they can be read, so that a null or an error is known through compression too;
 * `undefined` when what is compressed becomes longer than any of them, or cannot be read.
 */
export function decodeSmallBody({
  bytes,
  encoding,
}: Extract<ResponseStart, { kind: 'whole' }>): Uint8Array | undefined {
  if (encoding === undefined) return bytes;
  if (bytes.length > SMALL_BODY_BYTES_MAX) return undefined;
  try {
    return DECODERS[encoding]?.(bytes, { maxOutputLength: SMALL_BODY_BYTES_MAX });
  } catch {
    return undefined; // it is longer, or not ours to judge
  }
}

type Decode = (bytes: Uint8Array, options: { maxOutputLength: number }) => Uint8Array;

const DECODERS: Readonly<Record<string, Decode>> = {
  gzip: gunzipSync,
  deflate: inflateSync,
  br: brotliDecompressSync,
  zstd: zstdDecompressSync,
};

/** How long a held body is waited for: until `dueAtMs` of the clock's monotonic time, or until `signal` aborts. */
type WaitBudget = Readonly<{ clock: Clock; dueAtMs: number; signal: AbortSignal }>;

/** What to do about a body by its next piece: to wait for more, to hand on what came and comes, or to let go of it. */
export type Choice = 'hold' | 'pass' | 'refuse';

/** What became of a body that was held. */
type Held =
  /** It ended while it was held. One that came too late is `stalled`, one whose caller left is `cancelled`. */
  | { readonly kind: 'ended'; readonly end: BodyEnd; readonly bytes: Uint8Array<ArrayBuffer> }
  /** It is to be passed on; `pieces` are what has come, which `body` gives first. */
  | { readonly kind: 'passed'; readonly body: StreamBody; readonly pieces: readonly Buffer[] }
  /** It was let go of. */
  | { readonly kind: 'refused' };

/**
 * Holds a body for as long as `choose`, called with each piece, says so. It bounds what is held; time is bounded here,
 * so that neither a body that stalls nor one that drips keeps a call, its place or its permit. Never rejects.
 */
export async function bufferUntil(
  body: ReplyBody,
  choose: (piece: Buffer) => Choice,
  waitBudget: WaitBudget,
): Promise<Held> {
  const pieces: Buffer[] = [];
  const decided = Promise.withResolvers<Held>();
  const open = Promise.withResolvers<void>();
  let write: WritePiece | undefined;
  let choice: Choice = 'hold';
  const waited = wait(body, waitBudget);
  const piped = body.pipe((piece) => {
    if (write !== undefined) return write(piece);
    const kept = Buffer.from(piece);
    if (choice === 'hold') choice = choose(kept);
    if (choice !== 'refuse') pieces.push(kept);
    if (choice === 'hold') return undefined;
    waited.stop();
    if (choice === 'refuse') {
      decided.resolve({ kind: 'refused' });
      return body.cancel();
    }
    decided.resolve({ kind: 'passed', body: { pipe, cancel: body.cancel }, pieces });
    return open.promise; // nothing more is read before it is piped
  });
  void piped.then((end) => {
    waited.stop();
    const late = end.kind === 'cut' && waited.isLate();
    const bytes = new Uint8Array(Buffer.concat(pieces));
    decided.resolve({ kind: 'ended', end: late ? { ...end, reason: 'stalled' } : end, bytes });
  });
  return decided.promise;

  async function pipe(given: WritePiece): Promise<BodyEnd> {
    for (const piece of pieces.splice(0)) {
      const wait = given(piece);
      if (wait instanceof Promise) await wait.catch(() => undefined); // a reader that fails cancels by itself
    }
    write = given;
    open.resolve();
    return piped;
  }
}

type Waited = Readonly<{ stop(): void; isLate(): boolean }>;

/** Lets go of the body when its time is over or its caller leaves, unless it is stopped. */
function wait(body: ReplyBody, { clock, dueAtMs, signal }: WaitBudget): Waited {
  const over = new AbortController();
  let late = false;
  const leave = () => body.cancel();
  if (signal.aborted) leave();
  else signal.addEventListener('abort', leave, { once: true });
  void clock.sleep(Math.max(0, dueAtMs - clock.monotonic()), over.signal).then(() => {
    if (over.signal.aborted) return;
    late = true;
    body.cancel();
  });
  return {
    stop() {
      over.abort();
      signal.removeEventListener('abort', leave);
    },
    isLate: () => late,
  };
}

/** The body with its structure followed: it is cut at the first byte that cannot be JSON, or when it ends too early. */
function checked(body: StreamBody): StreamBody {
  const structure = createStructure();
  return {
    cancel: body.cancel,
    async pipe(write) {
      let broken = false;
      const end = await body.pipe((piece) => {
        if (broken) return undefined;
        if (structure.push(piece)) return write(piece);
        broken = true;
        body.cancel();
        return undefined;
      });
      if (broken || (end.kind === 'complete' && !structure.isComplete())) {
        return { kind: 'cut', reason: 'bad-json', bytes: end.bytes };
      }
      return end;
    },
  };
}

/** Answers up to this length are held and sent at once, with a Content-Length; longer ones are streamed. */
export const WHOLE_BYTES_MAX = 65_536;

/**
 * Judges a reply by its head and first bytes: an answer, or a failure whose body is thrown away. `acceptEncoding` is
 * what was requested: a compressed answer to `identity` could be neither spliced into a batch nor read by its
 * caller. `trustsEnd` says that a body of a known length is complete when its last byte has come. What is held for its
 * end is waited for with `waitBudget`. Never rejects.
 */
export async function judge(
  { head, body }: HttpReply,
  acceptEncoding: string,
  trustsEnd: boolean | undefined,
  waitBudget: WaitBudget,
): Promise<ResponseStart | Failure> {
  const { status, headers, framing } = head;
  const encoding = encodingOf(headers);
  if (status !== 200) return refused(status, headers, body, waitBudget);
  if (!/json/i.test(headers.get('content-type') ?? '')) {
    return discarded(body, { kind: 'garbage', reason: 'not JSON by its content type' });
  }
  if (encoding !== undefined && !accepts(acceptEncoding, encoding)) {
    return discarded(body, { kind: 'garbage', reason: 'compressed without being asked to' });
  }
  const { pieces, ended } = body.arrived();
  if (ended || (framing.kind === 'length' && framing.bytes <= WHOLE_BYTES_MAX))
    return readWhole(body, encoding, waitBudget);
  const isTrusted = encoding !== undefined || (trustsEnd ?? framing.kind === 'length');
  const stream = (passed: StreamBody, first: readonly Buffer[]): ResponseStart => ({
    kind: 'stream',
    body: isTrusted ? passed : checked(passed),
    encoding,
    slot: encoding === undefined ? slotOf(first) : 0,
  });
  if (framing.kind === 'length')
    return encoding !== undefined || startsAnObject(pieces)
      ? stream(body, pieces)
      : discarded(body, NO_OBJECT);
  // Its length is not known: what is small, an error or a null is held all the same.
  const held = await bufferUntil(
    body,
    encoding === undefined ? untilItTells() : whileComplete(encoding),
    waitBudget,
  );
  switch (held.kind) {
    case 'passed':
      return stream(held.body, held.pieces);
    case 'refused':
      return NO_OBJECT;
    case 'ended':
      return wholeOf(held, encoding);
    default:
      return unreachable(held);
  }
}

/** Statuses by which a front speaks for itself, whatever its body says: our credentials, its limits, its capacity. */
const OF_THE_FRONT = new Set([401, 403, 413, 429, 503]);

/** A status that is no answer; but some backends put the method's own error into a 4xx or 500. */
async function refused(
  status: number,
  headers: ReadonlyMap<string, string>,
  body: ReplyBody,
  waitBudget: WaitBudget,
): Promise<ResponseStart | Failure> {
  const failure: Failure = { kind: 'status', status };
  const isJson = /json/i.test(headers.get('content-type') ?? '') && encodingOf(headers) === undefined;
  const length = Number(headers.get('content-length') ?? Infinity);
  if (status < 400 || OF_THE_FRONT.has(status) || !isJson || length > WHOLE_BYTES_MAX)
    return discarded(body, failure);
  const whole = await readWhole(body, undefined, waitBudget);
  return whole.kind === 'whole' && failureOf(whole.bytes) !== undefined ? whole : failure;
}

/** Whether a caller that accepts these encodings can read this one (RFC 9110 12.5.3). */
function accepts(acceptEncoding: string, encoding: string): boolean {
  return acceptEncoding.split(',').some((range) => {
    const [name = '', ...parameters] = range
      .trim()
      .toLowerCase()
      .split(/\s*;\s*/);
    const refused = parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
    return !refused && (name === encoding.toLowerCase() || name === '*');
  });
}

function encodingOf(headers: ReadonlyMap<string, string>): string | undefined {
  const encoding = headers.get('content-encoding');
  return encoding === undefined || encoding === 'identity' ? undefined : encoding;
}

const NO_OBJECT: Failure = { kind: 'garbage', reason: 'not a JSON object' };

async function readWhole(
  body: ReplyBody,
  encoding: string | undefined,
  waitBudget: WaitBudget,
): Promise<ResponseStart | Failure> {
  const { pieces, ended } = body.arrived();
  if (ended) {
    // Most answers are small and come in one read: they cost no timer.
    const bytes = new Uint8Array(Buffer.concat(pieces));
    return wholeOf({ end: await body.pipe(() => undefined), bytes }, encoding);
  }
  const held = await bufferUntil(body, () => 'hold', waitBudget);
  // What is only held ends by itself or is let go of.
  return held.kind === 'ended' ? wholeOf(held, encoding) : NO_OBJECT;
}

/** Judges a small body that came whole. */
export function judgeWhole(body: Buffer): ResponseStart | Failure {
  return wholeOf({ end: { kind: 'complete', bytes: body.length }, bytes: new Uint8Array(body) }, undefined);
}

function wholeOf(
  { end, bytes }: Pick<Extract<Held, { kind: 'ended' }>, 'end' | 'bytes'>,
  encoding: string | undefined,
): ResponseStart | Failure {
  if (end.kind === 'cut') return { kind: 'no-answer', reason: `a body cut short: ${end.reason}` };
  if (end.bytes === 0) return { kind: 'garbage', reason: 'an empty body' };
  return encoding !== undefined || isObject(bytes) ? { kind: 'whole', bytes, encoding } : NO_OBJECT;
}

/**
 * Holds an answer that is complete, because only the end of its framing can follow, and one that is an error or a null,
 * as long as it is small; passes a real result on at its first byte.
 */
function untilItTells(): (piece: Buffer) => Choice {
  const structure = createStructure();
  const beginning = createBeginning();
  let bytes = 0;
  return (piece) => {
    if (bytes === 0 && !startsAnObject([piece])) return 'refuse';
    bytes += piece.length;
    if (!structure.push(piece)) return 'refuse';
    const tells = beginning.push(piece);
    return bytes <= WHOLE_BYTES_MAX && (tells || structure.isComplete()) ? 'hold' : 'pass';
  };
}

/** Holds a compressed answer when the first that comes of it is all of a null or an error: such are short. */
function whileComplete(encoding: string): (piece: Buffer) => Choice {
  const pieces: Buffer[] = [];
  let bytes = 0;
  return (piece) => {
    pieces.push(piece);
    bytes += piece.length;
    if (bytes > SMALL_BODY_BYTES_MAX) return 'pass';
    const whole = { kind: 'whole', bytes: new Uint8Array(Buffer.concat(pieces)), encoding } as const;
    const smallBody = decodeSmallBody(whole);
    // zstd gives what it has of a frame that is cut.
    return smallBody !== undefined && isObject(smallBody) ? 'hold' : 'pass';
  };
}

function isObject(bytes: Uint8Array): boolean {
  const structure = createStructure();
  const all = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  return structure.push(all) && structure.isComplete() && startsAnObject([all]);
}

function slotOf([first]: readonly Buffer[]): number {
  return first === undefined ? 0 : contextSlot(first);
}

function startsAnObject(pieces: readonly Buffer[]): boolean {
  return pieces.every((piece, i) => i > 0 || /^[ \t\r\n]*(?:\{|$)/.test(piece.toString('latin1', 0, 64)));
}

function discarded(body: ReplyBody, failure: Failure): Failure {
  body.cancel();
  return failure;
}

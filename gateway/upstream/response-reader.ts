import type { Method } from '../../shared/config/methods.ts';
import { afterName, afterSpace, afterString, afterValue, COMMA } from '../json/scan.ts';
import { Structure } from '../json/structure.ts';
import { mapBody, type StreamBody } from '../http/stream-body.ts';
import type { Framing } from '../http/body-decoder.ts';
import type { ResponseHead } from '../http/response-head.ts';
import { answerSlot } from './backend.ts';
import { type Failure, GIVEN_UP, mayHaveActed, NO_CODE } from './failure.ts';
import { codingOf, DecodedBody } from './decoded-body.ts';
import {
  answerFor,
  CHECKED_BYTES_MAX,
  FollowedAnswer,
  isForeign,
  isObjectStart,
  isTelling,
} from './followed-answer.ts';
import type { HttpReply, ReplyBody } from './http-connection.ts';

/** An answer that has begun, with the caller's id, and what was found out about it, once, by `judge`. */
export type ResponseStart = WholeAnswer | StreamedAnswer;

type Judged = Readonly<{
  /** The code of its error; `undefined`: it is a result. */
  code: number | undefined;
  /** The slot that its first bytes say it was read at; 0 or absent: none. */
  slot?: number;
  /** The name of the backend that gave it; absent: it is of our own making. */
  backend?: string | undefined;
}>;

/** All of it, held: it is small. */
export type WholeAnswer = Judged &
  Readonly<{
    kind: 'whole';
    bytes: Uint8Array<ArrayBuffer>;
    /** The text of its error. */
    message?: string;
  }>;

/** Its bytes as they come. */
export type StreamedAnswer = Judged &
  Readonly<{
    kind: 'stream';
    body: StreamBody;
    /** How long it is, where its backend said so, with the caller's id. */
    length?: number | undefined;
    /** When it must have ended if the gateway itself reads it, on the monotonic clock. */
    lastMs?: number;
  }>;

/** The members that decide what an answer is, whatever stands before them. */
const TELLING = ['"error"', '"result"'];
const LETTER_N = 0x6e;

/** Tells an answer by its start: `open`, the name of a member that tells has begun; `undefined`, it says nothing yet. */
export function startKindOf(start: Buffer): 'error' | 'null' | 'result' | 'open' | undefined {
  let i = afterSpace(start, 0);
  do {
    i = afterSpace(start, i + 1); // behind the brace or the comma
    const colon = afterName(start, i);
    const name = start.toString('latin1', i, colon < 0 ? start.length : afterString(start, i)).trimEnd();
    const value = colon < 0 ? start.length : afterSpace(start, colon);
    if (value === start.length)
      return name.length > 1 && TELLING.some((each) => each.startsWith(name)) ? 'open' : undefined;
    const isNull = start[value] === LETTER_N;
    if (name === '"result"') return isNull ? 'null' : 'result';
    // An error that is null says nothing; what follows it will.
    if (name === '"error"' && !isNull) return 'error';
    const end = afterValue(start, value);
    i = end < 0 ? start.length : afterSpace(start, end);
  } while (start[i] === COMMA);
  return undefined;
}

/** Bytes that show the kind of an answer, unless members of no meaning stand first. */
const HEAD_BYTES = 1_024;

/** No null and no error that matters is longer. */
export const SMALL_BODY_BYTES_MAX = 4_096;

/** Decides by all pieces of a body so far: wait for more, pass it on, or refuse it. */
type Choose = (pieces: readonly Buffer[]) => 'buffer' | 'pass' | 'refuse';

/** Reads on while `choose`, which bounds the bytes, says so; the connection bounds the time, `signal` ends it. Never rejects. */
export async function bufferUntil(
  body: ReplyBody,
  choose: Choose,
  signal: AbortSignal,
): Promise<ReturnType<Choose>> {
  const leave = () => body.cancel();
  if (signal.aborted) leave();
  else signal.addEventListener('abort', leave, { once: true });
  let choice = choose(body.pieces);
  while (choice === 'buffer' && body.end === undefined) {
    await body.more();
    choice = choose(body.pieces);
  }
  signal.removeEventListener('abort', leave);
  return choice;
}

/** The body with the caller's id, cut at the first byte that shows that it is no one answer to the call, or when it ends too early. */
function checked(body: ReplyBody, { sentId, callerId }: SentCall, isTrusted: boolean): StreamBody {
  const answer = new FollowedAnswer(sentId, callerId, isTrusted);
  return mapBody(body, {
    piece(piece, write) {
      const wait = answer.push(piece, write);
      if (answer.isBroken) body.cancel();
      return wait;
    },
    end(end, write) {
      const isCut = answer.isBroken || (end.kind === 'complete' && !answer.end(write));
      if (isCut) body.distrust?.();
      return isCut ? { kind: 'cut', reason: 'bad-json', bytes: end.bytes } : end;
    },
  });
}

/** Answers up to this length are held and sent at once, with a Content-Length; longer ones are streamed. */
export const WHOLE_BYTES_MAX = CHECKED_BYTES_MAX;

/** A call as it was sent: its method, its id, and its caller's, which comes back in its place. */
type SentCall = Readonly<{ slotIn: Method['slotIn']; sentId: Uint8Array; callerId: Uint8Array }>;

/**
 * Judges a reply to a call by its head and first bytes: an answer, or a failure whose body is cancelled. `isTrusted`: where
 * an answer does not end in its id, its end is that of its framing. The answer to a write is held however it is framed: its
 * caller must learn that it was cut. Aborting `signal` cancels what is held. Never rejects.
 */
export async function judge(
  { head, body: came }: HttpReply,
  call: SentCall,
  isTrusted: boolean,
  signal: AbortSignal,
  isWrite = false,
): Promise<ResponseStart | Failure> {
  const { status } = head;
  const failure = { kind: 'status', status } as const;
  // What a time-out or a broken front says of a write is not known to be about it, whatever its body says.
  const isAnswerless = !mayHoldError(head) || (isWrite && mayHaveActed(failure));
  if (status !== 200 && isAnswerless) return discarded(came, failure, call.sentId);
  if (!head.isJson) return discarded(came, NO_JSON, call.sentId);
  const coding = codingOf(head.encoding);
  if (coding === undefined) return discarded(came, UNKNOWN_CODING, call.sentId);
  const isPlain = coding === 'identity';
  const body = isPlain ? came : new DecodedBody(came, coding);
  const framing = isPlain ? head.framing : 'chunked';
  const isThere = body.end?.kind === 'complete';
  const choose = isThere
    ? () => 'buffer' as const
    : isWrite || status !== 200
      ? whileSmall
      : chooseFor(framing);
  const choice = await bufferUntil(body, choose, signal);
  if (choice === 'refuse') return discarded(body, NO_OBJECT, call.sentId);
  if (choice === 'pass') {
    if (status !== 200) return discarded(body, failure, call.sentId);
    const start = Buffer.concat(body.pieces);
    const { slotIn, sentId, callerId } = call;
    const length = typeof framing === 'number' ? framing - sentId.length + callerId.length : undefined;
    const code = startKindOf(start.subarray(0, HEAD_BYTES)) === 'error' ? NO_CODE : undefined;
    return {
      kind: 'stream',
      body: checked(body, call, isTrusted),
      code,
      slot: answerSlot(slotIn, start),
      length,
    };
  }
  const { end } = body;
  const whole: WholeAnswer | Failure =
    end?.kind === 'cut'
      ? {
          kind: 'no-answer',
          reason: GIVEN_UP.has(end.reason) ? end.reason : `a body cut short: ${end.reason}`,
        }
      : judgeWhole(Buffer.concat(body.pieces), call, isTrusted);
  if (whole.kind === 'garbage') body.distrust?.();
  if (status === 200) return whole;
  if (whole.kind !== 'whole') return failure;
  if (whole.code !== undefined) return whole;
  // Refused by its status and taken by its body: who sent it cannot rely on either.
  return isWrite ? { kind: 'garbage', reason: `a result under HTTP ${status}` } : failure;
}

/** Statuses by which a front speaks for itself, whatever its body says: our credentials, its limits, its capacity. */
const OF_THE_FRONT = new Set([401, 403, 413, 429, 503]);

/** Whether a status may be no failure of the backend: some put the method's own error into a 4xx or 500. */
function mayHoldError({ status, isJson, framing }: ResponseHead): boolean {
  const isShort = typeof framing === 'number' && framing <= WHOLE_BYTES_MAX;
  return status >= 400 && !OF_THE_FRONT.has(status) && isJson && isShort;
}

/** Short answers are held to their end. When the length is not known, so is what is small, an error or a null. */
function chooseFor(framing: Framing): Choose {
  if (typeof framing !== 'number') return untilItTells();
  if (framing <= WHOLE_BYTES_MAX) return () => 'buffer';
  return (pieces) => {
    if (!startsAnObject(pieces)) return 'refuse';
    return isTelling(Buffer.concat(pieces)) ? 'pass' : 'buffer';
  };
}

function whileSmall(pieces: readonly Buffer[]): ReturnType<Choose> {
  return isLong(pieces) ? 'pass' : 'buffer';
}

function isLong(pieces: readonly Buffer[]): boolean {
  return pieces.reduce((bytes, { length }) => bytes + length, 0) > WHOLE_BYTES_MAX;
}

const NO_JSON: Failure = { kind: 'garbage', reason: 'not JSON by its content type' };
const UNKNOWN_CODING: Failure = { kind: 'garbage', reason: 'in a coding that is not known' };
const NO_OBJECT: Failure = { kind: 'garbage', reason: 'not a JSON object' };
const FOREIGN: Failure = { kind: 'garbage', reason: 'not one answer to the call' };

/** Judges a body that came whole. */
export function judgeWhole(
  body: Buffer,
  { slotIn, sentId, callerId }: SentCall,
  isTrusted: boolean,
): WholeAnswer | Failure {
  if (body.length === 0) return { kind: 'garbage', reason: 'an empty body' };
  const answer = answerFor(body, sentId, callerId, isTrusted);
  if (answer === undefined) return startsAnObject([body]) ? FOREIGN : NO_OBJECT;
  const { bytes, error } = answer;
  if (error !== undefined) return { kind: 'whole', bytes, ...error };
  return { kind: 'whole', bytes, code: undefined, slot: answerSlot(slotIn, body) };
}

/** Holds what is complete, and errors and nulls as long as they are small; passes a real result on at its first byte. */
function untilItTells(): Choose {
  const structure = new Structure();
  let seen = 0;
  return (pieces) => {
    const fresh = pieces.slice(seen).map((piece) => piece.subarray(0, WHOLE_BYTES_MAX));
    if (!startsAnObject(pieces) || !fresh.every((piece) => structure.push(piece))) return 'refuse';
    seen = pieces.length;
    if (isLong(pieces)) return 'pass';
    const start = Buffer.concat(pieces);
    if (structure.isComplete || !isTelling(start)) return 'buffer';
    const startKind = startKindOf(start);
    return startKind === 'result' || startKind === undefined ? 'pass' : 'buffer';
  };
}

function startsAnObject(pieces: readonly Buffer[]): boolean {
  return pieces[0] === undefined || isObjectStart(pieces[0]);
}

/** Lets go of a body. Its connection is kept only behind a whole one that may be an answer to the call. */
export function discarded(body: ReplyBody, failure: Failure, sentId: Uint8Array): Failure {
  if (body.end === undefined) body.cancel();
  else if (failure.kind === 'garbage' || isForeign(Buffer.concat(body.pieces), sentId)) body.distrust?.();
  return failure;
}

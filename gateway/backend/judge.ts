import { unreachable } from '../../shared/brand.ts';
import type { HttpReply, ReplyBody } from '../http/reply.ts';
import { contextSlot } from '../pool/answer-slot.ts';
import { createStructure } from '../response/structure.ts';
import { createBeginning } from './beginning.ts';
import type { Begun, StreamBody } from './begun.ts';
import { checked } from './checked-body.ts';
import type { Failure } from './failure.ts';
import { type Choice, type Held, hold, type Patience } from './hold.ts';
import { failureOf } from './rpc-failure.ts';
import { SAYING_BYTES_MAX, sayingOf } from './saying.ts';

/** Answers up to this length are held and sent at once, with a Content-Length; longer ones are streamed. */
const WHOLE_BYTES_MAX = 65_536;

/**
 * Judges a reply by its head and first bytes: an answer, or a failure whose body is thrown away. `acceptEncoding` is
 * what was asked for: a compressed answer to `identity` could be neither spliced into a batch nor read by its
 * caller. `trustsEnd` says that a body of a known length is complete when its last byte has come. What is held for its
 * end is waited for with `patience`. Never rejects.
 */
export async function judge(
  { head, body }: HttpReply,
  acceptEncoding: string,
  trustsEnd: boolean | undefined,
  patience: Patience,
): Promise<Begun | Failure> {
  const { status, headers, framing } = head;
  const encoding = encodingOf(headers);
  if (status !== 200) return refused(status, headers, body, patience);
  if (!/json/i.test(headers.get('content-type') ?? '')) {
    return discarded(body, { kind: 'garbage', reason: 'not JSON by its content type' });
  }
  if (encoding !== undefined && !accepts(acceptEncoding, encoding)) {
    return discarded(body, { kind: 'garbage', reason: 'compressed without being asked to' });
  }
  const { pieces, ended } = body.begun();
  if (ended || (framing.kind === 'length' && framing.bytes <= WHOLE_BYTES_MAX))
    return readWhole(body, encoding, patience);
  const isTrusted = encoding !== undefined || (trustsEnd ?? framing.kind === 'length');
  const stream = (passed: StreamBody, first: readonly Buffer[]): Begun => ({
    kind: 'stream',
    body: isTrusted ? passed : checked(passed),
    encoding,
    slot: encoding === undefined ? slotOf(first) : 0,
  });
  if (framing.kind === 'length')
    return encoding !== undefined || startsAnObject(pieces)
      ? stream(body, pieces)
      : discarded(body, NO_OBJECT);
  // Nobody has said how long it is: what is small, or bad news, is held all the same.
  const held = await hold(body, encoding === undefined ? untilItTells() : whileComplete(encoding), patience);
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
  patience: Patience,
): Promise<Begun | Failure> {
  const failure: Failure = { kind: 'status', status };
  const isJson = /json/i.test(headers.get('content-type') ?? '') && encodingOf(headers) === undefined;
  const length = Number(headers.get('content-length') ?? Infinity);
  if (status < 400 || OF_THE_FRONT.has(status) || !isJson || length > WHOLE_BYTES_MAX)
    return discarded(body, failure);
  const whole = await readWhole(body, undefined, patience);
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
  patience: Patience,
): Promise<Begun | Failure> {
  if (body.begun().ended) {
    // Most answers are small and come in one read: they cost no timer.
    const pieces: Buffer[] = [];
    const end = await body.pipe((piece) => void pieces.push(piece));
    return wholeOf({ end, bytes: new Uint8Array(Buffer.concat(pieces)) }, encoding);
  }
  const held = await hold(body, () => 'hold', patience);
  // What is only held ends by itself or is let go of.
  return held.kind === 'ended' ? wholeOf(held, encoding) : NO_OBJECT;
}

function wholeOf(
  { end, bytes }: Pick<Extract<Held, { kind: 'ended' }>, 'end' | 'bytes'>,
  encoding: string | undefined,
): Begun | Failure {
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
    if (bytes > SAYING_BYTES_MAX) return 'pass';
    const whole = { kind: 'whole', bytes: new Uint8Array(Buffer.concat(pieces)), encoding } as const;
    const saying = sayingOf(whole);
    // zstd gives what it has of a frame that is cut.
    return saying !== undefined && isObject(saying) ? 'hold' : 'pass';
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

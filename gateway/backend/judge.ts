import type { HttpReply, ReplyBody } from '../http/reply.ts';
import { createStructure } from '../response/structure.ts';
import type { Begun, StreamBody } from './begun.ts';
import type { Failure } from './failure.ts';
import { failureOf } from './rpc-failure.ts';

/** Answers up to this length are held and sent at once, with a Content-Length; longer ones are streamed. */
const WHOLE_BYTES_MAX = 65_536;

/**
 * Judges a reply by its head and first bytes: an answer, or a failure whose body is thrown away. `acceptEncoding` is
 * what was asked for: a compressed answer to `identity` could be neither spliced into a batch nor read by its
 * caller. `trustsEnd` says that a body of a known length is complete when its last byte has come. Never rejects.
 */
export async function judge(
  { head, body }: HttpReply,
  acceptEncoding: string,
  trustsEnd: boolean | undefined,
): Promise<Begun | Failure> {
  const { status, headers, framing } = head;
  const encoding = encodingOf(headers);
  if (status !== 200) return refused(status, headers, body);
  if (!/json/i.test(headers.get('content-type') ?? '')) {
    return discarded(body, { kind: 'garbage', reason: 'not JSON by its content type' });
  }
  if (encoding !== undefined && !accepts(acceptEncoding, encoding)) {
    return discarded(body, { kind: 'garbage', reason: 'compressed without being asked to' });
  }
  const { pieces, ended } = body.begun();
  const isShort = framing.kind === 'length' && framing.bytes <= WHOLE_BYTES_MAX;
  if (ended || isShort) return readWhole(body, encoding);
  const trusted = encoding !== undefined || (trustsEnd ?? framing.kind === 'length');
  const stream: Begun = { kind: 'stream', body: trusted ? body : checked(body), encoding };
  return trusted || startsAnObject(pieces)
    ? stream
    : discarded(body, { kind: 'garbage', reason: 'not a JSON object' });
}

/** Statuses by which a front speaks for itself, whatever its body says: our credentials, its limits, its capacity. */
const OF_THE_FRONT = new Set([401, 403, 413, 429, 503]);

/** A status that is no answer; but some backends put the method's own error into a 4xx or 500. */
async function refused(
  status: number,
  headers: ReadonlyMap<string, string>,
  body: ReplyBody,
): Promise<Begun | Failure> {
  const failure: Failure = { kind: 'status', status };
  const isJson = /json/i.test(headers.get('content-type') ?? '') && encodingOf(headers) === undefined;
  const length = Number(headers.get('content-length') ?? Infinity);
  if (status < 400 || OF_THE_FRONT.has(status) || !isJson || length > WHOLE_BYTES_MAX)
    return discarded(body, failure);
  const whole = await readWhole(body, undefined);
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

async function readWhole(body: ReplyBody, encoding: string | undefined): Promise<Begun | Failure> {
  const pieces: Buffer[] = [];
  const structure = createStructure();
  const end = await body.pipe((piece) => {
    pieces.push(piece);
    if (encoding === undefined) structure.push(piece);
  });
  if (end.kind === 'cut') return { kind: 'no-answer', reason: `a body cut short: ${end.reason}` };
  if (end.bytes === 0) return { kind: 'garbage', reason: 'an empty body' };
  const bytes = Buffer.concat(pieces);
  if (encoding === undefined && !(structure.isComplete() && startsAnObject([bytes])))
    return { kind: 'garbage', reason: 'not a JSON object' };
  return { kind: 'whole', bytes: new Uint8Array(bytes), encoding };
}

/** The body with its structure followed: it is cut at the first byte that cannot be JSON, or when it ends too early. */
function checked(body: ReplyBody): StreamBody {
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

function startsAnObject(pieces: readonly Buffer[]): boolean {
  return pieces.every((piece, i) => i > 0 || /^\s*(?:\{|$)/.test(piece.toString('latin1', 0, 64)));
}

function discarded(body: ReplyBody, failure: Failure): Failure {
  body.cancel();
  return failure;
}

import { type Failure, failureFrom } from './failure.ts';

/** An answer that has begun. `encoding` is its content-encoding, passed on untouched. */
export type Begun =
  /** All of it, held: it is small. */
  | { readonly kind: 'whole'; readonly bytes: Uint8Array<ArrayBuffer>; readonly encoding: string | undefined }
  /** Its bytes as they come. Single-use; cancelling it frees the backend's connection. */
  | {
      readonly kind: 'stream';
      readonly body: ReadableStream<Uint8Array<ArrayBuffer>>;
      readonly encoding: string | undefined;
    };

/** Answers up to this length are held and sent at once, with a Content-Length; longer ones are streamed. */
const WHOLE_BYTES_MAX = 65_536;

/**
 * Judges a head: an answer, or a failure whose body is thrown away. `acceptEncoding` is what was asked for: a
 * compressed answer to `identity` could be neither spliced into a batch nor read by its caller. Never rejects.
 */
export async function readHead(response: Response, acceptEncoding: string): Promise<Begun | Failure> {
  const { status, headers, body } = response;
  const encoding = encodingOf(headers);
  if (status !== 200) return discarded(body, { kind: 'status', status });
  if (!/json/i.test(headers.get('content-type') ?? '')) {
    return discarded(body, { kind: 'garbage', reason: 'not JSON by its content type' });
  }
  if (encoding !== undefined && acceptEncoding === 'identity') {
    return discarded(body, { kind: 'garbage', reason: 'compressed without being asked to' });
  }
  const length = headers.get('content-length');
  if (body === null || length === '0') return discarded(body, { kind: 'garbage', reason: 'an empty body' });
  if (length === null || Number(length) > WHOLE_BYTES_MAX) return { kind: 'stream', body, encoding };
  return readWhole(response, Number(length), encoding);
}

function encodingOf(headers: Headers): string | undefined {
  const encoding = headers.get('content-encoding');
  return encoding === null || encoding === 'identity' ? undefined : encoding;
}

async function readWhole(
  response: Response,
  length: number,
  encoding: string | undefined,
): Promise<Begun | Failure> {
  try {
    const bytes = new Uint8Array(await response.arrayBuffer());
    if (bytes.length !== length)
      return { kind: 'no-answer', reason: 'a body shorter than its Content-Length' };
    if (encoding === undefined && !isObject(bytes)) return { kind: 'garbage', reason: 'not a JSON object' };
    return { kind: 'whole', bytes, encoding };
  } catch (error) {
    return failureFrom(error);
  }
}

/** Whether the bytes begin and end as an object does; Agave ends its answers with a line feed. */
function isObject(bytes: Uint8Array): boolean {
  let last = bytes.length - 1;
  while (last > 0 && isSpace(bytes[last])) last--;
  let first = 0;
  while (first < last && isSpace(bytes[first])) first++;
  return bytes[first] === 0x7b && bytes[last] === 0x7d;
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

async function discarded(body: ReadableStream | null, failure: Failure): Promise<Failure> {
  await body?.cancel().catch(() => undefined); // a body that cannot be cancelled has ended already
  return failure;
}

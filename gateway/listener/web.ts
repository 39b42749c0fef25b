import type { StreamBody } from '../http/stream-body.ts';
import { SendingState } from '../http/outgoing.ts';
import { CallerRequest } from './caller-request.ts';
import { type RequestBody, type Fields, type RpcRequest, RpcResponse } from './rpc.ts';

/** So much of a body that is there at once is gathered, to send its length. */
const GATHERED_BYTES_MAX = 1_048_576;
/** Fields that a listener writes itself. */
const OWN_FIELDS = new Set(['content-length', 'transfer-encoding', 'date']);

/** The waits for answers to requests of `app.handle`. */
const sendings = new WeakMap<Request, SendingState>();

/** A request as the RPC endpoint reads it: that of a connection is one, any other comes from `app.handle`. */
export function rpcRequestOf(request: Request): RpcRequest {
  const own: unknown = request;
  if (own instanceof CallerRequest) return own;
  const { method, url, headers } = request;
  const sending = new SendingState();
  sendings.set(request, sending);
  return {
    method,
    url,
    headers,
    address: undefined,
    get signal() {
      return request.signal;
    },
    onSent: (then) => sending.onSent(then),
    readBody: (bytesMax) => readBody(request, bytesMax),
  };
}

async function readBody({ body }: Request, bytesMax: number): Promise<RequestBody> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  try {
    for await (const piece of body ?? []) {
      bytes += piece.length;
      if (bytes > bytesMax) return { kind: 'body-too-large' };
      pieces.push(piece);
    }
  } catch {
    return { kind: 'caller-left' };
  }
  return { kind: 'body', bytes: Buffer.concat(pieces) };
}

/** The answer of `app.handle`: the same status, fields and bytes that a connection gets. Hooks of the app may have no request. */
export function webResponseOf(response: RpcResponse, request: Request | undefined): Response {
  const { status, fields, cookies = [], body } = response;
  const headers = new Headers(fields);
  for (const cookie of cookies) headers.append('set-cookie', cookie);
  const isHead = request?.method === 'HEAD';
  const isStream = body !== undefined && !(body instanceof Uint8Array);
  const length = isStream ? response.length : (body?.length ?? 0);
  if (length !== undefined && status !== 204) headers.set('content-length', String(length));
  const sent = () => request !== undefined && sendings.get(request)?.sent();
  if (isStream && !isHead) return new Response(webStreamOf(body, response, sent), { status, headers });
  if (isStream) body.cancel();
  sent();
  return new Response(isStream || isHead || length === 0 ? null : body, { status, headers });
}

/** The bytes of a body, which fails where it is cut. */
function webStreamOf(
  body: StreamBody,
  { length, onEnd }: RpcResponse,
  sent: () => void,
): ReadableStream<Uint8Array> {
  let wanted: PromiseWithResolvers<void> | undefined;
  let isCancelled = false;
  const run = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
    let left = length;
    const end = await body.pipe((piece) => {
      if (piece.length === 0 || isCancelled) return undefined;
      if (left !== undefined) left -= piece.length;
      controller.enqueue(new Uint8Array(piece));
      if ((controller.desiredSize ?? 0) > 0) return undefined;
      wanted ??= Promise.withResolvers();
      return wanted.promise;
    });
    onEnd?.(end);
    sent();
    if (isCancelled) return;
    if (end.kind === 'complete' && (left ?? 0) === 0) controller.close();
    else controller.error(new Error('The answer was cut.'));
  };
  const readOn = () => {
    wanted?.resolve();
    wanted = undefined;
  };
  return new ReadableStream({
    start: (controller) => void run(controller),
    pull: readOn,
    cancel() {
      isCancelled = true;
      body.cancel();
      readOn();
    },
  });
}

/** Makes the answer for a connection where a route gave an ordinary value or a `Response`. Rejects where that has no bytes. */
export async function rpcResponseOf(response: Response, method: string): Promise<RpcResponse> {
  const { status } = response;
  if (status < 200) throw new Error(`A route answered with status ${status}.`);
  const fields: Fields = {};
  const cookies: string[] = [];
  for (const [name, value] of response.headers) {
    if (name === 'set-cookie') cookies.push(value);
    else if (!OWN_FIELDS.has(name)) fields[name] = value;
  }
  const length = lengthIn(response.headers);
  const isHeadAlone = method === 'HEAD' && response.body === null;
  const body = isHeadAlone ? undefined : await bodyOf(response, length);
  return new RpcResponse({ status, fields, cookies, body, length });
}

function lengthIn(headers: Headers): number | undefined {
  const text = headers.get('content-length') ?? '';
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

/** Its pieces may be text where a route gave them. */
type Reader = Readonly<{
  read(): Promise<{ done: boolean; value?: unknown }>;
  cancel(): Promise<void>;
}>;

/** The bytes that are there at once, where those are all; else a stream. */
async function bodyOf(
  { body }: Response,
  length: number | undefined,
): Promise<Buffer<ArrayBuffer> | StreamBody> {
  if (body === null) return Buffer.alloc(0);
  const reader: Reader = body.getReader();
  const pieces: Buffer[] = [];
  let bytes = 0;
  let next = reader.read();
  while (bytes <= GATHERED_BYTES_MAX) {
    await undefined; // what is there settles in between
    if (Bun.peek.status(next) === 'pending') break;
    const { done, value } = await next;
    if (done) return Buffer.concat(pieces);
    const piece = bufferOf(value);
    pieces.push(piece);
    bytes += piece.length;
    next = reader.read();
  }
  return streamOf(reader, pieces, next, length);
}

function streamOf(
  reader: Reader,
  gathered: readonly Buffer[],
  next: ReturnType<Reader['read']>,
  length = Infinity,
): StreamBody {
  const cancel = () => void reader.cancel().catch(() => undefined);
  async function* all() {
    yield* gathered;
    for (let read = await next; !read.done; read = await reader.read()) yield bufferOf(read.value);
  }
  return {
    cancel,
    async pipe(write) {
      let bytes = 0;
      try {
        for await (const piece of all()) {
          bytes += piece.length;
          if (bytes > length) throw new Error('A body was longer than its length.');
          await write(piece);
        }
        return { kind: 'complete', bytes };
      } catch {
        cancel();
        return { kind: 'cut', reason: 'closed', bytes };
      }
    },
  };
}

function bufferOf(piece: unknown): Buffer {
  if (typeof piece === 'string') return Buffer.from(piece);
  if (piece instanceof ArrayBuffer) return Buffer.from(piece);
  if (ArrayBuffer.isView(piece)) return Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
  throw new TypeError('A route streamed what is neither bytes nor text.');
}

import type { CallerRequest } from '../../gateway/listener/caller-request.ts';
import { RpcResponse } from '../../gateway/listener/rpc.ts';
import type { Random } from './episodes.ts';

/** How the listener's app answers; it stands in the query of a request, behind its id. */
const MODES = ['now', 'now', 'now', 'later', 'stream', 'chunks', 'large', 'keyless', 'unread'] as const;
type Mode = (typeof MODES)[number];

const LARGE_BYTES = 90_000;
const BODY_BYTES_MAX = 1 << 20;
const KEYLESS_BYTES_MAX = 65_536;

/** A request and the answer to it. */
type Planned = Readonly<{
  wire: Buffer;
  status: number;
  body: string;
  isHead: boolean;
  /** Whether its connection ends with it, or may: a body in chunks that was not asked for had not come whole. */
  isLast: boolean;
  mayBeLast: boolean;
}>;

/** What one caller sends, how it is split, and how it ends. */
export type CallerPlan = Readonly<{
  wire: Buffer;
  splits: readonly number[];
  gap: number;
  reads: 'at once' | 'late';
  end: 'half-close' | 'reset';
  requests: readonly Planned[];
  /** The first request that was spoiled: from it on nothing is certain. */
  spoiled: number;
  text: string;
}>;

/** Answers with what came, so that an answer shows whose it is. */
export async function answerTo(request: CallerRequest): Promise<RpcResponse> {
  const [, id = '', mode = 'now'] = /\?(\w+)\.(\w+)$/.exec(request.url) ?? [];
  if (mode === 'unread') return answer(200, id);
  const holder = mode === 'keyless' ? undefined : 1;
  const body = await request.readBody(holder === undefined ? KEYLESS_BYTES_MAX : BODY_BYTES_MAX, holder);
  if (body.kind !== 'body') return answer(413, body.kind);
  const text = echoOf(id, mode as Mode, body.bytes); // of another one it is an echo too
  if (mode === 'later') for (let i = 0; i < 3; i++) await new Promise(setImmediate);
  if (mode === 'keyless') return answer(401, text);
  if (mode === 'stream' || mode === 'chunks') return streamed(text, mode === 'stream');
  return answer(200, text);
}

function echoOf(id: string, mode: Mode, body: Uint8Array): string {
  if (mode === 'unread') return id;
  const text = `${id} ${body.length} ${Bun.hash(body)}`;
  return mode === 'large' ? text.padEnd(LARGE_BYTES) : text;
}

function answer(status: number, text: string): RpcResponse {
  return new RpcResponse({ status, fields: {}, body: Buffer.from(text) });
}

function streamed(text: string, hasLength: boolean): RpcResponse {
  return new RpcResponse({
    status: 200,
    fields: {},
    length: hasLength ? text.length : undefined,
    body: {
      cancel: () => undefined,
      async pipe(write) {
        for (const part of [text.slice(0, 5), text.slice(5)]) {
          await write(Buffer.from(part));
          await new Promise(setImmediate);
        }
        return { kind: 'complete', bytes: text.length };
      },
    },
  });
}

/** A caller with some requests of its own, well-formed or, from one on, not. */
export function planOf(random: Random, name: string): CallerPlan {
  const count = random.one([1, 1, 2, 5, 20, 300]);
  const requests: Planned[] = [];
  while (requests.length < count && requests.at(-1)?.isLast !== true)
    requests.push(requestOf(random, `${name}x${requests.length}`, count));
  const isSpoiled = random.below(3) === 0;
  const spoiled = isSpoiled ? random.below(requests.length) : requests.length;
  const wires = requests.map(({ wire }, i) => (i === spoiled ? spoil(random, wire) : wire));
  const wire = Buffer.concat(wires);
  const splits = Array.from({ length: random.one([0, 0, 1, 5, 40]) }, () => random.below(wire.length + 1));
  const plan = {
    wire,
    splits: splits.toSorted((a, b) => a - b),
    gap: random.below(3),
    reads: random.one(['at once', 'at once', 'late'] as const),
    end: random.one(['half-close', 'half-close', 'half-close', 'reset'] as const),
    requests,
    spoiled,
  };
  const shown = JSON.stringify(wires.map((each) => each.toString('latin1').slice(0, 300)).slice(0, 40));
  const text = `${plan.reads}, ${plan.end}, spoiled ${spoiled} of ${requests.length}, split at ${plan.splits.join()}: ${shown}`;
  return { ...plan, text };
}

function requestOf(random: Random, id: string, count: number): Planned {
  const method = random.one(['POST', 'POST', 'POST', 'GET', 'HEAD', 'PUT']);
  const mode = method === 'HEAD' ? 'now' : random.one(MODES);
  const isHttp11 = random.below(30) > 0;
  const isClosed = random.below(40) === 0;
  const sizes = [0, 1, 100, 100, 100, 4_000, count > 5 ? 300 : 70_000, count > 2 ? 20 : 900_000];
  const bodyBytes = mode === 'keyless' ? random.below(300) : random.one(sizes);
  const body = Buffer.alloc(bodyBytes, Buffer.from(Array.from({ length: 61 }, () => random.below(256))));
  const framing =
    bodyBytes === 0 && random.below(2) === 0 ? 'none' : random.one(['length', 'chunks'] as const);
  const isExpected = mode !== 'unread' && mode !== 'keyless' && random.below(10) === 0;
  const lines = [
    `${method} /?${id}.${mode} HTTP/1.${isHttp11 ? 1 : 0}`,
    `${random.one(['host', 'Host', 'HOST'])}:${random.one(['', ' ', '\t'])}${random.one(['a', '[::1]:1', 'a.b:80'])}`,
    ...Array.from({ length: random.below(4) }, (_, i) => `x-${i}: ${'v'.repeat(random.below(40))}`),
    ...(isExpected ? ['expect: 100-continue'] : []),
    ...(isClosed ? ['connection: close'] : isHttp11 ? [] : ['connection: keep-alive']),
  ];
  const isChunked = framing === 'chunks' && isHttp11;
  if (isChunked) lines.push('transfer-encoding: chunked');
  else if (framing !== 'none') lines.push(`content-length: ${bodyBytes}`);
  const head = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`);
  const isUntilClose = mode === 'chunks' && !isHttp11;
  return {
    wire: Buffer.concat([
      head,
      isChunked ? chunksOf(random, body) : framing === 'none' ? body.subarray(0, 0) : body,
    ]),
    status: mode === 'keyless' ? 401 : 200,
    body: echoOf(id, mode, body),
    isHead: method === 'HEAD',
    isLast: isClosed || isUntilClose,
    mayBeLast: mode === 'unread' && isChunked,
  };
}

function chunksOf(random: Random, body: Buffer): Buffer {
  const parts: Buffer[] = [];
  const longest = random.one(
    body.length > 100_000 ? [30_000, 70_000] : body.length > 4_000 ? [1, 9_000] : [1, 7, 500],
  );
  for (let at = 0; at < body.length;) {
    const length = Math.min(1 + random.below(longest), body.length - at);
    const size = length.toString(16).padStart(1 + random.below(4), '0');
    const extension =
      longest > 1 && random.below(20) === 0 ? random.one([';a', ' ; a = b', ';a="\\"b"']) : '';
    parts.push(Buffer.from(`${size}${extension}\r\n`), body.subarray(at, at + length), Buffer.from('\r\n'));
    at += length;
  }
  parts.push(Buffer.from(`0\r\n${random.below(5) === 0 ? 'x-trailer: a\r\nhost: b\r\n' : ''}\r\n`));
  return Buffer.concat(parts);
}

const ODD = [
  '\r',
  '\n',
  '\r\n',
  '\0',
  ' ',
  ':',
  ',',
  '0',
  'f',
  ';',
  '\x7f',
  '\xff',
  'content-length: 5\r\n',
  'transfer-encoding: chunked\r\n',
];

function spoil(random: Random, wire: Buffer): Buffer {
  let spoiled = wire;
  for (let n = 1 + random.below(3); n > 0; n--) {
    const at = random.below(Math.min(spoiled.length, 400) + 1);
    const cut = random.one([0, 0, 1, 2, 10]);
    const put = Buffer.from(random.one(['', ...ODD]), 'latin1');
    spoiled = Buffer.concat([spoiled.subarray(0, at), put, spoiled.subarray(at + cut)]);
  }
  return spoiled;
}

type Answer = Readonly<{ status: number; body: string; end: number }>;

/** What came of a caller's answers, by name; a text says what is wrong with them. */
export function checkAnswers({ requests, spoiled }: CallerPlan, bytes: Buffer): readonly string[] | string {
  const names: string[] = [];
  let at = 0;
  for (const [i, request] of requests.slice(0, spoiled).entries()) {
    const read = answerAt(bytes, at, request.isHead);
    if (at === bytes.length && requests[i - 1]?.mayBeLast === true) return [...names, 'ended'];
    if (read === undefined) return `answer ${i} is not whole: ${bytes.toString('latin1', at, at + 300)}`;
    const body = request.isHead ? '' : request.body;
    if (read.status !== request.status || read.body !== body)
      return `answer ${i} is ${read.status} ${read.body.slice(0, 100)}, and not ${request.status} ${body.slice(0, 100)}`;
    names.push(String(read.status));
    at = read.end;
  }
  if (spoiled === requests.length && at < bytes.length)
    return `more came than all answers: ${bytes.toString('latin1', at, at + 300)}`;
  if (spoiled === requests.length) return names;
  const read = answerAt(bytes, at, requests[spoiled]?.isHead === true);
  return [...names, `spoiled ${read?.status ?? 'unanswered'}`];
}

/** The final answer that begins there. */
export function answerAt(bytes: Buffer, from: number, isHead: boolean): Answer | undefined {
  let at = from;
  for (;;) {
    const end = bytes.indexOf('\r\n\r\n', at);
    if (end === -1) return undefined;
    const head = bytes.toString('latin1', at, end).toLowerCase();
    const status = Number(/^http\/1\.1 (\d{3}) /.exec(head)?.[1]);
    at = end + 4;
    if (status === 100) continue;
    if (isHead) return { status, body: '', end: at };
    const length = /\r\ncontent-length: (\d+)/.exec(head)?.[1];
    if (length !== undefined) {
      const stop = at + Number(length);
      return stop > bytes.length
        ? undefined
        : { status, body: bytes.toString('latin1', at, stop), end: stop };
    }
    if (!head.includes('\r\ntransfer-encoding: chunked'))
      return { status, body: bytes.toString('latin1', at), end: bytes.length };
    return chunkedAt(bytes, at, status);
  }
}

function chunkedAt(bytes: Buffer, from: number, status: number): Answer | undefined {
  let body = '';
  for (let at = from; ;) {
    const end = bytes.indexOf('\r\n', at);
    const size = end === -1 ? NaN : Number.parseInt(bytes.toString('latin1', at, end), 16);
    const stop = end + 2 + size;
    if (Number.isNaN(size) || stop + 2 > bytes.length) return undefined;
    body += bytes.toString('latin1', end + 2, stop);
    at = stop + 2;
    if (size === 0) return { status, body, end: at };
  }
}

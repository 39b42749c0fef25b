import type { Random } from './episodes.ts';

/** What a server sends for one request, how it is split, and how the connection ends after it. */
export type Case = Readonly<{
  wire: Buffer;
  /** Where `wire` is split, ascending; the event loop turns `gap` times between two pieces. */
  splits: readonly number[];
  gap: number;
  end: 'keep' | 'fin' | 'reset';
}>;

/** What a client by RFC 9112 makes of a reply. `either`: it may also refuse it. */
export type Expected = Readonly<{
  /** `broken`: no answer or a cut body, of which `body` is as much as can have come. */
  kind: 'complete' | 'broken';
  status: number;
  headers: ReadonlyMap<string, string>;
  body: Buffer;
  /** The connection may carry another request. */
  reuse: boolean;
  either: boolean;
}>;

const HEAD_BYTES_MAX = 32_768;
/** The bar stands for no byte of a reply. */
const choices = (text: string) => text.split('¦');
const FIELDS = choices(
  'date: Sun, 06 Nov 1994 08:49:37 GMT¦Server:nginx¦x-a:  b\t¦X-B:¦vary: a¦vary: b¦Keep-Alive: timeout=5¦' +
    'x-obs: caf\xe9\xa0¦x-quoted: "a, b:c"¦content-encoding: gzip',
);
const ODD_FIELDS = choices(
  'x-a : b¦ folded¦\tfolded¦: b¦no colon¦x\0a: b¦x-a: \0¦x-a: b\nx-c: d¦x-a: b\rx¦x-a: \x01¦x-\xe9: a¦x a: b¦' +
    'x-a: b\ncontent-length: 1¦\ncontent-length: 3¦content-length : 3¦transfer-encoding\t: chunked¦x-a: b\n¦' +
    'connection: \xa0close¦proxy-connection: close¦(x): y¦',
);
const CONNECTIONS = choices(
  'keep-alive¦Keep-Alive¦close¦Close¦keep-alive, close¦close,keep-alive¦x , CLOSE ,y¦upgrade',
);
const STATUS_LINES = choices(
  'HTTP/1.1 200¦HTTP/1.0 200 OK¦HTTP/1.0 200 x¦HTTP/1.1 404 Not Found¦HTTP/1.1 503 ¦HTTP/1.1 204 x¦' +
    'HTTP/1.1 304 x¦HTTP/1.1 429 a b¦HTTP/1.1 999 ?¦HTTP/1.1 200 \xe9\t¦http/1.1 200 OK¦HTTP/2 200 OK¦' +
    'HTTP/1.2 200 OK¦HTTP/1.1  200 OK¦HTTP/1.1 20 OK¦HTTP/1.1 2000 OK¦HTTP/1.1 099 x¦HTTP/1.1 abc x¦' +
    'HTTP/1.1\t200 OK¦\r\nHTTP/1.1 200 OK¦HTTP/1.1 200 a\nb: c¦HTTP/1.1 200 \0¦HTTP/1.1 000 OK¦',
);
const INTERIMS = choices(
  'HTTP/1.1 100 Continue¦HTTP/1.1 103 Early\r\nlink: <a>¦HTTP/1.0 102¦HTTP/1.1 100 x\r\ncontent-length: 9¦' +
    'HTTP/1.1 101 Switching Protocols\r\nupgrade: h2c',
);

/** A reply whose body has `tag`: most are legal, the others nearly. */
export function caseOf(random: Random, tag: string): Case {
  let wire = random.below(3) === 0 ? plainReply(bodyOf(random, tag)) : replyOf(random, bodyOf(random, tag));
  if (random.below(6) === 0) wire = mutated(random, wire);
  if (random.below(8) === 0) wire = Buffer.concat([wire, surplusOf(random)]);
  if (random.below(6) === 0) wire = wire.subarray(0, random.below(random.one([wire.length + 1, 8, 300])));
  const isFine = wire.length < 500 && random.below(6) === 0;
  const count = random.one([0, 0, 1, 2, 5, 20]);
  const ends = [0, 1, 2, 3, 5].map((back) => Math.max(0, wire.length - back));
  const splits = isFine
    ? Array.from(wire, (_, i) => i)
    : Array.from({ length: count }, () =>
        random.below(4) === 0 ? random.one(ends) : random.below(wire.length + 1),
      );
  const end = random.one(['keep', 'keep', 'keep', 'fin', 'fin', 'reset'] as const);
  return {
    wire,
    splits: splits.toSorted((a, b) => a - b),
    gap: isFine ? random.below(2) : random.below(4),
    end,
  };
}

/** A reply as nearly all of them come. */
export function plainReply(body: Buffer): Buffer {
  const head = `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), body]);
}

function bodyOf(random: Random, tag: string): Buffer {
  const length = random.one([
    0,
    1,
    30,
    30,
    100,
    2_000,
    random.below(70_000),
    random.below(40) === 0 ? 2_000_000 : 50,
  ]);
  const body = Buffer.alloc(length, `{"result":"${tag}\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n"}`);
  if (length > 0 && random.below(5) === 0) for (let i = 0; i < length; i += 7) body[i] = random.below(256);
  return body;
}

function replyOf(random: Random, body: Buffer): Buffer {
  const isOdd = random.below(3) === 0;
  const framing = random.one([
    'length',
    'length',
    'length',
    'chunked',
    'chunked',
    'until-close',
    'both',
    'odd',
  ] as const);
  const lines = [isOdd && random.below(2) === 0 ? random.one(STATUS_LINES) : 'HTTP/1.1 200 OK'];
  if (random.below(4) > 0) lines.push('Content-Type: application/json; charset=utf-8');
  for (let i = random.below(4); i > 0; i--) lines.push(random.one(FIELDS));
  if (isOdd && random.below(2) === 0) lines.push(random.one(ODD_FIELDS));
  if (random.below(4) === 0) lines.push(`Connection: ${random.one(CONNECTIONS)}`);
  if (random.below(12) === 0) lines.push(`connection:${random.one(CONNECTIONS)}`);
  const [length, chunked] = [`content-length: ${body.length}`, 'transfer-encoding: chunked'];
  if (framing === 'length') lines.push(random.one([length, length, `Content-Length:\t${body.length} `]));
  if (framing === 'both')
    lines.push(
      ...random.one([
        [length, chunked],
        [chunked, length],
        [length, length],
      ]),
    );
  if (framing === 'chunked') lines.push(random.one([chunked, chunked, 'Transfer-Encoding:CHUNKED ']));
  if (framing === 'odd') lines.push(...oddFraming(random, body.length));
  const first = lines.shift() ?? '';
  const shuffled = lines.toSorted(() => random.below(3) - 1);
  if (random.below(25) === 0) {
    const bytes = [first, ...shuffled].join('\r\n').length;
    shuffled.push(
      `x-long: ${'l'.repeat(HEAD_BYTES_MAX - bytes - 10 + random.one([-3, -1, 0, 0, 1, 2, 4, 5_000]))}`,
    );
  }
  const head = Buffer.from(`${[first, ...shuffled].join('\r\n')}\r\n\r\n`, 'latin1');
  const interims = random.below(6) === 0 ? random.one([1, 1, 2, 3, random.below(3_000)]) : 0;
  const interim = Buffer.from(`${random.one(INTERIMS)}\r\n\r\n`.repeat(interims));
  const isChunked = lines.some((line) => /chunked/i.test(line));
  return Buffer.concat([interim, head, isChunked ? chunksOf(random, body) : body]);
}

function oddFraming(random: Random, n: number): readonly string[] {
  const fields = choices(
    `content-length: ${n}, ${n}¦content-length: ${n},${n}¦content-length: 5\r\ncontent-length: ${n}¦` +
      `content-length: +${n}¦content-length: -1¦content-length: 0x${n.toString(16)}¦content-length: 00${n}¦` +
      `content-length: \xa0${n}¦content-length: ${n}\x0b¦content-length: ${n} 1¦content-length: ¦` +
      `content-length: \r\ncontent-length: ${n}¦content-length: ${n}.0¦content-length: ${n + random.below(4)}¦` +
      `content-length: ${Math.max(0, n - random.below(4))}¦content-length: 99999999999999999999¦` +
      `content-length: 18446744073709551617¦transfer-encoding: gzip, chunked¦transfer-encoding: chunked, chunked¦` +
      `transfer-encoding: chunked\r\nTransfer-Encoding: chunked¦transfer-encoding: xchunked¦` +
      `transfer-encoding: \x0bchunked¦transfer-encoding: "chunked"¦transfer-encoding: chunked\xa0¦` +
      `transfer-encoding: identity\r\ncontent-length: ${n}¦transfer-encoding: `,
  );
  return random.one(fields).split('\r\n');
}

const EXTENSIONS = choices(`¦¦¦¦;x¦;x="y z"¦ ;x=1¦\t¦  ¦;\xe9¦;${'x'.repeat(900)}`);
const ODD_SIZES = choices(`¦-1¦+1¦0x1¦g¦1\n¦ 1¦1;\n¦1;\r¦;${'x'.repeat(1_100)}¦fffffffffffffffff¦1 1¦1\0`);
const TRAILERS = choices(
  `¦¦¦x-t: 1\r\n¦content-length: 7\r\nx: y\r\n¦t: ${'t'.repeat(1_030)}\r\n¦no colon\r\n¦x: \n¦` +
    `${'t: u\r\n'.repeat(819)}¦${'t: u\r\n'.repeat(700)}`,
);

function chunksOf(random: Random, body: Buffer): Buffer {
  const parts: Buffer[] = [];
  const biggest = random.one([1, 7, 100, 4_096, 70_000]);
  const isFine = body.length < 100_000 && random.below(20) === 0;
  const step = isFine ? 1 : Math.max(biggest, body.length / 400);
  const oddAt = random.below(8) === 0 ? random.below(6) : -1;
  for (let at = 0, i = 0; at < body.length; i++) {
    const piece = body.subarray(at, (at += random.below(step) + 1));
    const digits = random.one(['', '', '', '0', '000'].map((zeros) => zeros + piece.length.toString(16)));
    const size = i === oddAt ? random.one(ODD_SIZES) : random.one([digits, digits.toUpperCase()]);
    const gap = i === oddAt ? random.one(['\r\n', '\n', '', '\r', 'x\r\n', '\r\r\n']) : '\r\n';
    parts.push(Buffer.from(`${size}${random.one(EXTENSIONS)}\r\n`, 'latin1'), piece, Buffer.from(gap));
  }
  const last = random.below(20) === 0 ? random.one(ODD_SIZES) : random.one(['0', '0', '0', '000', '0;last']);
  parts.push(Buffer.from(`${last}\r\n${random.one(TRAILERS)}\r\n`));
  return Buffer.concat(parts);
}

/** Bytes that follow a reply, or come while the connection is idle. */
export function surplusOf(random: Random): Buffer {
  const texts = ['\r\n', '\n', '\0', 'x', '{}', 'HTTP/1.1 ', 'HTTP/1.1 100 Continue\r\n\r\n', '0\r\n\r\n'];
  return random.below(3) === 0 ? plainReply(Buffer.from('"of no request"')) : Buffer.from(random.one(texts));
}

/** A byte changed, left out, put in or repeated, more often in the head. */
function mutated(random: Random, wire: Buffer): Buffer {
  const at = random.below(random.below(3) > 0 ? Math.min(wire.length, 200) : wire.length + 1);
  const byte = Buffer.from([random.one([0, 9, 10, 13, 32, 44, 48, 57, 58, 0x80, 0xa0, random.below(256)])]);
  const [before, after] = [wire.subarray(0, at), wire.subarray(at)];
  switch (random.below(4)) {
    case 0:
      return Buffer.concat([before, byte, after]);
    case 1:
      return Buffer.concat([before, byte, after.subarray(1)]);
    case 2:
      return Buffer.concat([before, after.subarray(random.below(4) + 1)]);
    default:
      return Buffer.concat([before, after.subarray(0, random.below(40)), after]);
  }
}

/** Reads a whole reply with all that follows it, slowly and strictly. */
export function expectedOf(wire: Buffer, end: Case['end']): Expected {
  const nothing = {
    kind: 'broken',
    status: 0,
    headers: new Map(),
    body: Buffer.alloc(0),
    reuse: false,
  } as const;
  const refused: Expected = { ...nothing, either: true };
  let rest = wire.toString('latin1');
  for (let interimBytes = 0; ;) {
    const length = rest.indexOf('\r\n\r\n');
    if (length === -1 || length > HEAD_BYTES_MAX) return refused;
    const [first = '', ...lines] = rest.slice(0, length).split('\r\n');
    const [, version, status = ''] = /^HTTP\/1\.([01]) ([1-9][0-9][0-9])( .*)?$/s.exec(first) ?? [];
    if (version === undefined || /[\0\r\n]/.test(first + lines.join(''))) return refused;
    const fields = lines.map((line) => /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*$/s.exec(line));
    const headers = new Map<string, string>();
    for (const field of fields) {
      const [, name = '', value = ''] = field ?? [];
      if (name === '') return refused;
      const known = headers.get(name.toLowerCase());
      headers.set(name.toLowerCase(), known === undefined ? value : `${known}, ${value}`);
    }
    rest = rest.slice(length + 4);
    if (status === '101') return refused;
    if (status.startsWith('1')) {
      interimBytes += length + 4;
      if (interimBytes > HEAD_BYTES_MAX) return refused;
      continue;
    }
    const body = bodyExpected(Number(status), headers, version === '1', rest, end);
    return { status: Number(status), headers, ...body, either: body.either || end === 'reset' };
  }
}

type BodyExpected = Omit<Expected, 'status' | 'headers'>;

/** RFC 9112 6.3, 7.1 and 9.3. */
function bodyExpected(
  status: number,
  headers: Expected['headers'],
  is11: boolean,
  rest: string,
  end: Case['end'],
): BodyExpected {
  const complete = (text: string, used: number, either = false): BodyExpected => {
    const options = (headers.get('connection') ?? '').toLowerCase().split(/[ \t]*,[ \t]*/);
    const persists = !options.includes('close') && (is11 || options.includes('keep-alive'));
    return { kind: 'complete', body: bytesOf(text), reuse: persists && used === rest.length, either };
  };
  const broken = (text: string): BodyExpected => ({
    kind: 'broken',
    body: bytesOf(text),
    reuse: false,
    either: true,
  });
  const [coding, length] = [headers.get('transfer-encoding'), headers.get('content-length')];
  if (status === 204 || status === 304) return complete('', 0);
  if (coding !== undefined) {
    if (coding.toLowerCase() !== 'chunked' || length !== undefined || !is11) return broken('');
    return chunksExpected(rest, complete, broken);
  }
  if (length !== undefined) {
    const values = length.split(/[ \t]*,[ \t]*/);
    const n = values[0] ?? '';
    if (!/^[0-9]+$/.test(n) || values.some((value) => value !== n)) return broken('');
    if (Number(n) > rest.length) return broken(rest);
    return complete(rest.slice(0, Number(n)), Number(n), values.length > 1 || n.length > 15);
  }
  // Only a clean end is an end; and nothing follows it.
  if (end !== 'fin') return broken(rest);
  return { ...complete(rest, rest.length), reuse: false };
}

function chunksExpected(
  rest: string,
  complete: (text: string, used: number, either: boolean) => BodyExpected,
  broken: (text: string) => BodyExpected,
): BodyExpected {
  let [text, at, either] = ['', 0, false];
  for (;;) {
    const line = /^([0-9a-fA-F]+)([ \t]*)(;[^\r\n]*)?\r\n/.exec(rest.slice(at, at + 1_200));
    if (line === null || line[0].length > 1_024) return broken(text);
    const size = Number.parseInt(line[1] ?? '', 16);
    either ||= (line[1] ?? '').length > 12 || (line[2] !== '' && line[3] === undefined);
    at += line[0].length;
    if (size === 0) break;
    text += rest.slice(at, at + size);
    if (rest.slice(at + size, at + size + 2) !== '\r\n') return broken(text);
    at += size + 2;
  }
  for (let trailerBytes = 0; ;) {
    const feed = rest.indexOf('\n', at);
    const line = feed === -1 ? '' : rest.slice(at, feed + 1);
    if (!line.endsWith('\r\n') || line.length > 1_024) return broken(text);
    at += line.length;
    if (line === '\r\n') return complete(text, at, either);
    // What a trailer is named is nobody's: it is read past.
    if (!/^[^\s:]+:[^\r]*\r\n$/.test(line)) either = true;
    if ((trailerBytes += line.length) > 4_096) return broken(text);
  }
}

function bytesOf(text: string): Buffer {
  return Buffer.from(text, 'latin1');
}

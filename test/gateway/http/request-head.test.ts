import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { readRequestHead, type RequestHead } from '../../../gateway/http/request-head.ts';
import { BodyDecoder } from '../../../gateway/http/body-decoder.ts';

const bytesOf = (text: string) => Buffer.from(text, 'latin1');
const post = (...lines: string[]) => ['POST / HTTP/1.1', 'host: a', ...lines].join('\r\n') + '\r\n\r\n';
const request = (line: string) => `${line}\r\nhost: a\r\n\r\n`;
const longOf = (bytes: number) => post(`x: ${'a'.repeat(bytes - post('x: ').length + 4)}`);
const LENGTH = 'content-length: 2';
const CHUNKED = 'transfer-encoding: chunked';

function headOf(text: string): RequestHead {
  const read = readRequestHead(bytesOf(text));
  if (read.kind !== 'head') throw new Error(JSON.stringify(read));
  return read.head;
}

test.each<[string, number | 'chunked', boolean]>([
  [post(), 0, true],
  [`\r\n${post(LENGTH)}`, 2, true],
  [post(...Array<string>(199).fill('x: a')), 0, true],
  [post('Content-Length:\t02 \t', 'CONTENT-LENGTH:02'), 2, true],
  [post('Transfer-Encoding:\tChunked \t'), 'chunked', true],
  [post('content_length: 9', 'x: \t\x80\xff'), 0, true],
  [request('OPTIONS * HTTP/1.1'), 0, true],
  ['GET / HTTP/1.1\r\nhost: [::1]:8899\r\n\r\n', 0, true],
  ['GET / HTTP/1.1\r\nhost: a_b.example:\r\n\r\n', 0, true],
  [request('GET http://[::1]:80?a HTTP/1.1'), 0, true],
  [post('connection: x, Close'), 0, false],
  [post('connection: keep-alive', 'connection: close'), 0, false],
  [post('connection: closed'), 0, true],
  ['POST / HTTP/1.0\r\n\r\n', 0, false],
  ['POST / HTTP/1.0\r\nconnection: x , Keep-Alive\r\n\r\n', 0, true],
  ['POST / HTTP/1.0\r\nconnection: keep-alive, close\r\n\r\n', 0, false],
  [request('GET HTTPS://a?b HTTP/1.1'), 0, true],
  [request('OPTIONS //a/../%00?\\"< HTTP/1.1'), 0, true],
])('the body of %j is of %p bytes, and its connection goes on: %p', (text, framing, keepsAlive) => {
  const head = headOf(text);
  expect([head.framing, head.keepsAlive]).toEqual([framing, keepsAlive]);
});

test.each([
  ['100-Continue', true],
  ['100-continue-not', false],
  ['a', false],
])('who expects %j waits for a 100: %p', (value, expected) => {
  expect(headOf(post(`Expect: ${value}`)).expectsContinue).toBe(expected);
});

test('a head is as long as it may be wherever it is split, and not a byte longer', () => {
  const [longest, tooLong] = [bytesOf(longOf(16_384)), bytesOf(longOf(16_385))];
  for (let cut = 1; cut <= 5; cut++) expect(readRequestHead(longest.subarray(0, -cut)).kind).toBe('more');
  expect([readRequestHead(longest).kind, readRequestHead(tooLong).kind]).toEqual(['head', 'bad']);
  expect(readRequestHead(bytesOf('a'.repeat(16_388)))).toEqual({ kind: 'bad', status: 431 });
});

const NAME = "!#$%&'*+.^_`|~-09azAZ";
const nameOf = (maxLength: number) => fc.string({ unit: fc.constantFrom(...NAME), minLength: 1, maxLength });
/** All but control characters; the space around it is not its own. */
const value = fc
  .uint8Array({ maxLength: 20 })
  .map((bytes) => Buffer.from(bytes.filter((c) => c === 9 || (c >= 32 && c !== 127))).toString('latin1'))
  .map((text) => text.replace(/^[ \t]+|[ \t]+$/g, ''));
const blank = fc.constantFrom('', ' ', '\t', ' \t ');
const field = fc.record({ name: nameOf(18).map((name) => `x${name}`), value, before: blank, after: blank });
const generated = fc.record({
  method: fc.oneof(fc.constantFrom('POST', 'GET', 'POSTS'), nameOf(8)),
  target: fc
    .string({ unit: fc.integer({ min: 0x21, max: 0x7e }).map((c) => String.fromCharCode(c)), maxLength: 30 })
    .map((text) => `/${text.replaceAll('#', '')}`),
  fields: fc.array(field, { maxLength: 8 }),
  chunks: fc.option(
    fc.array(fc.record({ data: fc.uint8Array({ minLength: 1, maxLength: 40 }), noise: fc.nat(3) })),
  ),
  cuts: fc.array(fc.nat(2_000), { maxLength: 6 }),
});
const NOISE = ['', ';a', '\t;a="b"', ' ; c = d;e'];

test('a head, and chunks behind it, are read as they were meant, however noisy and wherever cut', () => {
  const property = fc.property(generated, ({ method, target, fields, chunks, cuts }) => {
    const lines = fields.map(({ name, value: text, before, after }) => `${name}:${before}${text}${after}`);
    const [body, coding] = chunks === null ? ['', []] : [`${textOf(chunks)}0\r\n\r\n`, [CHUNKED]];
    const head = [`${method} ${target} HTTP/1.1`, ...lines, 'Host: a', ...coding].join('\r\n') + '\r\n\r\n';
    const wire = bytesOf(`${head}${body}GET /`);
    for (let end = 0; end < head.length; end++)
      expect(readRequestHead(wire.subarray(0, end))).toEqual({ kind: 'more' });
    const read = readRequestHead(wire);
    if (read.kind !== 'head') throw new Error(JSON.stringify(read));
    expect(read.end).toBe(head.length);
    expect([read.head.method, read.head.target]).toEqual([method, target]);
    for (const { name } of fields.filter((each) => /^[a-z\d-]+$/i.test(each.name))) {
      const values = fields.filter((each) => each.name.toLowerCase() === name.toLowerCase());
      expect(read.head.get(name.toLowerCase())).toBe(values.map((each) => each.value).join(', '));
    }
    expect([read.head.has('y'), read.head.framing]).toEqual([false, chunks === null ? 0 : 'chunked']);
    if (chunks === null) return;
    const decoder = new BodyDecoder('chunked', true);
    const at = cuts.map((cut) => Math.min(read.end + cut, wire.length)).toSorted((a, b) => a - b);
    const pieces = [...at, wire.length].map((end, i) =>
      Buffer.from(decoder.push(Buffer.from(wire.subarray(at[i - 1] ?? read.end, end)))),
    );
    expect(Buffer.concat(pieces)).toEqual(Buffer.concat(chunks.map(({ data }) => data)));
    expect(['end', 'surplus']).toContain(decoder.state);
  });
  fc.assert(property, { numRuns: 300 });

  function textOf(chunks: readonly Readonly<{ data: Uint8Array; noise: number }>[]): string {
    const text = chunks.map(({ data, noise }) => {
      const size = data.length.toString(16).padStart(noise, '0');
      return `${size}${NOISE[noise] ?? ''}\r\n${Buffer.from(data).toString('latin1')}\r\n`;
    });
    return text.join('');
  }
});

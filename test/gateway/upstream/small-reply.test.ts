import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { isSmallReply, readHead, small } from '../../../gateway/upstream/http-parser.ts';

const BODY = '{"a":1}';

/** The body that `isSmallReply` finds; `undefined` when it leaves the bytes to `readHead`. */
function smallBody(bytes: Buffer): string | undefined {
  return isSmallReply(bytes) ? bytes.toString('latin1', small.start, small.end) : undefined;
}

/** What it accepts must be one whole reply to `readHead`, with the same body, on a connection that stays open. */
function agrees(bytes: Buffer): boolean {
  const body = smallBody(bytes);
  if (body === undefined) return false;
  const read = readHead(bytes);
  if (read.kind !== 'head') throw new Error(`readHead says ${JSON.stringify(read)}`);
  const { head, end } = read;
  expect(head.status).toBe(200);
  expect(head.reusable).toBe(true);
  expect(head.framing).toEqual({ kind: 'length', bytes: body.length });
  expect(head.headers.has('content-encoding')).toBe(false);
  expect(head.headers.get('content-type')?.toLowerCase()).toStartWith('application/json');
  expect(bytes.toString('latin1', end)).toBe(body);
  return true;
}

const replyOf = (lines: readonly string[], body = BODY) =>
  Buffer.from(`HTTP/1.1 200 OK\r\n${lines.map((line) => `${line}\r\n`).join('')}\r\n${body}`, 'latin1');
const LENGTH = `content-length: ${BODY.length}`;
const TYPE = 'content-type: application/json; charset=utf-8';

test.each([
  [[TYPE, LENGTH]],
  [[LENGTH, TYPE]],
  [['Content-Type:application/json', `CONTENT-LENGTH:\t${BODY.length}`]],
  [['date: Sun, 22 Nov 2026 13:38:05 GMT', TYPE, LENGTH, 'Connection: Keep-Alive', 'x-empty:']],
])('a small reply is known with %j', (lines) => {
  expect(smallBody(replyOf(lines))).toBe(BODY);
  agrees(replyOf(lines));
});

test.each([
  [[LENGTH]],
  [[TYPE]],
  [['content-type: text/html', LENGTH]],
  [[TYPE, LENGTH, LENGTH]],
  [[TYPE, TYPE, LENGTH]],
  [[TYPE, `content-length: ${BODY.length}, ${BODY.length}`]],
  [[TYPE, `content-length: +${BODY.length}`]],
  [[TYPE, `content-length: 0x${BODY.length}`]],
  [[TYPE, 'content-length: -1']],
  [[TYPE, 'content-length:']],
  [[TYPE, `content-length: 0000000000${BODY.length}`]],
  [[TYPE, `content-length: ${BODY.length + 1}`]],
  [[TYPE, `content-length: ${BODY.length - 1}`]],
  [[TYPE, `content-length : ${BODY.length}`]],
  [[TYPE, LENGTH, 'transfer-encoding: chunked']],
  [[TYPE, LENGTH, 'content-encoding: gzip']],
  [[TYPE, LENGTH, 'connection: close']],
  [[TYPE, LENGTH, 'connection: keep-alive, close']],
  [[TYPE, LENGTH, ' folded']],
  [[TYPE, LENGTH, 'no colon']],
  [[TYPE, LENGTH, ': no name']],
  [[TYPE, LENGTH, 'x\0y: z']],
])('is left to readHead with %j', (lines) => {
  expect(smallBody(replyOf(lines))).toBeUndefined();
});

test.each([
  'HTTP/1.0 200 OK',
  'HTTP/1.1 201 Created',
  'HTTP/1.1 100 Continue',
  'HTTP/1.1 204 No Content',
  'HTTP/1.1 2000 OK',
  'HTTP/2 200 OK',
  ' HTTP/1.1 200 OK',
])('is left to readHead behind %j', (line) => {
  expect(smallBody(Buffer.from(`${line}\r\n${TYPE}\r\n${LENGTH}\r\n\r\n${BODY}`))).toBeUndefined();
});

test('a reply is small only in one piece: cut anywhere, or with more behind it, it is left to readHead', () => {
  const whole = replyOf([TYPE, LENGTH]);
  for (let end = 0; end < whole.length; end++) expect(smallBody(whole.subarray(0, end))).toBeUndefined();
  for (const more of ['\n', ' ', 'HTTP/1.1 200 OK\r\n'])
    expect(smallBody(Buffer.concat([whole, Buffer.from(more)]))).toBeUndefined();
});

test('whatever it accepts, readHead reads to the same body', () => {
  const name = fc.constantFrom(
    'content-length',
    'Content-Type',
    'connection',
    'Transfer-Encoding',
    'content-encoding',
    'x-y',
    'a b',
    '',
    'X\0',
  );
  const value = fc.constantFrom(
    '7',
    '07',
    '7 ',
    '7, 7',
    '7\t',
    'application/json',
    'Application/JSON;x',
    'keep-alive',
    'close',
    'chunked',
    'identity',
    '',
    '\n',
    '\r',
    '\x80',
  );
  const line = fc.oneof(
    { weight: 2, arbitrary: fc.constantFrom(LENGTH, TYPE, 'connection: keep-alive', 'date: x') },
    fc.tuple(name, fc.constantFrom(':', ': ', ' :', ':\t', ''), value).map((parts) => parts.join('')),
  );
  const mutation = fc.option(fc.tuple(fc.nat(), fc.constantFrom(0x0d, 0x0a, 0x20, 0x3a, 0x00, 0x37, 0xff)), {
    nil: undefined,
  });
  const others = fc.array(line, { maxLength: 3 });
  const lines = fc.oneof(
    others,
    others.chain((some) => fc.shuffledSubarray([LENGTH, TYPE, ...some], { minLength: 2 })),
  );
  let accepted = 0;
  fc.assert(
    fc.property(
      lines,
      fc.constantFrom(BODY, BODY, BODY, '', '{"b":22}', `${BODY}\r\n`),
      mutation,
      (lines, body, change) => {
        const bytes = replyOf(lines, body);
        if (change !== undefined) bytes[change[0] % bytes.length] = change[1];
        if (agrees(bytes)) accepted++;
      },
    ),
    { numRuns: 20_000 },
  );
  // The property says nothing when hardly any reply is accepted.
  expect(accepted).toBeGreaterThan(400);
});

test('whatever bytes come, it neither throws nor accepts what readHead would refuse', () => {
  const start = Buffer.from(`HTTP/1.1 200 OK\r\n${TYPE}\r\n`);
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), fc.boolean(), (bytes, isBehind) => {
      agrees(isBehind ? Buffer.concat([start, bytes]) : Buffer.from(bytes));
    }),
    { numRuns: 3_000 },
  );
});

test('a head that is too long for readHead is left to it', () => {
  const [fits, isTooLong] = [32_000, 33_000].map((length) =>
    isSmallReply(replyOf([TYPE, LENGTH, `x: ${'y'.repeat(length)}`])),
  );
  expect([fits, isTooLong]).toEqual([true, false]);
});

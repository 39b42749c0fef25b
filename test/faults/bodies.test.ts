import { describe, expect, test } from 'bun:test';
import { openCaller } from '../fakes/raw-caller.ts';
import { callText, errorText, pair } from './pair.ts';

const CALL = callText(1, 'getSlot');
const LIMIT = 100_000;
const refused = (message: string) => errorText(-32600, message);

const { gateway } = await pair({ gateway: { max_body_bytes: LIMIT } });

/** One request over a bare socket with these head lines and this body as it is; gives what came back. */
async function ask(head: string, body: string | Uint8Array): Promise<string> {
  using caller = await openCaller(gateway.url);
  caller.send(`POST / HTTP/1.1\r\nhost: a\r\nx-token: ${gateway.key()}\r\n${head}\r\n`);
  caller.send(body);
  return await caller.until('}'); // awaited here, so that the caller is there until then
}

const JSON_TYPE = 'content-type: application/json\r\n';
const lengthOf = (body: string | Uint8Array) => `content-length: ${Buffer.byteLength(body)}\r\n`;

describe('F4 content types', () => {
  test.each([
    'application/json',
    'application/json; charset=utf-8',
    'application/json;charset=UTF-8',
    'APPLICATION/JSON',
    'application/json ; x=y',
  ])('F4 %s is accepted', async (type) => {
    expect(await ask(`content-type: ${type}\r\n${lengthOf(CALL)}`, CALL)).toStartWith('HTTP/1.1 200 ');
  });

  test.each([
    ['none', ''],
    ['an empty one', 'content-type: \r\n'],
    ['text/plain', 'content-type: text/plain\r\n'],
    ['application/json-rpc', 'content-type: application/json-rpc\r\n'],
    ['application/jsonp', 'content-type: application/jsonp\r\n'],
    ['a form', 'content-type: application/x-www-form-urlencoded\r\n'],
    ['two, JSON second', 'content-type: text/plain\r\ncontent-type: application/json\r\n'],
  ])(
    'F4 %s is refused with 415, so that no page can send it without a preflight (§2.5 415)',
    async (_name, head) => {
      const text = await ask(`${head}${lengthOf(CALL)}`, CALL);
      expect(text).toStartWith('HTTP/1.1 415 ');
      expect(text).toEndWith(refused('Content-Type must be application/json'));
    },
  );
});

describe('F5 the limit of a body', () => {
  const bomb = Bun.gzipSync(Buffer.alloc(10 << 20, 0x20));
  test.each(['gzip', 'deflate', 'br', 'zstd', 'gzip, gzip', 'x-unknown'])(
    'F5 a body in %s is refused without being unpacked',
    async (encoding) => {
      const text = await ask(`${JSON_TYPE}content-encoding: ${encoding}\r\n${lengthOf(bomb)}`, bomb);
      expect(text).toStartWith('HTTP/1.1 415 ');
      expect(text).toEndWith(refused('A compressed request body is not accepted'));
    },
  );

  const padded = (bytes: number) => `${CALL}${' '.repeat(bytes - CALL.length)}`;
  const chunked = (body: string) =>
    `${(body.length / 2).toString(16)}\r\n${body.slice(0, body.length / 2)}\r\n`.concat(
      `${(body.length / 2).toString(16)}\r\n${body.slice(body.length / 2)}\r\n0\r\n\r\n`,
    );
  test('F5 a body of exactly the limit passes, with a length and in chunks', async () => {
    const body = padded(LIMIT);
    expect(await ask(`${JSON_TYPE}${lengthOf(body)}`, body)).toStartWith('HTTP/1.1 200 ');
    expect(await ask(`${JSON_TYPE}transfer-encoding: chunked\r\n`, chunked(body))).toStartWith(
      'HTTP/1.1 200 ',
    );
  });

  test('F5 a longer one is a 413, with a length and in chunks (§2.5 413, §6 request body)', async () => {
    const body = padded(LIMIT + 2);
    for (const [head, bytes] of [
      [lengthOf(body), body],
      ['transfer-encoding: chunked\r\n', chunked(body)],
    ] as const) {
      const text = await ask(`${JSON_TYPE}${head}`, bytes);
      expect(text).toStartWith('HTTP/1.1 413 ');
      expect(text).toEndWith(refused('Request body too large'));
    }
  });
});

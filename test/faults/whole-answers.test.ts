import { describe, expect, test } from 'bun:test';
import { CHUNKED, chunk, ECHOED_ID, plain } from '../fakes/raw-backend.ts';
import { callText, errorText, lostText, rawPair, resultText } from './pair.ts';

const { backend, gateway } = await rawPair();

/** What the backend got, and under which id. */
let [sent, sentId] = ['', ''];

/** Status and text of the answer to a call whose backend sends `reply`. */
async function answerTo(reply: string | Uint8Array, body: unknown = callText(1, 'getSlot'), headers = {}) {
  backend.script((exchange) => {
    sent = exchange.text;
    sentId = exchange.id;
    return exchange.send(reply);
  });
  const answer = await gateway.post(body, gateway.key(), { headers });
  return [answer.status, await answer.text()];
}
const inChunks = (body: string) => `${CHUNKED}${chunk(body)}0\r\n\r\n`;

describe('B11 an array is no answer to a call, and is not passed on as one', () => {
  test.each(['[]', '[{"jsonrpc":"2.0","result":1,"id":1}]', ' \n[1]'])('B11 %j', async (body) => {
    for (const reply of [plain(body), inChunks(body), plain(body, 'connection: close\r\n')]) {
      expect(await answerTo(reply)).toEqual([503, lostText()]);
      expect(await answerTo(reply, `[${callText(1, 'getSlot')}]`)).toEqual([200, `[${lostText()}]`]);
    }
  });
});

const FOREIGN = [
  '{"jsonrpc":"2.0","result":666,"id":2}',
  '{"jsonrpc":"2.0","error":{"code":-32602,"message":"666"},"id":2}',
  '{"id":2,"jsonrpc":"2.0","result":null}',
  '{"jsonrpc":"2.0","id":2,"result":666,"id":1}',
];

describe('B11 an answer to another call is not passed on', () => {
  test.each(FOREIGN)('B11 held: %s', async (body) => {
    const encoded = Buffer.from(Bun.gzipSync(body));
    const head = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\n`;
    const compressed = Buffer.concat([
      Buffer.from(`${head}content-length: ${encoded.length}\r\n\r\n`),
      encoded,
    ]);
    for (const reply of [plain(body), inChunks(body), compressed])
      for (const method of ['getSlot', 'getBlock'])
        expect(await answerTo(reply, callText(1, method))).toEqual([503, lostText()]);
  });

  test.each([
    '{"jsonrpc":"2.0","id":2,"result":"LONG"}',
    '{"jsonrpc":"2.0","result":"LONG","id":2}',
    '{"id":1,"result":"LONG"}{"id":2,"result":"LONG"}',
  ])('B11 streamed: %s', async (short) => {
    const body = short.replaceAll('LONG', 'x'.repeat(400_000));
    // Refused at its first bytes, or cut.
    for (const reply of [plain(body), inChunks(body)])
      expect(await answerTo(reply).catch(() => [503, lostText()])).toEqual([503, lostText()]);
  });

  test.each([
    '"id"',
    '"\\u0069d"',
    '"\\u0041"',
    '18446744073709551615',
    'null',
    '"\u00e9 \\" b"',
    `"${'\\u00e9'.repeat(6_000)}"`,
  ])(
    'B11 the id %s is never sent, and comes back byte for byte with answers of any form and length, whatever they say',
    async (id) => {
      for (const value of ['7', '"id"', id, `[{"id":${id}}]`, `["id","${'x'.repeat(100_000)}"]`])
        for (const bodyOf of [
          (own: string) => resultText(value, own),
          (own: string) => `{"id":${own},"result":${value}}`,
          (own: string) => `{"jsonrpc":"2.0","id":${own},"result":${value}}\n`,
        ])
          for (const framed of [plain, inChunks]) {
            const reply = framed(bodyOf(ECHOED_ID));
            const answer = await answerTo(reply, callText(id, 'getSlot'));
            expect([answer[0], answer[1] === bodyOf(id), sent.includes(`"id":${id}`)]).toEqual([
              200,
              true,
              false,
            ]);
          }
    },
  );

  test("B11 and an error of a node that could not read the id gets the caller's", async () => {
    const body = errorText(-32700, 'Parse error');
    expect(await answerTo(plain(body))).toEqual([200, errorText(-32700, 'Parse error', 1)]);
    expect(await answerTo(plain(body.replace(',"id":null', '')))).toEqual([
      200,
      errorText(-32700, 'Parse error', 1),
    ]);
  });

  test("B11 an error that echoes the request and data with our shape of id leave the answer's own id alone", async () => {
    for (const data of [
      '"\\"id\\":\\"7AJQ2MZXW4KBTNVC\\""',
      '{"id":"7AJQ2MZXW4KBTNVC"}',
      `{"id":${ECHOED_ID}}`,
    ]) {
      const bodyOf = (id: string) =>
        `{"jsonrpc":"2.0","error":{"code":-32602,"message":"m","data":${data}},"id":${id}}`;
      const [status, text] = await answerTo(plain(bodyOf(ECHOED_ID)));
      const shown = data.replace(ECHOED_ID, sentId);
      expect([status, text]).toEqual([200, bodyOf('1').replace(data, shown)]);
    }
  });
});

test.each(['toString', '__proto__', 'gzip, br', 'br', 'gzip\tx'])(
  'A11 an answer of the coding %j is a failure of its backend',
  async (coding) => {
    const reply = plain(resultText(1), `content-encoding: ${coding}\r\n`);
    expect(await answerTo(reply, undefined, { 'accept-encoding': '*' })).toEqual([503, lostText()]);
  },
);

test('F6 a head above 32 KB is refused, also when it comes in one piece', async () => {
  expect(await answerTo(plain(resultText(1), `x-a: ${'a'.repeat(40_000)}\r\n`))).toEqual([503, lostText()]);
});

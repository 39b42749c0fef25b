import { describe, expect, test } from 'bun:test';
import { CHUNKED, chunk, plain, startRawBackend } from '../fakes/raw-backend.ts';
import { startGateway } from '../started/gateway.ts';
import { shared } from '../started/shared.ts';

const CALL = { jsonrpc: '2.0', id: 1, method: 'getSlot' };
const LOST = '{"jsonrpc":"2.0","error":{"code":-503,"message":"No backend available"},"id":1}';

const backend = shared(startRawBackend(() => undefined));
const gateway = shared(await startGateway({ backends: [{ name: 'a', url: backend.url }] }));

describe('B11 an array is no answer to a call, and is not passed on as one', () => {
  test.each(['[]', '[{"jsonrpc":"2.0","result":1,"id":1}]', ' \n[1]'])('B11 %j', async (body) => {
    for (const reply of [
      plain(body),
      `${CHUNKED}${chunk(body)}0\r\n\r\n`,
      plain(body, 'connection: close\r\n'),
    ]) {
      backend.script((exchange) => exchange.send(reply));
      const answer = await gateway.post(CALL, gateway.key());
      expect([answer.status, await answer.text()]).toEqual([503, LOST]);
      expect(await (await gateway.post([CALL], gateway.key())).text()).toBe(`[${LOST}]`);
    }
  });
});

const FOREIGN = [
  '{"jsonrpc":"2.0","result":666,"id":2}',
  '{"jsonrpc":"2.0","id":2,"result":666}',
  '{"jsonrpc":"2.0","result":666,"id":"1"}',
  '{"jsonrpc":"2.0","result":666,"id":null}',
  '{"jsonrpc":"2.0","error":{"code":-32602,"message":"666"},"id":2}',
  '{"id":2,"jsonrpc":"2.0","result":null}',
  '{"jsonrpc":"2.0","result":666,"id":2,"id":1}',
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
    for (const reply of [plain(body), `${CHUNKED}${chunk(body)}0\r\n\r\n`, compressed]) {
      backend.script((exchange) => exchange.send(reply));
      for (const method of ['getSlot', 'getBlock']) {
        const answer = await gateway.post({ ...CALL, method }, gateway.key());
        expect([answer.status, await answer.text()]).toEqual([503, LOST]);
      }
    }
  });

  test.each([
    '{"jsonrpc":"2.0","id":2,"result":"LONG"}',
    '{"jsonrpc":"2.0","result":"LONG","id":2}',
    '{"jsonrpc":"2.0","result":"LONG","id":2,"id":1}',
    '{"id":1,"result":"LONG","id":2,"x":"LONG"}',
    '{"result":"LONG","id":2,"x":"LONG"}',
    '{"result":"LONG"}',
    '{"jsonrpc":"2.0","result":"LONG","id":2}\n{"jsonrpc":"2.0","result":"LONG","id":1}',
    '{"jsonrpc":"2.0","result":"LONG"}{"jsonrpc":"2.0","result":"LONG","id":1}',
    '{"id":1,"result":"LONG"}{"id":2,"result":"LONG"}',
  ])('B11 streamed: %s', async (short) => {
    const body = short.replaceAll('LONG', 'x'.repeat(400_000));
    for (const reply of [plain(body), `${CHUNKED}${chunk(body)}0\r\n\r\n`]) {
      backend.script((exchange) => exchange.send(reply));
      const text = gateway.post(CALL, gateway.key()).then((answer) => answer.text());
      // Refused at its first bytes, or cut.
      expect(await text.catch(() => LOST)).toBe(LOST);
    }
  });

  test.each(['"a b"', '1700000000000000001', '"\\u0041"'])(
    'B11 streamed to the id %s in chunks of any beginning',
    async (id) => {
      for (const begin of ['{"jsonrpc":"2.0","result":', '{"jsonrpc": "2.0", "result":']) {
        const body = `${begin}"${'x'.repeat(100_000)}","id":5}`;
        backend.script((exchange) => exchange.send(`${CHUNKED}${chunk(body)}0\r\n\r\n`));
        const call = `{"jsonrpc":"2.0","id":${id},"method":"getSlot"}`;
        const text = gateway.post(call, gateway.key()).then((answer) => answer.text());
        // Cut, or refused when it came in one read.
        expect(['cut', LOST.replace('"id":1', `"id":${id}`)]).toContain(await text.catch(() => 'cut'));
      }
    },
  );

  test.each([
    ['"\\u0041"', '"A"'],
    ['18446744073709551615', '18446744073709551615'],
    ['"a"', '"a"'],
    ['"\u00e9 b"', '"\u00e9 b"'],
  ])('B11 but an id %s that a node writes as %s is the same', async (id, written) => {
    for (const value of ['7', `"${'x'.repeat(100_000)}"`])
      for (const body of [
        `{"jsonrpc":"2.0","result":${value},"id":${written}}`,
        `{"id":${written},"result":${value}}`,
      ]) {
        backend.script((exchange) => exchange.send(plain(body)));
        const answer = await gateway.post(`{"jsonrpc":"2.0","id":${id},"method":"getSlot"}`, gateway.key());
        expect([answer.status, await answer.text()]).toEqual([200, body]);
      }
  });

  test('B11 and an error of a node that could not read the id is the answer', async () => {
    const body = '{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"},"id":null}';
    backend.script((exchange) => exchange.send(plain(body)));
    expect(await (await gateway.post(CALL, gateway.key())).text()).toBe(body);
  });
});

test.each(['toString', '__proto__', 'gzip, br', 'x-gzip', 'gzip\tx'])(
  'A11 an answer of the coding %j is a failure of its backend',
  async (coding) => {
    const body = '{"jsonrpc":"2.0","result":1,"id":1}';
    backend.script((exchange) => exchange.send(plain(body, `content-encoding: ${coding}\r\n`)));
    const answer = await gateway.post(CALL, gateway.key(), { headers: { 'accept-encoding': '*' } });
    expect([answer.status, await answer.text()]).toEqual([503, LOST]);
  },
);

test('F6 a head above 32 KB is refused, also when it comes in one piece', async () => {
  const body = '{"jsonrpc":"2.0","result":1,"id":1}';
  backend.script((exchange) => exchange.send(plain(body, `x-a: ${'a'.repeat(40_000)}\r\n`)));
  expect((await gateway.post(CALL, gateway.key())).status).toBe(503);
});

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { CHUNKED, chunk, plain, startRawBackend } from '../fakes/raw-backend.ts';
import { startGateway } from '../started/gateway.ts';

const CALL = { jsonrpc: '2.0', id: 1, method: 'getSlot' };
const LOST = '{"jsonrpc":"2.0","error":{"code":-503,"message":"No backend available"},"id":1}';

let backend: ReturnType<typeof startRawBackend>;
let gateway: Awaited<ReturnType<typeof startGateway>>;
beforeAll(async () => {
  backend = startRawBackend(() => undefined);
  gateway = await startGateway({ backends: [{ name: 'a', url: backend.url }] });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  backend[Symbol.dispose]();
});

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

test('F6 a head above 32 KB is refused, also when it comes in one piece', async () => {
  const body = '{"jsonrpc":"2.0","result":1,"id":1}';
  backend.script((exchange) => exchange.send(plain(body, `x-a: ${'a'.repeat(40_000)}\r\n`)));
  expect((await gateway.post(CALL, gateway.key())).status).toBe(503);
});

import { expect, test } from 'bun:test';
import { openCaller } from './raw-caller.ts';
import { CHUNKED, chunk, plain, refusedUrl, startRawBackend } from './raw-backend.ts';

const REQUEST = 'POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{}';

/** What comes back for one request until the connection ends. */
async function raw(url: string): Promise<string> {
  using caller = await openCaller(new URL(url));
  caller.send(REQUEST);
  await caller.ended;
  return caller.text();
}

test('the raw backend sees the whole request and writes exactly the bytes of its script', async () => {
  using backend = startRawBackend(async (exchange) => {
    expect(exchange.text).toBe(REQUEST);
    await exchange.send(`${CHUNKED}${chunk('e')}`);
    exchange.end();
  });
  expect(await raw(backend.url)).toBe(`${CHUNKED}1\r\ne\r\n`);
  expect([backend.calls(), backend.connections()]).toEqual([1, 1]);
});

test('a plain answer is one that fetch understands, and connections are counted', async () => {
  using backend = startRawBackend((exchange) => exchange.send(plain(`"${exchange.nth}"`)));
  for (const nth of ['1', '2']) {
    expect(await (await fetch(backend.url, { method: 'POST', body: '{}' })).json()).toBe(nth);
  }
  expect([backend.calls(), backend.connections(), backend.open()]).toEqual([2, 1, 1]);
});

test('a reset breaks the connection', async () => {
  using backend = startRawBackend((exchange) => exchange.reset());
  expect(await raw(backend.url)).toBe('');
});

test('nothing listens at a refused address', async () => {
  const code = await fetch(refusedUrl()).catch((error: Error & { code?: string }) => error.code);
  expect(code).toBe('ECONNREFUSED');
});

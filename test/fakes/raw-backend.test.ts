import { expect, test } from 'bun:test';
import { connect } from 'node:net';
import { CHUNKED, chunk, plain, refusedUrl, startRawBackend } from './raw-backend.ts';

const REQUEST = 'POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{}';

/** Sends one request over a bare socket; gives what came back and how it ended. */
function raw(url: string): Promise<{ text: string; ended: string }> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  let text = '';
  socket.on('data', (bytes) => void (text += bytes.toString()));
  socket.write(REQUEST);
  return new Promise((resolve) => {
    socket.on('end', () => resolve({ text, ended: 'end' }));
    socket.on('error', (error: Error & { code?: string }) => resolve({ text, ended: error.code ?? 'error' }));
  });
}

test('the raw backend sees the whole request and writes exactly the bytes of its script', async () => {
  using backend = startRawBackend(async (exchange) => {
    expect(exchange.text).toBe(REQUEST);
    await exchange.send(`${CHUNKED}${chunk('é')}`);
    exchange.end();
  });
  expect(await raw(backend.url)).toEqual({ text: `${CHUNKED}2\r\né\r\n`, ended: 'end' });
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
  expect((await raw(backend.url)).text).toBe('');
});

test('nothing listens at a refused address', async () => {
  expect(await fetch(refusedUrl()).catch((error: Error & { code?: string }) => error.code)).toBe(
    'ECONNREFUSED',
  );
});

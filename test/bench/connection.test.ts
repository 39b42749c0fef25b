import { afterEach, describe, expect, test } from 'bun:test';
import { CallerConnection, headersOf, type Reply, shownUrl, targetOf } from '../../bench/connection.ts';
import { createRpc } from '../../bench/rpc.ts';
import { systemClock } from '../../shared/clock.ts';
import {
  CHUNKED,
  framedChunk as chunk,
  framed as plain,
  type RawExchange,
  startRawBackend,
} from '../fakes/raw-backend.ts';

const open: Disposable[] = [];
afterEach(() => {
  for (const each of open.splice(0)) each[Symbol.dispose]();
});

/** A connection to a backend that answers its calls in turn by the scripts. */
function connect(...scripts: ((exchange: RawExchange) => unknown)[]) {
  const backend = startRawBackend((exchange) => scripts.shift()?.(exchange));
  const endpoint = { url: new URL(backend.url), key: 'k', keyAs: 'x-token' };
  const connection = new CallerConnection(targetOf(endpoint), systemClock, 5_000);
  open.push(backend, { [Symbol.dispose]: () => connection.close() });
  const call = (body: string) => new Promise<Reply>((resolve) => connection.send(body, resolve));
  return { backend, connection, call };
}

const text = (reply: Reply) => (reply.kind === 'reply' ? reply.body.toString() : reply.reason);

describe('a connection of a caller', () => {
  test('calls again over a new connection after a body that ended with its connection', async () => {
    const { connection } = connect(
      (exchange) => exchange.send('HTTP/1.0 200 OK\r\n\r\none').then(() => exchange.end()),
      (exchange) => exchange.send(plain('two')),
    );
    const replies = Promise.withResolvers<string[]>();
    connection.send('{}', (one) => connection.send('{}', (two) => replies.resolve([text(one), text(two)])));
    expect(await replies.promise).toEqual(['one', 'two']);
  });

  test('sends its key and the length in bytes, and carries one call after the other', async () => {
    let request = '';
    const { backend, call } = connect(
      (exchange) => {
        request = exchange.text;
        return exchange.send(plain('one'));
      },
      (exchange) => exchange.send(plain('two')),
    );
    expect([text(await call('{"name":"ä"}')), text(await call('{}'))]).toEqual(['one', 'two']);
    expect(request).toStartWith('POST / HTTP/1.1\r\nhost: 127.0.0.1:');
    expect(request).toContain('\r\nx-token: k\r\n');
    expect(request).toContain('\r\ncontent-length: 13\r\n\r\n');
    expect(backend.connections()).toBe(1);
  });

  test('reads chunks however they are cut, interim heads, and bodies that end with the connection', async () => {
    const wire = `${CHUNKED}${chunk('hel')}${chunk('lo')}0\r\n\r\n`;
    const { backend, call } = connect(
      async (exchange) => {
        for (const byte of wire) await exchange.send(byte);
      },
      (exchange) => exchange.send(`HTTP/1.1 100 Continue\r\n\r\n${plain('two')}`),
      async (exchange) => {
        await exchange.send('HTTP/1.1 200 OK\r\n\r\nthree');
        exchange.end();
      },
      (exchange) => exchange.send(plain('four', 'connection: close\r\n')),
      (exchange) => exchange.send(plain('five')),
    );
    const texts: string[] = [];
    for (let i = 0; i < 5; i++) texts.push(text(await call('{}')));
    expect(texts).toEqual(['hello', 'two', 'three', 'four', 'five']);
    expect(backend.connections()).toBe(3);
  });

  test('counts a long body and keeps how it begins', async () => {
    const { call } = connect(async (exchange) => {
      await exchange.send(CHUNKED);
      for (let i = 0; i < 20; i++) await exchange.send(chunk(String(i % 10).repeat(50_000)));
      await exchange.send('0\r\n\r\n');
    });
    const reply = await call('{}');
    expect(reply).toMatchObject({ kind: 'reply', status: 200, bytes: 1_000_000, isWhole: false });
    expect(text(reply)).toMatch(/^0{1024}$/);
  });

  test('fails a call whose connection breaks, and makes another one for the next', async () => {
    const { call } = connect(
      (exchange) => exchange.reset(),
      (exchange) =>
        exchange.send('HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nab').then(() => exchange.end()),
      (exchange) => exchange.send(`${CHUNKED}x\r\n`),
      (exchange) => exchange.send(plain('four')),
    );
    const texts: string[] = [];
    for (let i = 0; i < 4; i++) texts.push(text(await call('{}')));
    expect(texts).toEqual(['connection closed', 'connection closed', 'its framing is broken', 'four']);
  });

  test.each([
    ['429', '7', 7],
    ['503', '999999', 300],
    ['429', 'Fri, 31 Dec 1999 23:59:59 GMT', 0],
    ['503', 'Fri, 31 Dec 2999 23:59:59 GMT', 300],
    ['429', 'soon', undefined],
    ['500', '7', undefined],
  ])('of a %s with Retry-After %s waits for %p', async (status, value, seconds) => {
    const { call } = connect((exchange) =>
      exchange.send(`HTTP/1.1 ${status} No\r\nRetry-After: ${value}\r\ncontent-length: 0\r\n\r\n`),
    );
    expect(await call('{}')).toMatchObject({ status: Number(status), retryAfter: seconds });
  });
});

describe('a call of a result', () => {
  test.each([
    [plain('{"jsonrpc":"2.0","result":7,"error":null,"id":1}'), { kind: 'result', result: 7 }],
    [
      plain('{"jsonrpc":"2.0","result":null,"id":1}'),
      { kind: 'refused', sentence: '200, not the result of getSlot' },
    ],
    [
      plain(JSON.stringify({ error: { code: -1, message: `\x1b[2J${'x'.repeat(300)}` }, id: 1 })),
      { kind: 'refused', sentence: `200 -1 ?[2J${'x'.repeat(189)}…` },
    ],
    [
      `HTTP/1.1 429 No\r\nretry-after: ${new Date(systemClock.now() + 60_000).toUTCString()}\r\ncontent-length: 0\r\n\r\n`,
      { kind: 'refused', retryAfter: expect.closeTo(55, -1) },
    ],
  ])('%j', async (bytes, expected) => {
    using backend = startRawBackend((exchange) => exchange.send(bytes));
    const endpoint = { url: new URL(backend.url), key: undefined, keyAs: 'x-token', timeoutMs: 5_000 };
    const rpc = createRpc(endpoint, systemClock, new AbortController().signal);
    const isNumber = (value: unknown): value is number => typeof value === 'number';
    expect(await rpc('getSlot', [], isNumber)).toMatchObject(expected);
  });
});

test('a key goes where it is wanted, and a user of the URL into a header', () => {
  const url = new URL('http://node/');
  expect(headersOf({ url, key: undefined, keyAs: 'x-token' })).not.toHaveProperty('x-token');
  expect(headersOf({ url, key: 'k', keyAs: 'x-token' })).toMatchObject({ 'x-token': 'k' });
  expect(headersOf({ url, key: 'k', keyAs: 'Authorization' })).toMatchObject({ Authorization: 'Bearer k' });
  const user = new URL('http://me:p%40ss@node/');
  expect(headersOf({ url: user, key: undefined, keyAs: 'x-token' })).toMatchObject({
    authorization: `Basic ${btoa('me:p@ss')}`,
  });
});

test.each([
  ['http://127.0.0.1:8899', 'http://127.0.0.1:8899'],
  ['https://node.example/?api-key=secret', 'https://node.example?…'],
  ['https://me:secret@node.example/v2/secret', 'https://node.example/…'],
])('what is shown of a URL holds no key', (url, shown) => expect(shownUrl(new URL(url))).toBe(shown));

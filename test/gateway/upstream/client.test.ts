import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import type { MethodClass } from '../../../gateway/methods/table.ts';
import { createHttpClient, type HttpClient } from '../../../gateway/upstream/http-client.ts';
import type { BodyEnd, HttpReply } from '../../../gateway/upstream/http-connection.ts';
import { systemClock } from '../../../shared/clock.ts';
import { createVirtualClock } from '../virtual-clock.ts';
import {
  CHUNKED,
  chunk,
  plain,
  type RawExchange,
  type RawScript,
  startRawBackend,
} from '../../fakes/raw-backend.ts';

let backend: ReturnType<typeof startRawBackend>;
let client: HttpClient;
const never = new AbortController().signal;
beforeEach(() => {
  backend = startRawBackend((exchange) => exchange.send(plain('{"ok":1}')));
  client = clientOf(backend.url);
});
afterEach(() => {
  client.close();
  backend[Symbol.dispose]();
});

function clientOf(
  url: string,
  headers: ReadonlyMap<string, string> = new Map(),
  clock = systemClock,
): HttpClient {
  return createHttpClient({ url: new URL(url), headers, clock, idleMs: 60_000 });
}

const REQUEST = {
  body: Buffer.from('{"q":1}'),
  acceptEncoding: 'identity',
  dueMs: 60_000,
  kind: 'light',
} as const;

const send = (signal = never, kind: MethodClass = 'light') => client.send({ ...REQUEST, kind }, signal);

async function replied(signal = never): Promise<HttpReply> {
  const outcome = await send(signal);
  if (outcome.kind !== 'reply') throw new Error(JSON.stringify(outcome));
  return outcome;
}

async function read({ body }: HttpReply): Promise<BodyEnd & { text: string }> {
  const pieces: Uint8Array[] = [];
  const end = await body.pipe((piece) => void pieces.push(Buffer.from(piece)));
  return { ...end, text: Buffer.concat(pieces).toString() };
}

/** Sends texts as pieces that arrive one by one. */
async function inTurn(exchange: RawExchange, ...texts: readonly string[]): Promise<void> {
  for (const text of texts) {
    await exchange.send(text);
    await Bun.sleep(5); // so that the next one is read by itself
  }
}

async function answered(script: RawScript): Promise<BodyEnd & { text: string }> {
  backend.script(script);
  return read(await replied());
}

describe('requests', () => {
  test('carry the method, the length, the encoding and the headers of the config', async () => {
    const { promise, resolve } = Promise.withResolvers<string>();
    backend.script((exchange) => {
      resolve(exchange.text);
      void exchange.send(plain('{}'));
    });
    client = clientOf(`${backend.url.replace('//', '//us%20er:pa@')}path?x=1`, new Map([['x-a', 'b']]));
    await read(await replied());
    expect(await promise).toBe(
      `POST /path?x=1 HTTP/1.1\r\nhost: ${new URL(backend.url).host}\r\ncontent-type: application/json\r\n` +
        `authorization: Basic ${btoa('us er:pa')}\r\nx-a: b\r\naccept-encoding: identity\r\ncontent-length: 7\r\n\r\n{"q":1}`,
    );
  });

  test('of 8 MB arrive whole', async () => {
    const body = Buffer.alloc(8 << 20, 'x');
    const { promise, resolve } = Promise.withResolvers<number>();
    backend.script((exchange) => {
      resolve(exchange.text.length);
      void exchange.send(plain('{}'));
    });
    await client.send({ body, acceptEncoding: 'identity', dueMs: 60_000, kind: 'light' }, never);
    expect(await promise).toBeGreaterThan(body.length);
  });
});

describe('bodies come out of their framing whole', () => {
  test.each<[string, RawScript, string]>([
    ['a Content-Length', (exchange) => exchange.send(plain('{"a":1}')), '{"a":1}'],
    ['an empty one', (exchange) => exchange.send(plain('')), ''],
    ['chunks', (exchange) => exchange.send(`${CHUNKED}${chunk('{"a"')}${chunk(':1}')}0\r\n\r\n`), '{"a":1}'],
    [
      'chunks with extensions and trailers',
      (exchange) => exchange.send(`${CHUNKED}3;x="y"\r\nabc\r\n0\r\nx-t: 1\r\n\r\n`),
      'abc',
    ],
    [
      'an interim head first',
      (exchange) => exchange.send(`HTTP/1.1 100 Continue\r\n\r\n${plain('{}')}`),
      '{}',
    ],
    [
      'the end of the connection',
      (exchange) => {
        void exchange.send('HTTP/1.1 200 OK\r\n\r\nabc');
        exchange.end();
      },
      'abc',
    ],
  ])('%s', async (_name, script, text) => {
    expect(await answered(script)).toMatchObject({ kind: 'complete', bytes: text.length, text });
  });
});

describe('a body that breaks off is cut, never complete', () => {
  test.each<[string, RawScript, string]>([
    [
      'short of its Content-Length',
      (exchange) => {
        void exchange.send('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc');
        exchange.end();
      },
      'closed',
    ],
    [
      'reset',
      (exchange) => {
        void exchange
          .send('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc')
          .then(() => setImmediate(() => exchange.reset()));
      },
      'closed',
    ],
    [
      'reset, with no end but that of the connection',
      (exchange) => {
        void exchange.send('HTTP/1.1 200 OK\r\n\r\nabc').then(() => setImmediate(() => exchange.reset()));
      },
      'closed',
    ],
    [
      'without its last chunk',
      (exchange) => {
        void exchange.send(`${CHUNKED}${chunk('abc')}`);
        exchange.end();
      },
      'closed',
    ],
    [
      'with a broken chunk size',
      (exchange) => inTurn(exchange, `${CHUNKED}${chunk('abc')}`, 'zz\r\nabc\r\n'),
      'bad-framing',
    ],
    [
      'with a chunk longer than its size',
      (exchange) => inTurn(exchange, `${CHUNKED}${chunk('abc')}`, '2\r\nabc\r\n0\r\n\r\n'),
      'bad-framing',
    ],
  ])('%s', async (_name, script, reason) => {
    expect(await answered(script)).toMatchObject({ kind: 'cut', reason });
  });
});

describe('no head, no reply', () => {
  test.each<[string, RawScript]>([
    ['closed before it', (exchange) => exchange.end()],
    ['reset before it', (exchange) => exchange.reset()],
    [
      'cut inside it',
      (exchange) => {
        void exchange.send('HTTP/1.1 200 OK\r\nconte');
        exchange.end();
      },
    ],
    ['another protocol', (exchange) => exchange.send('SSH-2.0-x\r\n\r\n')],
    ['an endless head', (exchange) => exchange.send(`HTTP/1.1 200 OK\r\nx: ${'a'.repeat(40_000)}`)],
  ])('%s', async (_name, script) => {
    backend.script(script);
    expect(await send()).toMatchObject({ kind: 'no-answer', stale: false });
  });

  test('a refused connection is unsent', async () => {
    client = clientOf('http://127.0.0.1:1/');
    expect(await send()).toEqual({ kind: 'unsent', reason: 'ECONNREFUSED' });
  });

  test('a caller that leaves before the head closes the connection', async () => {
    const leave = new AbortController();
    const { promise, resolve } = Promise.withResolvers<RawExchange>();
    backend.script(resolve);
    const outcome = send(leave.signal);
    const exchange = await promise;
    leave.abort();
    expect((await outcome).kind).toBe('no-answer');
    await exchange.gone;
  });
});

describe('connections', () => {
  test('are used again, also for a hundred requests at once and then a hundred more', async () => {
    for (let round = 0; round < 2; round++) {
      await Promise.all(Array.from({ length: 100 }, async () => read(await replied())));
    }
    expect(backend.connections()).toBe(100);
  });

  test('are not used again after Connection: close', async () => {
    backend.script((exchange) => exchange.send(plain('{}', 'connection: close\r\n')));
    for (let i = 0; i < 3; i++) await read(await replied());
    expect(backend.connections()).toBe(3);
  });

  test('that were closed while idle cost nothing: the request goes over a new one', async () => {
    await read(await replied());
    backend.script((exchange) => (exchange.nth > 1 ? exchange.end() : exchange.send(plain('{"second":1}'))));
    expect((await read(await replied())).text).toBe('{"second":1}');
    expect(backend.connections()).toBe(2);
  });

  test('a request that must not be sent twice is not repeated when its connection closes', async () => {
    await read(await replied());
    backend.script((exchange) => exchange.end());
    expect((await send(never, 'write')).kind).toBe('no-answer');
    expect(backend.connections()).toBe(1);
  });

  test('that speak out of turn are given up', async () => {
    backend.script((exchange) => exchange.send(`${plain('{}')}surplus`));
    expect((await read(await replied())).kind).toBe('complete');
    backend.script((exchange) => exchange.send(plain('{"clean":1}')));
    expect((await read(await replied())).text).toBe('{"clean":1}');
    expect(backend.connections()).toBe(2);
  });

  test('a body that is let go closes its connection', async () => {
    const { promise, resolve } = Promise.withResolvers<RawExchange>();
    backend.script((exchange) => {
      void exchange.send(`${CHUNKED}${chunk('abc')}`);
      resolve(exchange);
    });
    (await replied()).body.cancel();
    const { gone } = await promise;
    await gone;
    expect(backend.open()).toBe(0);
  });
});

test('a body whose rest comes with a reset while its reader is behind is whole or cut', async () => {
  backend.script(async (exchange) => {
    await inTurn(exchange, 'HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nabc');
    await exchange.send('def');
    exchange.reset();
  });
  const { body } = await replied();
  let text = '';
  const end = await body.pipe((piece) => {
    text += piece.toString();
    return Bun.sleep(20);
  });
  expect([`complete abcdef`, `cut ${text}`]).toContain(`${end.kind} ${text}`);
});

test('a body without a length is cut by a reset that comes before its reader reads on', async () => {
  const { promise, resolve } = Promise.withResolvers<RawExchange>();
  backend.script((exchange) => {
    resolve(exchange);
    return inTurn(exchange, 'HTTP/1.1 200 OK\r\n\r\nabc', 'def');
  });
  const { body } = await replied();
  const exchange = await promise;
  const end = await body.pipe(async (piece) => {
    if (piece.toString() === 'def') exchange.reset();
  });
  expect(end).toEqual({ kind: 'cut', reason: 'closed', bytes: 6 });
});

test('a reader that fails at the last piece fails nothing else', async () => {
  backend.script((exchange) => inTurn(exchange, 'HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nabc', 'def'));
  const { body } = await replied();
  expect(await body.pipe(() => Promise.reject(new Error('it fails')))).toEqual({
    kind: 'complete',
    bytes: 6,
  });
});

test('a body that its reader lets go of in the middle of a read takes its connection with it', async () => {
  backend.script((exchange) =>
    inTurn(exchange, `${CHUNKED}${chunk('first')}`, `${chunk('second')}0\r\n\r\n`),
  );
  const { body } = await replied();
  const end = await body.pipe((piece) => {
    if (piece.toString() === 'second') body.cancel();
  });
  expect(end).toMatchObject({ kind: 'cut', reason: 'cancelled' });
  backend.script((exchange) => exchange.send(plain('{"next":1}')));
  expect((await read(await replied())).text).toBe('{"next":1}');
  expect(backend.connections()).toBe(2);
});

test('a reader that is behind stops the backend, and gets every byte in the end', async () => {
  const total = 64 << 20;
  let sent = 0;
  backend.script(async (exchange) => {
    await exchange.send(`HTTP/1.1 200 OK\r\ncontent-length: ${total}\r\n\r\n`);
    for (let i = 0; i < 64; i++) {
      await exchange.send(Buffer.alloc(1 << 20, i));
      sent++;
    }
  });
  const { body } = await replied();
  const behind = Promise.withResolvers<void>();
  let bytes = 0;
  const ended = body.pipe((piece) => {
    bytes += piece.length;
    return bytes === piece.length ? behind.promise : undefined;
  });
  let seen = -1;
  while (seen !== sent) {
    seen = sent;
    await Bun.sleep(100); // the end of movement is the event awaited
  }
  expect(sent).toBeLessThan(32);
  behind.resolve();
  expect(await ended).toEqual({ kind: 'complete', bytes: total });
  expect(bytes).toBe(total);
});

test('a reader has stopped who takes no piece for a second, and for twice as long as the longest time in which one was taken', async () => {
  const { clock, advance } = createVirtualClock();
  client = clientOf(backend.url, new Map(), clock);
  const more = Promise.withResolvers<void>();
  backend.script(async ({ send: give }) => {
    await give(`${CHUNKED}${chunk('{"a":')}`);
    await more.promise;
    await give(chunk('1'));
  });
  const outcome = await client.send({ ...REQUEST, accountId: 1 }, never);
  if (outcome.kind !== 'reply') throw new Error(JSON.stringify(outcome));
  const taken = Promise.withResolvers<void>();
  const second = Promise.withResolvers<void>();
  let pieces = 0;
  const end = outcome.body.pipe(() => {
    if (++pieces === 1) return taken.promise;
    second.resolve();
    return new Promise(() => undefined);
  });
  const isStopped = () => client.calls()[0]?.answer?.isStopped;
  const seen = [999, 1, 2_000].map((ms) => {
    advance(ms);
    return isStopped();
  });
  expect(seen).toEqual([false, true, true]);
  taken.resolve();
  more.resolve();
  await second.promise;
  advance(5_999);
  expect(isStopped()).toBe(false);
  advance(1);
  expect(isStopped()).toBe(true);
  outcome.body.cancel();
  await end;
});

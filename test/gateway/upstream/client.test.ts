import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import type { HttpClient } from '../../../gateway/upstream/http-client.ts';
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
import { clientOf, REQUEST } from './of.ts';

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

const send = (signal = never) => client.send(REQUEST, signal);

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
    const url = `${backend.url.replace('//', '//us%20er:pa@')}path?x=1`;
    client = clientOf(url, systemClock, new Map([['x-a', 'b']]));
    await read(await replied());
    expect(await promise).toBe(
      `POST /path?x=1 HTTP/1.1\r\nhost: ${new URL(backend.url).host}\r\ncontent-type: application/json\r\n` +
        `authorization: Basic ${btoa('us er:pa')}\r\nx-a: b\r\naccept-encoding: identity\r\ncontent-length: 2\r\n\r\n{}`,
    );
  });
});

test('a reset in the middle of a body without a length cuts it, as an end does one that is short of its length', async () => {
  const reset: RawScript = (exchange) =>
    exchange.send('HTTP/1.1 200 OK\r\n\r\nabc').then(() => setImmediate(() => exchange.reset()));
  expect(await answered(reset)).toMatchObject({ kind: 'cut', reason: 'closed' });
  const short: RawScript = (exchange) => {
    void exchange.send('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc');
    exchange.end();
  };
  expect(await answered(short)).toMatchObject({ kind: 'cut', reason: 'closed' });
});

describe('no head, no reply', () => {
  test.each<[string, RawScript]>([
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

describe('what has no end is closed', () => {
  /** How a request ends whose backend says `begin`, and then `more` again and again for as long as it is listened to. */
  async function ended(begin: string, more: string) {
    backend.script(async (exchange) => {
      let isGone = false;
      void exchange.gone.then(() => (isGone = true));
      await exchange.send(begin);
      while (!isGone) {
        await exchange.send(more);
        await Bun.sleep(1); // so that it is read apart from the next
      }
    });
    const outcome = await send();
    const end = outcome.kind === 'reply' ? await outcome.body.pipe(() => undefined) : outcome;
    while (backend.open() > 0) await Bun.sleep(1); // the end of the connection is the event awaited
    return end;
  }

  test('interim heads are no reply', async () => {
    const hints = 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'.repeat(200);
    expect(await ended('', hints)).toMatchObject({ kind: 'no-answer', stale: false });
  });

  test('trailers cut the body', async () => {
    const end = await ended(`${CHUNKED}${chunk('abc')}0\r\n`, 'x: y\r\n'.repeat(200));
    expect(end).toEqual({ kind: 'cut', reason: 'bad-framing', bytes: 3 });
  });
});

test('interim heads before an end of the connection are a beginning: the request is not sent again', async () => {
  backend.script(async (exchange) => {
    if (exchange.nth === 1) return exchange.send(plain('{}'));
    await exchange.send('HTTP/1.1 103 Early Hints\r\n\r\n');
    await Bun.sleep(5); // so that it is read before the end
    return exchange.end();
  });
  await read(await replied());
  expect(await send()).toMatchObject({ kind: 'no-answer', stale: false });
  expect(backend.calls()).toBe(2);
});

describe('connections', () => {
  test('are used again, also for a hundred requests at once and then a hundred more', async () => {
    for (let round = 0; round < 2; round++) {
      await Promise.all(Array.from({ length: 100 }, async () => read(await replied())));
    }
    expect(backend.connections()).toBe(100);
  });

  test('that were closed while idle cost nothing: the request goes over a new one', async () => {
    await read(await replied());
    backend.script((exchange) => (exchange.nth > 1 ? exchange.end() : exchange.send(plain('{"second":1}'))));
    expect((await read(await replied())).text).toBe('{"second":1}');
    expect(backend.connections()).toBe(2);
  });

  test('that speak out of turn are given up', async () => {
    backend.script((exchange) => exchange.send(`${plain('{}')}surplus`));
    expect((await read(await replied())).kind).toBe('complete');
    backend.script((exchange) => exchange.send(plain('{"clean":1}')));
    expect((await read(await replied())).text).toBe('{"clean":1}');
    expect(backend.connections()).toBe(2);
  });
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
  client = clientOf(backend.url, clock);
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

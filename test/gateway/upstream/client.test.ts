import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import type { HttpClient } from '../../../gateway/upstream/http-client.ts';
import type { HttpReply } from '../../../gateway/upstream/http-connection.ts';
import { systemClock } from '../../../shared/clock.ts';
import { createVirtualClock } from '../virtual-clock.ts';
import { CHUNKED, chunk, plain, type RawExchange, startRawBackend } from '../../fakes/raw-backend.ts';
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

const send = () => client.send(REQUEST, never);

async function replied(): Promise<HttpReply> {
  const outcome = await send();
  if (outcome.kind !== 'reply') throw new Error(JSON.stringify(outcome));
  return outcome;
}

const read = ({ body }: HttpReply) => body.pipe(() => undefined);

test('a request carries the method, the length, the encoding and the headers of the config', async () => {
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

test.each(['light', 'write'] as const)(
  'G8 a %s request that is not written yet when its connection is closed goes over a new one',
  async (kind) => {
    const { promise: second, resolve } = Promise.withResolvers<Awaited<ReturnType<typeof send>>>();
    await read(await replied());
    const [message, nowMs] = [Buffer.concat([client.head, Buffer.from('2\r\n\r\n{}')]), performance.now()];
    client.start(message, message.length, nowMs, nowMs + 5_000, {
      onOutcome: () => undefined,
      onSmallReply(_body, _cameMs, connection) {
        resolve(client.send({ ...REQUEST, kind }, never));
        connection.destroy('bad-framing');
      },
    });
    expect([(await second).kind, backend.calls(), backend.connections()]).toEqual(['reply', 3, 2]);
  },
);

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

test('a body without a length is cut by a reset that comes before its reader reads on', async () => {
  const { promise, resolve } = Promise.withResolvers<RawExchange>();
  backend.script(async (exchange) => {
    resolve(exchange);
    await exchange.send('HTTP/1.1 200 OK\r\n\r\nabc');
    await Bun.sleep(5); // so that what follows is read by itself
    return exchange.send('def');
  });
  const { body } = await replied();
  const exchange = await promise;
  const end = await body.pipe(async (piece) => {
    if (piece.toString() === 'def') exchange.reset();
  });
  expect(end).toEqual({ kind: 'cut', reason: 'closed', bytes: 6 });
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

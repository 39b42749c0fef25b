import { expect, test } from 'bun:test';
import { startTcpProxy } from './tcp-proxy.ts';

/** A server that answers every byte with the same byte and counts what came. */
function startEcho() {
  let bytes = 0;
  const listener = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      data(socket, chunk) {
        bytes += chunk.length;
        socket.write(chunk);
      },
    },
  });
  return { port: listener.port, bytes: () => bytes, [Symbol.dispose]: () => listener.stop(true) };
}

/** A caller that collects what it gets; `closed` resolves when the connection has ended. */
async function call(port: number) {
  let text = '';
  const closed = Promise.withResolvers<void>();
  let came = Promise.withResolvers<void>();
  const socket = await Bun.connect({
    hostname: '127.0.0.1',
    port,
    socket: {
      data(_, chunk) {
        text += chunk.toString();
        came.resolve();
        came = Promise.withResolvers();
      },
      close: () => closed.resolve(),
    },
  });
  return {
    text: () => text,
    closed: closed.promise,
    say: (words: string) => void socket.write(words),
    async hear(words: string) {
      while (text !== words) await came.promise;
    },
  };
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await Bun.sleep(1);
}

test('a proxy forwards both ways', async () => {
  using echo = startEcho();
  using proxy = startTcpProxy(echo.port);
  const caller = await call(proxy.port);
  caller.say('a');
  await caller.hear('a');
  expect(proxy.connections()).toBe(1);
});

test('a proxy that drops replies lets what is said arrive, and forwards again when told', async () => {
  using echo = startEcho();
  using proxy = startTcpProxy(echo.port);
  const caller = await call(proxy.port);
  caller.say('a');
  await caller.hear('a');
  proxy.become('drop-replies');
  caller.say('b');
  await until(() => echo.bytes() === 2);
  await Bun.sleep(20);
  proxy.become('forward');
  caller.say('c');
  await caller.hear('ac');
});

test('a black hole takes connections and words and gives nothing', async () => {
  using echo = startEcho();
  using proxy = startTcpProxy(echo.port);
  const before = await call(proxy.port);
  before.say('a');
  await before.hear('a');
  proxy.become('black-hole');
  const during = await call(proxy.port);
  before.say('b');
  during.say('c');
  await Bun.sleep(20);
  expect([echo.bytes(), before.text(), during.text()]).toEqual([1, 'a', '']);
});

test('a cut ends every connection, one between a word and its answer too', async () => {
  using echo = startEcho();
  using proxy = startTcpProxy(echo.port);
  const [one, two] = [await call(proxy.port), await call(proxy.port)];
  proxy.cut();
  await Promise.all([one.closed, two.closed]);
  const three = await call(proxy.port);
  proxy.cutAtNextReply();
  three.say('x');
  await three.closed;
  expect([three.text(), echo.bytes()]).toEqual(['', 1]);
});

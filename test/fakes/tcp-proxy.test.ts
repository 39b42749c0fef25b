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
    /** Says it, and hears it with all that it heard before. */
    async echoed(words: string) {
      const before = text;
      socket.write(words);
      while (text !== before + words) await came.promise;
    },
  };
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await Bun.sleep(1);
}

/** A proxy to a server that echoes. */
function start() {
  const echo = startEcho();
  const proxy = startTcpProxy(echo.port);
  return { echo, proxy, [Symbol.dispose]: () => (proxy[Symbol.dispose](), echo[Symbol.dispose]()) };
}

test('a proxy forwards both ways, and more than a socket takes at once', async () => {
  using world = start();
  const caller = await call(world.proxy.port);
  for (let said = 1; said <= 100; said++) await caller.echoed('x'.repeat(10_000));
  expect(world.proxy.connections()).toBe(1);
});

test('a proxy that drops replies lets what is said arrive, and ends the connection with the mode', async () => {
  using world = start();
  const { echo, proxy } = world;
  const [told, silent] = [await call(proxy.port), await call(proxy.port)];
  await told.echoed('a');
  proxy.become('drop-replies');
  told.say('b');
  await until(() => echo.bytes() === 2);
  await Bun.sleep(20);
  proxy.become('forward');
  await told.closed;
  expect(told.text()).toBe('a');
  await silent.echoed('c');
});

test('a black hole takes connections and words and gives nothing; all of it comes late', async () => {
  using world = start();
  const { echo, proxy } = world;
  const before = await call(proxy.port);
  await before.echoed('a');
  proxy.become('black-hole');
  const during = await call(proxy.port);
  before.say('b');
  during.say('c');
  await Bun.sleep(20);
  expect([echo.bytes(), before.text(), during.text()]).toEqual([1, 'a', '']);
  proxy.become('forward');
  await before.hear('ab');
  await during.hear('c');
});

test('a cut ends every connection, one between a word and its answer too', async () => {
  using world = start();
  const { echo, proxy } = world;
  const [one, two] = [await call(proxy.port), await call(proxy.port)];
  proxy.cut();
  await Promise.all([one.closed, two.closed]);
  const three = await call(proxy.port);
  proxy.cutAtNextReply();
  three.say('x');
  await three.closed;
  expect([three.text(), echo.bytes()]).toEqual(['', 1]);
});

test('a stranded connection says nothing and does not end, and a new one is carried, to another port if told', async () => {
  using world = start();
  using other = startEcho();
  const { echo, proxy } = world;
  const before = await call(proxy.port);
  await before.echoed('a');
  proxy.strand();
  before.say('b');
  await (await call(proxy.port)).echoed('c');
  expect([before.text(), echo.bytes()]).toEqual(['a', 2]);
  proxy.leadTo(other.port);
  await (await call(proxy.port)).echoed('d');
  expect([echo.bytes(), other.bytes()]).toEqual([2, 1]);
});

import { expect, test } from 'bun:test';
import { openCaller } from './raw-caller.ts';
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

/** A caller of the proxy; `echoed` sends a text and waits until it has come back behind what came before. */
async function call(port: number) {
  const caller = await openCaller(new URL(`http://127.0.0.1:${port}`));
  const echoed = async (text: string) => {
    const length = caller.received() + text.length;
    caller.send(text);
    while (caller.received() < length) await Bun.sleep(0);
  };
  return { ...caller, echoed };
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

test('a proxy that drops replies lets requests arrive, and ends the connection with the mode', async () => {
  using world = start();
  const { echo, proxy } = world;
  const [told, silent] = [await call(proxy.port), await call(proxy.port)];
  await told.echoed('a');
  proxy.become('drop-replies');
  told.send('b');
  await until(() => echo.bytes() === 2);
  await Bun.sleep(20);
  proxy.become('forward');
  await told.ended;
  expect(told.text()).toBe('a');
  await silent.echoed('c');
});

test('a black hole takes connections and bytes and gives nothing; all of it comes late', async () => {
  using world = start();
  const { echo, proxy } = world;
  const before = await call(proxy.port);
  await before.echoed('a');
  proxy.become('black-hole');
  const during = await call(proxy.port);
  before.send('b');
  during.send('c');
  await Bun.sleep(20);
  expect([echo.bytes(), before.text(), during.text()]).toEqual([1, 'a', '']);
  proxy.become('forward');
  await before.until('ab');
  await during.until('c');
});

test('a cut ends every connection, also one between a request and its answer', async () => {
  using world = start();
  const { echo, proxy } = world;
  const [one, two] = [await call(proxy.port), await call(proxy.port)];
  proxy.cut();
  await Promise.all([one.ended, two.ended]);
  const three = await call(proxy.port);
  proxy.cutAtNextReply();
  three.send('x');
  await three.ended;
  expect([three.text(), echo.bytes()]).toEqual(['', 1]);
});

test('a stranded connection carries nothing and does not end; a new one works, to another port if configured', async () => {
  using world = start();
  using other = startEcho();
  const { echo, proxy } = world;
  const before = await call(proxy.port);
  await before.echoed('a');
  proxy.strand();
  before.send('b');
  await (await call(proxy.port)).echoed('c');
  expect([before.text(), echo.bytes()]).toEqual(['a', 2]);
  proxy.leadTo(other.port);
  await (await call(proxy.port)).echoed('d');
  expect([echo.bytes(), other.bytes()]).toEqual([2, 1]);
});

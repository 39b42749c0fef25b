import { expect, test } from 'bun:test';
import { openCaller } from '../fakes/raw-caller.ts';
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

test('a proxy that drops replies lets requests arrive, and ends the connection with the mode', async () => {
  using echo = startEcho();
  using proxy = startTcpProxy(echo.port);
  const [told, silent] = [await call(proxy.port), await call(proxy.port)];
  await told.echoed('a');
  proxy.become('drop-replies');
  told.send('b');
  while (echo.bytes() < 2) await Bun.sleep(1); // awaits its arrival
  await Bun.sleep(20);
  proxy.become('forward');
  await told.ended;
  expect(told.text()).toBe('a');
  await silent.echoed('c');
});

test('a cut falls between a request and its answer', async () => {
  using echo = startEcho();
  using proxy = startTcpProxy(echo.port);
  const caller = await call(proxy.port);
  proxy.cutAtNextReply();
  caller.send('x');
  await caller.ended;
  expect([caller.text(), echo.bytes()]).toEqual(['', 1]);
});

/** What a raw backend does once a whole call has come: writes bytes, or ends the connection. */
export type RawScript = (
  connection: Readonly<{ write(text: string): void; reset(): void; end(): void }>,
  seen: number,
) => void;

/** A backend below HTTP, for what a real HTTP server never does: cut, half and silent answers. Counts calls and connections. */
export function startRawBackend(script: RawScript) {
  let [calls, connections] = [0, 0];
  const server = Bun.listen<{ text: string }>({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      open(socket) {
        connections++;
        socket.data = { text: '' };
      },
      data(socket, chunk) {
        socket.data.text += chunk.toString();
        if (!isWhole(socket.data.text)) return;
        socket.data.text = '';
        const connection = {
          write: (text: string) => void socket.write(text),
          reset: () => socket.terminate(),
          end: () => void socket.end(),
        };
        script(connection, ++calls);
      },
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}/`,
    calls: () => calls,
    connections: () => connections,
    [Symbol.dispose]: () => server.stop(true),
  };
}

function isWhole(text: string): boolean {
  const length = Number(/content-length: (\d+)/i.exec(text)?.[1]);
  return text.length - text.indexOf('\r\n\r\n') - 4 >= length;
}

/** An address where nothing listens. */
export function refusedUrl(): string {
  const server = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data: () => undefined } });
  const url = `http://127.0.0.1:${server.port}/`;
  server.stop(true);
  return url;
}

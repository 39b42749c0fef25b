import { connect, createServer, type Server, type Socket } from 'node:net';

/** An end of a relay: a port of 127.0.0.1, or a socket in the file system, which network namespaces share. */
type RelayEnd = Readonly<{ port: number } | { path: string }>;

/**
 * Leads every connection at `from` to `to`, byte for byte, with the pressure of whichever side is slower. Two of them
 * lead into a network namespace and out of it.
 */
export async function startRelay(from: RelayEnd, to: RelayEnd): Promise<Disposable> {
  const open = new Set<Socket>();
  const server = createServer((caller) => {
    const callee = connect(addressOf(to));
    join(caller, callee);
    for (const socket of [caller, callee]) {
      open.add(socket);
      socket.on('close', () => open.delete(socket));
    }
  });
  await listening(server, addressOf(from));
  return {
    [Symbol.dispose]() {
      server.close();
      for (const socket of open) socket.destroy();
    },
  };
}

/** The end of one side is the end of the other: no client of these tests closes one half alone. */
function join(caller: Socket, callee: Socket): void {
  caller.pipe(callee);
  callee.pipe(caller);
  for (const [socket, other] of [
    [caller, callee],
    [callee, caller],
  ] as const) {
    socket.on('error', () => socket.destroy());
    socket.on('close', () => other.destroy());
  }
}

function listening(server: Server, address: ReturnType<typeof addressOf>): Promise<void> {
  return new Promise((resolve, reject) => {
    server.on('error', reject).listen(address, resolve);
  });
}

function addressOf(end: RelayEnd) {
  return 'port' in end ? { port: end.port, host: '127.0.0.1' } : { path: end.path };
}

/** What a proxy does with what comes; it may change while connections are open. */
export type ProxyMode =
  /** Everything goes both ways. */
  | 'forward'
  /** What the caller sends arrives; what the server answers is thrown away. */
  | 'drop-replies'
  /** Nothing goes either way, no connection ends, and new ones are accepted: dropped packets. */
  | 'black-hole';

type Side = { other: Bun.Socket<Side> | undefined; waiting: Uint8Array[]; isCaller: boolean };

/**
 * A TCP proxy to `port` of this machine, between a client and a real server. `cut` ends every connection without a
 * goodbye; `onReply` may cut between the execution of a command and its reply.
 */
export function startTcpProxy(port: number) {
  let mode: ProxyMode = 'forward';
  let cutAtReply = false;
  let connections = 0;
  const sides = new Set<Bun.Socket<Side>>();

  function pass(from: Bun.Socket<Side>, bytes: Uint8Array): void {
    const { other, waiting, isCaller } = from.data;
    if (mode === 'black-hole') return;
    if (!isCaller && mode === 'drop-replies') return;
    if (!isCaller && cutAtReply) {
      cutAtReply = false;
      return cut();
    }
    if (other === undefined) waiting.push(bytes.slice());
    else other.write(bytes);
  }

  function ended(socket: Bun.Socket<Side>): void {
    sides.delete(socket);
    socket.data.other?.terminate();
  }

  function cut(): void {
    for (const side of sides) side.terminate();
    sides.clear();
  }

  const listener = Bun.listen<Side>({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      async open(caller) {
        connections++;
        sides.add(caller);
        caller.data = { other: undefined, waiting: [], isCaller: true };
        if (mode === 'black-hole') return;
        try {
          const server = await Bun.connect<Side>({
            hostname: '127.0.0.1',
            port,
            data: { other: caller, waiting: [], isCaller: false },
            socket: { data: pass, close: ended, error: ended },
          });
          sides.add(server);
          caller.data.other = server;
          for (const bytes of caller.data.waiting.splice(0)) server.write(bytes);
        } catch {
          caller.terminate();
        }
      },
      data: pass,
      close: ended,
      error: ended,
    },
  });

  return {
    port: listener.port,
    url: `redis://127.0.0.1:${listener.port}`,
    /** Connections that came so far. */
    connections: () => connections,
    become(next: ProxyMode) {
      mode = next;
    },
    /** Ends every connection when the next byte of an answer comes, which is not passed on. */
    cutAtNextReply() {
      cutAtReply = true;
    },
    cut,
    [Symbol.dispose]() {
      listener.stop(true);
      cut();
    },
  };
}

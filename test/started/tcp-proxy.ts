/** What a proxy does with what comes; it may change while connections are open. */
type ProxyMode =
  /** Everything goes both ways. */
  | 'forward'
  /** What the caller sends arrives; what the server answers is lost, and its connection ends when the mode does. */
  | 'drop-replies'
  /** Nothing goes either way and nothing ends: every packet is lost, and comes late when the mode ends. */
  | 'black-hole';

/** One side of a connection. `late` is what could not be written to it yet. */
type Side = {
  other: Bun.Socket<Side> | undefined;
  late: Uint8Array[];
  isCaller: boolean;
  lossy: boolean;
  stranded: boolean;
};

/**
 * A TCP proxy to the port `target` of this machine, between a client and a real server. As in TCP, a connection never
 * loses bytes and goes on: they come late, or it ends.
 */
export function startTcpProxy(target: number) {
  let port = target;
  let mode: ProxyMode = 'forward';
  let cutAtReply = false;
  let connections = 0;
  const sides = new Set<Bun.Socket<Side>>();

  function pass(from: Bun.Socket<Side>, bytes: Uint8Array): void {
    const { other, isCaller, stranded } = from.data;
    if (stranded) return;
    if (!isCaller && mode === 'drop-replies') {
      if (other !== undefined) other.data.lossy = true;
      return;
    }
    if (!isCaller && cutAtReply) {
      cutAtReply = false;
      return cut();
    }
    // What a caller says before its server is there waits on the caller's own side.
    const to = other ?? from;
    to.data.late.push(bytes.slice());
    flush(to);
  }

  function flush(to: Bun.Socket<Side>): void {
    const { late, other } = to.data;
    while (other !== undefined && mode !== 'black-hole' && late.length > 0) {
      const [bytes = new Uint8Array()] = late;
      const written = to.write(bytes);
      if (written < 0) return;
      if (written < bytes.length) return void (late[0] = bytes.subarray(written));
      late.shift();
    }
  }

  async function reach(caller: Bun.Socket<Side>): Promise<void> {
    const said = caller.data.late;
    caller.data.late = [];
    try {
      const server = await Bun.connect<Side>({
        hostname: '127.0.0.1',
        port,
        data: { other: caller, late: said, isCaller: false, lossy: false, stranded: false },
        socket: { data: pass, drain: flush, close: ended, error: ended },
      });
      sides.add(server);
      said.push(...caller.data.late);
      caller.data.late = [];
      caller.data.other = server;
      flush(server);
    } catch {
      caller.terminate();
    }
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
      open(caller) {
        connections++;
        sides.add(caller);
        caller.data = { other: undefined, late: [], isCaller: true, lossy: false, stranded: false };
        if (mode !== 'black-hole') void reach(caller);
      },
      data: pass,
      drain: flush,
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
      for (const side of sides) {
        if (side.data.lossy && mode !== 'drop-replies') side.terminate();
        else if (side.data.other !== undefined) flush(side);
        else if (side.data.isCaller && mode !== 'black-hole') void reach(side);
      }
    },
    /** Nothing passes on the connections of now any more, and they do not end: the other machine lost its power. */
    strand() {
      for (const side of sides) side.data.stranded = true;
    },
    /** Connections that come from now on go to another port. */
    leadTo(next: number) {
      port = next;
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

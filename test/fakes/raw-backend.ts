import { PROBE_ID } from '../../gateway/upstream/health.ts';
import { freePort } from '../started/ports.ts';

/** One connection to a raw backend, from the side of the script. */
export type RawExchange = Readonly<{
  /** The whole request as it came over the wire. */
  text: string;
  /** The id of the request, as JSON. */
  id: string;
  /** How many requests this connection has carried, this one included. */
  nth: number;
  send(bytes: string | Uint8Array): Promise<void>;
  /** Ends the connection cleanly (FIN). */
  end(): void;
  /** Breaks the connection (RST). */
  reset(): void;
  /** Resolves when the other side has gone. */
  gone: Promise<void>;
}>;

/** What a raw backend does with a request. */
export type RawScript = (exchange: RawExchange) => unknown;

const UNKNOWN = `{"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"},"id":"${PROBE_ID}"}`;

/** Stands in a script for the id of the request, and is as long: the gateway chooses the ids. */
export const ECHOED_ID = '"id-of-the-caller"';

/** The text of a script, in which the id 1 stands for that of the request. */
export const echoing = (text: string) => text.replaceAll(/"id":1(?=[,}\s])/g, `"id":${ECHOED_ID}`);

/** An answer for a client other than the gateway: a head with Content-Length and its body, as it is. */
export function framed(body: string, head = ''): string {
  return `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n${head}\r\n${body}`;
}

/** A plain answer, with the id of the request. */
export const plain = (text: string, head = '') => framed(echoing(text), head);

/** The head of a chunked answer. */
export const CHUNKED =
  'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n';

/** One chunk of a chunked body for a client other than the gateway. */
export function framedChunk(text: string): string {
  return `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
}

/** One chunk of a chunked body, with the id of the request. */
export const chunk = (text: string) => framedChunk(echoing(text));

type State = {
  text: string;
  nth: number;
  gone: PromiseWithResolvers<void>;
  drained: PromiseWithResolvers<void> | undefined;
};

/**
 * A backend below HTTP: it writes exactly the bytes of a test's script, but for ids (`ECHOED_ID`), and ends connections as real ones do when they
 * break. It stands in for the front of a node that resets, lies about a length, or never comes to an end.
 */
export function startRawBackend(script: RawScript) {
  let script_ = script;
  let connections = 0;
  let open = 0;
  let calls = 0;
  const awaited: (readonly [calls: number, come: () => void])[] = [];
  const sockets = new Set<Bun.Socket<State>>();
  const listener = Bun.listen<State>({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      open(socket) {
        connections++;
        open++;
        sockets.add(socket);
        socket.data = { text: '', nth: 0, gone: Promise.withResolvers(), drained: undefined };
      },
      data(socket, bytes) {
        const state = socket.data;
        state.text += bytes.toString('latin1');
        const length = requestLength(state.text);
        if (length === undefined || state.text.length < length) return;
        const text = state.text.slice(0, length);
        state.text = state.text.slice(length);
        // The gateway's own questions are no part of the script.
        if (text.includes(`"id":"${PROBE_ID}"`)) return void exchangeOf(socket, text).send(plain(UNKNOWN));
        state.nth++;
        calls++;
        for (const [count, come] of awaited) if (calls >= count) come();
        script_(exchangeOf(socket, text));
      },
      drain: ({ data }) => data.drained?.resolve(),
      close(socket) {
        open--;
        sockets.delete(socket);
        socket.data.gone.resolve();
        socket.data.drained?.resolve();
      },
    },
  });
  return {
    url: `http://127.0.0.1:${listener.port}/`,
    connections: () => connections,
    open: () => open,
    /** Whole requests that have come, over all connections. */
    calls: () => calls,
    /** Resolves when so many have come. */
    called: (count: number) =>
      new Promise<void>((come) => (calls >= count ? come() : void awaited.push([count, come]))),
    script: (next: RawScript) => void (script_ = next),
    [Symbol.dispose]() {
      for (const socket of sockets) socket.terminate();
      listener.stop(true);
    },
  };
}

function exchangeOf(socket: Bun.Socket<State>, text: string): RawExchange {
  const id = idIn(text);
  return {
    text,
    id,
    nth: socket.data.nth,
    async send(bytes) {
      let rest = typeof bytes === 'string' ? Buffer.from(bytes.replaceAll(ECHOED_ID, id)) : bytes;
      while (rest.length > 0 && socket.readyState > 0) {
        rest = rest.subarray(Math.max(0, socket.write(rest)));
        if (rest.length === 0) return;
        socket.data.drained = Promise.withResolvers();
        await socket.data.drained.promise;
      }
    },
    end: () => void socket.end(),
    reset: () => socket.terminate(),
    gone: socket.data.gone.promise,
  };
}

/** The id of a request as the gateway writes it, its second member. */
export function idIn(text: string): string {
  return /"id":("(?:[^"\\]|\\.)*"|[^,}]*)/.exec(text)?.[1] ?? 'null';
}

/** The length of the first request in `text`, or `undefined` while its head is not whole. */
export function requestLength(text: string): number | undefined {
  const end = text.indexOf('\r\n\r\n');
  if (end === -1) return undefined;
  return end + 4 + Number(/content-length: (\d+)/i.exec(text.slice(0, end))?.[1] ?? 0);
}

/** An address where nothing listens. */
export function refusedUrl(): string {
  return `http://127.0.0.1:${freePort()}/`;
}

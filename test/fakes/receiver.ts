import { createServer, type Socket } from 'node:net';
import { createServer as createTlsServer, type SecureVersion, type TLSSocket } from 'node:tls';
import { requestLength } from './raw-backend.ts';
import type { Certificate } from '../started/receiver-certificates.ts';

/** One request, from the side of the receiver. Before TLS, or without it, `text` is empty. */
export type Visit = Readonly<{
  /** The whole request as it came, a byte a character. */
  text: string;
  /** The name of the TLS handshake; `''` when none was sent. */
  serverName: string;
  /** Hands bytes to the system; resolves when there is room for more, or the sender has gone. */
  send(bytes: string | Uint8Array): Promise<void>;
  /** Ends the connection cleanly (FIN). */
  end(): void;
  /** Breaks the connection (RST). */
  reset(): void;
  isGone(): boolean;
  /** Resolves when the sender has closed the connection, or it broke. */
  gone: Promise<void>;
}>;

/** What a receiver does with a visit. */
export type ReceiverScript = (visit: Visit) => unknown;

export type ReceiverOptions = Readonly<{
  script: ReceiverScript;
  /** Without one the receiver speaks no TLS, and its script runs on every connection, before a byte has come. */
  certificate?: Certificate;
  /** Offers this version of TLS alone. */
  version?: SecureVersion;
  host?: string;
  port?: number;
}>;

/** The answer of a receiver that is content. */
export const CONTENT = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';

/**
 * A customer's endpoint, below HTTP: it writes exactly the bytes of its script, so it can misbehave in every way
 * that real ones do. It stands in for all receivers of webhooks.
 */
export async function startReceiver(options: ReceiverOptions) {
  const { certificate, version, host = '127.0.0.1' } = options;
  const sockets = new Set<Socket>();
  const visits: Visit[] = [];
  const waiting: (() => void)[] = [];
  let connections = 0;

  function arrive(visit: Visit): void {
    visits.push(visit);
    for (const wake of waiting.splice(0)) wake();
    void options.script(visit);
  }
  function count(socket: Socket): void {
    connections++;
    sockets.add(socket);
    socket.on('error', () => {}).on('close', () => sockets.delete(socket));
  }
  const versions = version === undefined ? {} : { minVersion: version, maxVersion: version };
  const server =
    certificate === undefined
      ? createServer((socket) => (count(socket), socket.resume(), arrive(visitOn(socket, '', ''))))
      : createTlsServer({ ...certificate, ...versions }, (socket) => listen(socket, arrive));
  if (certificate !== undefined) server.on('connection', count).on('tlsClientError', () => {});
  await new Promise<void>((resolve, reject) => {
    server.on('error', reject).listen(options.port ?? 0, host, resolve);
  });
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    port,
    /** This receiver under a name, or under its own address. */
    url: (name = host, path = '/hook') => new URL(`https://${name}:${port}${path}`),
    visits: () => visits,
    connections: () => connections,
    open: () => sockets.size,
    /** The nth visit, from 1, as soon as it is there. */
    async visit(nth = 1): Promise<Visit> {
      for (;;) {
        const visit = visits[nth - 1];
        if (visit !== undefined) return visit;
        await new Promise<void>((resolve) => waiting.push(resolve));
      }
    },
    [Symbol.dispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

/** Reads whole requests from a connection; the script has one at a time. */
function listen(socket: TLSSocket, arrive: (visit: Visit) => void): void {
  let text = '';
  socket.on('error', () => {});
  socket.on('data', (bytes) => {
    text += bytes.toString('latin1');
    const length = requestLength(text);
    if (length === undefined || text.length < length) return;
    const whole = text.slice(0, length);
    text = text.slice(length);
    // @types/node leaves out a server's `servername`: the name asked for, or false.
    const asked = 'servername' in socket ? socket.servername : false;
    arrive(visitOn(socket, whole, typeof asked === 'string' ? asked : ''));
  });
}

function visitOn(socket: Socket, text: string, serverName: string): Visit {
  const gone = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  return {
    text,
    serverName,
    async send(bytes) {
      if (socket.destroyed || socket.write(bytes)) return;
      await Promise.race([gone, new Promise<void>((resolve) => socket.once('drain', () => resolve()))]);
    },
    end: () => void socket.end(),
    reset: () => void socket.resetAndDestroy(),
    isGone: () => socket.destroyed,
    gone,
  };
}

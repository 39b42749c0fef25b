import type { Clock } from '../../shared/clock.ts';
import { Connection, type ConnectionEvents } from './connection.ts';
import type { NoReply } from './reply.ts';

/** Where connections go. */
export type Target = Readonly<{ hostname: string; port: number; tls: boolean }>;

type Unsent = Extract<NoReply, { kind: 'unsent' }>;
export type Connected = { readonly kind: 'connected'; readonly connection: Connection } | Unsent;

/** The target of an http or https address. */
export function targetOf(url: URL): Target {
  const tls = url.protocol === 'https:';
  const port = url.port === '' ? (tls ? 443 : 80) : Number(url.port);
  return { hostname: url.hostname.replace(/^\[|\]$/g, ''), port, tls };
}

/**
 * Opens a connection, TLS verified, or says why not within `timeoutMs`, or when `signal` aborts. Never rejects; what is
 * open by then, with its handshake under way, is closed, and so is what opens later.
 */
export async function connect(
  { hostname, port, tls }: Target,
  events: ConnectionEvents,
  clock: Clock,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<Connected> {
  const { promise, resolve } = Promise.withResolvers<Connected>();
  const done = new AbortController();
  const refuse = (reason: string) => resolve({ kind: 'unsent', reason });
  let late = false;
  let opened: Bun.Socket<Data> | undefined;
  const giveUp = () => {
    late = true;
    refuse(
      opened === undefined ? 'it did not accept a connection in time' : 'it did not shake hands in time',
    );
    opened?.terminate();
  };
  const ready = (socket: Bun.Socket<Data>) => {
    socket.data.connection = new Connection(socket, events, clock);
    resolve({ kind: 'connected', connection: socket.data.connection });
  };
  Bun.connect<Data>({
    hostname,
    port,
    tls: tls ? { serverName: hostname, rejectUnauthorized: true } : false,
    data: { connection: undefined },
    socket: {
      open(socket) {
        if (late) return socket.terminate();
        opened = socket;
        socket.setNoDelay(true);
        if (!tls) ready(socket);
      },
      handshake(socket, success, error) {
        if (late) return;
        if (success && error === null) return ready(socket);
        refuse(error?.message ?? 'the TLS handshake failed');
        socket.terminate();
      },
      data: (socket, bytes) => socket.data.connection?.onData(bytes),
      drain: (socket) => socket.data.connection?.onDrain(),
      // Half a close is a whole one here: a backend that will send no more is of no use.
      end: (socket) => void socket.end(),
      close: (socket) => {
        refuse('it closed the connection at once');
        socket.data.connection?.onClose();
      },
      connectError: (_socket, error) => refuse(codeOf(error)),
    },
  }).catch((error: unknown) => refuse(codeOf(error)));
  void clock.sleep(timeoutMs, done.signal).then(() => {
    if (!done.signal.aborted) giveUp();
  });
  if (signal.aborted) giveUp();
  else signal.addEventListener('abort', giveUp, { once: true });
  const outcome = await promise;
  done.abort();
  signal.removeEventListener('abort', giveUp);
  return outcome;
}

type Data = { connection: Connection | undefined };

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error);
}

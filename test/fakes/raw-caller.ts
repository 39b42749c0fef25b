import { connect, type Socket } from 'node:net';

/**
 * A caller below HTTP: it writes exactly the bytes of a test, at the pace of the test, and leaves as real ones do
 * when they break. It stands in for a client that smuggles, drips, stops reading, or disappears.
 */
export type RawCaller = Disposable &
  Readonly<{
    send(bytes: string | Uint8Array): void;
    /** Resolves when all that was sent has been handed to the system, or the connection has ended. */
    flushed(): Promise<void>;
    /** Everything that has come so far, a byte a character. */
    text(): string;
    /** Bytes that have come so far. */
    received(): number;
    /** Resolves to the text when it holds `part` at least `times` times, or when the connection has ended. */
    until(part: string, times?: number): Promise<string>;
    /** Resolves when the connection has ended: to `closed`, or to an error's code. */
    ended: Promise<string>;
    /** Stops reading. */
    pause(): void;
    /** Reads on. */
    resume(): void;
    /** Called with every piece that comes. */
    onData(take: (bytes: Buffer) => void): void;
    /** Ends the sending side (FIN), and reads on. */
    halfClose(): void;
    /** Breaks the connection (RST). */
    reset(): void;
  }>;

/** Only so much of what comes is kept as text; a test of a long body counts `received`. */
const KEPT_CHARACTERS = 4 << 20;

/** Opens a connection to the origin of `url`, from `localAddress` when it is given: every 127.x.y.z is this machine (Linux). */
export async function openCaller(url: URL, localAddress?: string): Promise<RawCaller> {
  const from = localAddress === undefined ? {} : { localAddress };
  const socket = connect({ port: Number(url.port), host: url.hostname, allowHalfOpen: true, ...from });
  socket.once('end', () => socket.end());
  await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject));
  return callerOn(socket);
}

function callerOn(socket: Socket): RawCaller {
  let text = '';
  let received = 0;
  let over = false;
  const ended = Promise.withResolvers<string>();
  const waiting = new Set<() => void>();
  const wake = () => {
    for (const each of waiting) each();
  };
  socket.on('data', (bytes) => {
    received += bytes.length;
    if (text.length < KEPT_CHARACTERS) text += bytes.toString('latin1');
    wake();
  });
  const end = (how: string) => {
    over = true;
    ended.resolve(how);
    wake();
  };
  socket.on('error', (error: Error & { code?: string }) => end(error.code ?? error.message));
  socket.on('close', () => end('closed'));
  const gone = ended.promise.then(() => undefined);

  return {
    send: (bytes) => void socket.write(bytes),
    flushed: () => Promise.race([new Promise<void>((resolve) => socket.write('', () => resolve())), gone]),
    text: () => text,
    received: () => received,
    until(part, times = 1) {
      const { promise, resolve } = Promise.withResolvers<string>();
      const look = () => {
        if (!over && text.split(part).length <= times) return;
        waiting.delete(look);
        resolve(text);
      };
      waiting.add(look);
      look();
      return promise;
    },
    ended: ended.promise,
    onData: (take) => void socket.on('data', take),
    pause: () => void socket.pause(),
    resume: () => void socket.resume(),
    halfClose: () => void socket.end(),
    reset: () => void socket.resetAndDestroy(),
    [Symbol.dispose]: () => void socket.destroy(),
  };
}

/** A POST as text: `body` under the given key, with `head` lines (each ended by CR LF) after the usual ones. */
export function postText(body: string, key: string, head = ''): string {
  return (
    `POST / HTTP/1.1\r\nhost: gateway\r\nx-token: ${key}\r\ncontent-type: application/json\r\n` +
    `content-length: ${Buffer.byteLength(body)}\r\n${head}\r\n${body}`
  );
}

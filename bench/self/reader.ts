import { systemClock } from '../../shared/clock.ts';
import type { Framing } from './program-accounts.ts';

/** How a reader takes its answer: as fast as it comes, at a pace, or not any further after its first bytes. */
export type Pace =
  | { readonly kind: 'free' }
  | { readonly kind: 'paced'; readonly bytesPerSecond: number }
  | { readonly kind: 'paused' };

/** A caller that reads one answer and throws it away. */
export type Reader = Readonly<{
  /** Bytes read so far, the head included. */
  bytes(): number;
  /** Resolves with the status (0 for none) when the connection is over, whoever ended it. */
  over: Promise<number>;
  /** Resolves when the first bytes have come, or the connection is over. */
  begun: Promise<void>;
  /** Drops the connection at once, as a caller that is killed. */
  abort(): void;
}>;

/** A reader may run ahead of its pace by this much before it waits. */
const AHEAD_MS_MAX = 5;

/** The text of a call; `fields`: more lines of its head. */
export function requestOf(url: URL, key: string, body: string, fields = ''): string {
  return (
    `POST / HTTP/1.1\r\nhost: ${url.host}\r\nx-token: ${key}\r\ncontent-type: application/json\r\n` +
    `content-length: ${Buffer.byteLength(body)}\r\n${fields}\r\n${body}`
  );
}

/** A getProgramAccounts call for the bench's backend: of so many bytes, or over so many seconds. */
export function scanOf(size: Readonly<{ bytes: number } | { seconds: number }>, framing: Framing): string {
  const params = `["TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA",${JSON.stringify({ ...size, framing })}]`;
  return `{"jsonrpc":"2.0","id":1,"method":"getProgramAccounts","params":${params}}`;
}

/** Makes a call over a socket of its own and reads the answer at `pace` until it ends or `signal` aborts. Throws when nothing listens there. */
export async function startReader(
  url: URL,
  key: string,
  body: string,
  pace: Pace,
  signal: AbortSignal,
): Promise<Reader> {
  signal.throwIfAborted();
  const over = Promise.withResolvers<number>();
  const begun = Promise.withResolvers<void>();
  let bytes = 0;
  let status = 0;
  let startedMs = 0;
  const socket = await Bun.connect({
    hostname: url.hostname,
    port: Number(url.port),
    socket: {
      data(self, chunk) {
        if (bytes === 0) {
          startedMs = systemClock.monotonic();
          status = Number(/^HTTP\/1\.1 (\d{3})/.exec(chunk.toString('latin1', 0, 12))?.[1] ?? 0);
        }
        bytes += chunk.length;
        begun.resolve();
        if (pace.kind === 'paused') self.pause();
        if (pace.kind === 'paced') void keepPace(self, pace.bytesPerSecond);
      },
      close: end,
      error: end,
    },
  });
  socket.write(requestOf(url, key, body, 'connection: close\r\n'));
  const abort = () => void socket.terminate();
  signal.addEventListener('abort', abort, { once: true });

  async function keepPace(self: Bun.Socket, bytesPerSecond: number) {
    const aheadMs = (1_000 * bytes) / bytesPerSecond - (systemClock.monotonic() - startedMs);
    if (aheadMs < AHEAD_MS_MAX) return;
    self.pause();
    await systemClock.sleep(aheadMs, signal);
    self.resume();
  }

  function end() {
    signal.removeEventListener('abort', abort);
    begun.resolve();
    over.resolve(status);
  }

  return { bytes: () => bytes, over: over.promise, begun: begun.promise, abort };
}

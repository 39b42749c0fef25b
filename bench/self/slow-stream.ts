import { systemClock } from '../../shared/clock.ts';
import { programAccounts } from './program-accounts.ts';

/** An answer in the pieces a backend sends it in: one every `STEP_MS`, and four pauses of `pauseMs` in between. */
export type SlowStream = Readonly<{
  pieces: readonly Buffer[];
  bytes: number;
  /** SHA-256 of all bytes, in hex. */
  digest: string;
  pauseMs: number;
}>;

const PAUSES = 4;
const PAUSED_SHARE = 0.75;
const STEP_MS = 100;
const STEP_BYTES = 8_000;

/** A getProgramAccounts answer that takes about `seconds` to send, three quarters of them in its pauses. */
export function slowStream(seconds: number): SlowStream {
  const steps = Math.max(PAUSES + 1, Math.round(((1 - PAUSED_SHARE) * 1_000 * seconds) / STEP_MS));
  const [, ...parts] = programAccounts(steps * STEP_BYTES, '1', 'length');
  const body = Buffer.concat(parts);
  const size = Math.ceil(body.length / steps);
  const pieces = Array.from({ length: steps }, (_, i) => body.subarray(i * size, (i + 1) * size));
  const digest = new Bun.CryptoHasher('sha256').update(body).digest('hex');
  return { pieces, bytes: body.length, digest, pauseMs: (PAUSED_SHARE * 1_000 * seconds) / PAUSES };
}

/** A backend that answers every call with `stream`, in the framing that the call asks for. */
export function startSlowBackend(stream: SlowStream, signal: AbortSignal): { url: URL } & Disposable {
  const server = Bun.listen<undefined>({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      data(socket, bytes) {
        const [, framing] = /"framing":"(length|chunked)"/.exec(bytes.toString('latin1')) ?? [];
        if (framing !== undefined) void send(socket, stream, framing === 'chunked', signal);
      },
    },
  });
  return {
    url: new URL(`http://127.0.0.1:${server.port}`),
    [Symbol.dispose]: () => server.stop(true),
  };
}

async function send(socket: Bun.Socket, stream: SlowStream, isChunked: boolean, signal: AbortSignal) {
  const { pieces, bytes, pauseMs } = stream;
  const frame = isChunked ? 'transfer-encoding: chunked' : `content-length: ${bytes}`;
  socket.write(`HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n${frame}\r\n\r\n`);
  const perBurst = Math.ceil(pieces.length / (PAUSES + 1));
  for (const [i, piece] of pieces.entries()) {
    const isPause = i > 0 && i % perBurst === 0;
    await systemClock.sleep(isPause ? pauseMs : STEP_MS, signal);
    const framed = isChunked ? [`${piece.length.toString(16)}\r\n`, piece, '\r\n'] : [piece];
    const message = Buffer.concat(framed.map((part) => Buffer.from(part)));
    // A piece fits a socket's buffer many times over; what does not fit was not read, and the stream has failed.
    if (socket.write(message) < message.length) return void socket.terminate();
  }
  if (isChunked) socket.write('0\r\n\r\n');
}

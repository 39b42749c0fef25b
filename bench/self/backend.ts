import { systemClock } from '../../shared/clock.ts';
import { programAccounts, slowAccounts } from './program-accounts.ts';

/** What a connection has still to send, in pieces and milliseconds to wait, and what has come of its next request. */
type Sending = {
  pieces: Iterator<Buffer | number> | undefined;
  rest: Buffer;
  request: string;
  isLast: boolean;
};

const EMPTY = Buffer.alloc(0);
/** With SIGUSR2 calls are answered so late, and with the next one at once again; probes of the gateway are not. */
const SLOW_MS = 3_000;
const PROBE = '"id":"sluice-probe"';
const NEVER = new AbortController().signal;

/**
 * A backend that costs as little as possible: a raw socket that writes prebuilt bytes. `getProgramAccounts` is
 * answered with as many bytes and in the framing that its second parameter asks for, or over so many seconds; without them with
 * `scanBytes` of distinct accounts in chunks; anything else as a getSlot. A GET gives the number of calls so far.
 */
function serve(scanBytes: number): URL {
  let [calls, isSlow] = [0, false];
  process.on('SIGUSR2', () => void (isSlow = !isSlow));

  function answerTo(request: string): Iterator<Buffer | number> {
    if (request.startsWith('GET ')) return [small(String(calls))].values();
    const isProbe = request.includes(PROBE);
    if (!isProbe) calls++;
    const [, id = 'null'] = /"id":("[^"]*"|\d+)/.exec(request) ?? [];
    const [, bytes, seconds, chunked] =
      /\{"(?:bytes":(\d+)|seconds":([\d.]+)),"framing":"(?:length|(chunked))"/.exec(request) ?? [];
    const framing = chunked === undefined ? 'length' : 'chunked';
    if (bytes !== undefined) return programAccounts(Number(bytes), id, framing);
    if (seconds !== undefined) return slowAccounts(Number(seconds), id, framing);
    if (scanBytes > 0 && request.includes('"getProgramAccounts"'))
      return programAccounts(scanBytes, id, 'chunked', true);
    const slot = small(`{"jsonrpc":"2.0","result":368000000,"id":${id}}\n`);
    return (isSlow && !isProbe ? [SLOW_MS, slot] : [slot]).values();
  }

  const { port } = Bun.listen<Sending>({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      open(socket) {
        socket.data = { pieces: undefined, rest: EMPTY, request: '', isLast: false };
        socket.setNoDelay(true);
      },
      data(socket, bytes) {
        const { data } = socket;
        data.request += bytes.toString('latin1');
        if (data.pieces !== undefined || !isWhole(data.request)) return;
        data.isLast = /^connection: close\r$/im.test(data.request);
        data.pieces = answerTo(data.request);
        data.request = '';
        send(socket);
      },
      drain: send,
    },
  });
  return new URL(`http://127.0.0.1:${port}`);
}

function send(socket: Bun.Socket<Sending>) {
  const { data } = socket;
  while (data.pieces !== undefined) {
    if (data.rest.length > 0) {
      const taken = socket.write(data.rest);
      if (taken <= 0) return;
      data.rest = data.rest.subarray(taken);
      if (data.rest.length > 0) return;
    }
    const { value, done } = data.pieces.next();
    if (done === true) data.pieces = undefined;
    else if (typeof value === 'number') return void systemClock.sleep(value, NEVER).then(() => send(socket));
    else data.rest = value;
  }
  if (data.isLast) socket.end();
}

function isWhole(request: string): boolean {
  const head = request.indexOf('\r\n\r\n');
  const [, length] = /^content-length: *(\d+)\r$/im.exec(request) ?? [];
  return head >= 0 && request.length >= head + 4 + Number(length ?? 0);
}

function small(body: string): Buffer {
  return Buffer.from(
    `HTTP/1.1 200 OK\r\ncontent-type: application/json; charset=utf-8\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
}

if (import.meta.main) {
  console.log(JSON.stringify({ ready: 'backend', url: serve(Number(process.argv[2] ?? 0)).href }));
  // It ends with whoever started it.
  process.stdin.on('end', () => process.exit(0)).resume();
}

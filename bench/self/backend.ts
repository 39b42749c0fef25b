import { programAccounts } from './program-accounts.ts';

/** What a connection has still to send, and what has come of its next request. */
type Sending = { pieces: Iterator<Buffer> | undefined; rest: Buffer; request: string; isLast: boolean };

const EMPTY = Buffer.alloc(0);

/**
 * A backend that costs as little as possible: a raw socket that writes prebuilt bytes. `getProgramAccounts` is
 * answered with as many bytes and in the framing that its second parameter asks for, without them with `scanBytes` of
 * distinct accounts in chunks, anything else as a getSlot.
 */
function serve(scanBytes: number): URL {
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
        data.pieces = answerTo(data.request, scanBytes);
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
    if (data.rest.length === 0) {
      const next = data.pieces.next();
      if (next.done === true) data.pieces = undefined;
      else data.rest = next.value;
      continue;
    }
    const taken = socket.write(data.rest);
    if (taken <= 0) return;
    data.rest = data.rest.subarray(taken);
    if (data.rest.length > 0) return;
  }
  if (data.isLast) socket.end();
}

function isWhole(request: string): boolean {
  const head = request.indexOf('\r\n\r\n');
  const [, length] = /^content-length: *(\d+)\r$/im.exec(request) ?? [];
  return head >= 0 && request.length >= head + 4 + Number(length ?? 0);
}

function answerTo(request: string, scanBytes: number): Iterator<Buffer> {
  const [, id = 'null'] = /"id":("[^"]*"|\d+)/.exec(request) ?? [];
  const [, bytes, framing] = /"bytes":(\d+),"framing":"(length|chunked)"/.exec(request) ?? [];
  if (bytes === undefined) {
    const isScan = scanBytes > 0 && request.includes('"getProgramAccounts"');
    return isScan ? programAccounts(scanBytes, id, 'chunked', true) : [slot(id)].values();
  }
  return programAccounts(Number(bytes), id, framing === 'chunked' ? 'chunked' : 'length');
}

function slot(id: string): Buffer {
  const body = `{"jsonrpc":"2.0","result":368000000,"id":${id}}\n`;
  return Buffer.from(
    `HTTP/1.1 200 OK\r\ncontent-type: application/json; charset=utf-8\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
}

if (import.meta.main) {
  console.log(JSON.stringify({ ready: 'backend', url: serve(Number(process.argv[2] ?? 0)).href }));
  // It ends with whoever started it.
  process.stdin.on('end', () => process.exit(0)).resume();
}

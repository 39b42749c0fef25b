import { describe, expect, test } from 'bun:test';
import { connect } from 'node:net';
import { type Body, readBody } from '../../../gateway/request/http.ts';

/** A request whose body comes in chunks of a length nobody declared. */
function chunked(next: (chunk: number) => Uint8Array | undefined) {
  const state = { pulled: 0, cancelled: false };
  const stream = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const chunk = next(state.pulled++);
        if (chunk === undefined) controller.close();
        else controller.enqueue(chunk);
      },
      cancel: () => void (state.cancelled = true),
    },
    { highWaterMark: 0 },
  );
  const request = new Request('http://gateway/', { method: 'POST', body: stream });
  return { request, state };
}

const textOf = (body: Body) => (body.kind === 'body' ? new TextDecoder().decode(body.bytes) : body.kind);
const tens = (chunks: number) => (chunk: number) => (chunk < chunks ? Buffer.from('0123456789') : undefined);

describe('a body of undeclared length', () => {
  test('is read whole up to the bound, and refused one byte above', async () => {
    expect(textOf(await readBody(chunked(tens(3)).request, 30))).toBe('012345678901234567890123456789');
    expect(textOf(await readBody(chunked(tens(3)).request, 29))).toBe('body-too-large');
    expect(textOf(await readBody(chunked(tens(0)).request, 30))).toBe('');
  });

  test('is not read beyond the chunk that crosses the bound, though it never ends', async () => {
    const { request, state } = chunked(() => new Uint8Array(1_000));
    expect(textOf(await readBody(request, 2_500))).toBe('body-too-large');
    expect(state.pulled).toBeLessThanOrEqual(4);
    expect(state.cancelled).toBe(true);
  });

  test('that breaks off is a caller who left', async () => {
    const { request } = chunked((chunk) => {
      if (chunk === 1) throw new Error('connection reset');
      return new Uint8Array(10);
    });
    expect(textOf(await readBody(request, 100))).toBe('caller-left');
  });
});

describe('a body of declared length', () => {
  const declared = (length: string, body: string) =>
    new Request('http://gateway/', { method: 'POST', body, headers: { 'content-length': length } });

  test('is refused above the bound without a byte of it being read', async () => {
    const request = declared('31', 'x'.repeat(31));
    expect(textOf(await readBody(request, 30))).toBe('body-too-large');
    expect(request.bodyUsed).toBe(false);
  });

  test('passes at the bound', async () => {
    expect(textOf(await readBody(declared('30', 'x'.repeat(30)), 30))).toBe('x'.repeat(30));
  });
});

test('a request without a body is an empty one', async () => {
  expect(textOf(await readBody(new Request('http://gateway/', { method: 'POST' }), 30))).toBe('');
});

describe('on a real socket', () => {
  /** Sends raw text, gives what readBody made of it, or the status line when the listener refused it itself. */
  async function sent(raw: string, { end = false } = {}): Promise<string> {
    const seen = Promise.withResolvers<string>();
    await using server = stoppable(
      Bun.serve({
        hostname: '127.0.0.1',
        port: 0,
        reusePort: false,
        maxRequestBodySize: 200,
        async fetch(request) {
          seen.resolve(textOf(await readBody(request, 100)));
          return new Response();
        },
      }),
    );
    const socket = connect(server.port, '127.0.0.1');
    socket.on('data', (data) => seen.resolve(String(data).split('\r\n')[0] ?? ''));
    socket.on('error', () => undefined);
    socket.on('close', () => seen.resolve('closed'));
    socket.write(raw);
    if (end) socket.end();
    const result = await seen.promise;
    socket.destroy();
    return result;
  }

  function stoppable(server: Bun.Server<undefined>) {
    return { port: server.port ?? 0, [Symbol.asyncDispose]: () => server.stop(true) };
  }

  const head = (fields: string) => `POST / HTTP/1.1\r\nhost: x\r\n${fields}\r\n\r\n`;
  const inChunks = (...chunks: string[]) =>
    `${chunks.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join('')}0\r\n\r\n`;

  test('a length that says less than is sent gives the declared bytes only', async () => {
    expect(await sent(`${head('content-length: 5')}${'x'.repeat(90)}`)).toBe('xxxxx');
  });

  test('chunks above the bound are told without waiting for the last', async () => {
    expect(await sent(`${head('transfer-encoding: chunked')}65\r\n${'x'.repeat(101)}\r\n`)).toBe(
      'body-too-large',
    );
  });

  test('chunks up to the bound are read', async () => {
    expect(await sent(head('transfer-encoding: chunked') + inChunks('x'.repeat(60), 'y'.repeat(40)))).toBe(
      'x'.repeat(60) + 'y'.repeat(40),
    );
  });

  test('a length beside chunks cannot smuggle a body above the bound', async () => {
    const raw = head('content-length: 5\r\ntransfer-encoding: chunked') + inChunks('x'.repeat(150));
    expect(await sent(raw)).not.toContain('x');
  });

  test('a caller who leaves before the declared length is there is told as such', async () => {
    expect(await sent(`${head('content-length: 50')}abc`, { end: true })).toMatch(/caller-left|closed/);
  });
});

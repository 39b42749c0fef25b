import { describe, expect, test } from 'bun:test';
import { readHead } from '../../../gateway/backend/head.ts';

const OK = '{"jsonrpc":"2.0","result":1,"id":1}\n';

/** A head as a backend might send it, and whether its body was thrown away. */
function head(
  body: string | Uint8Array | undefined,
  { status = 200, ...headers }: Record<string, string | number | undefined> = {},
) {
  const state = { cancelled: false };
  const stream =
    body === undefined
      ? null
      : new ReadableStream(
          {
            pull(controller) {
              controller.enqueue(typeof body === 'string' ? new TextEncoder().encode(body) : body);
              controller.close();
            },
            cancel: () => void (state.cancelled = true),
          },
          { highWaterMark: 0 },
        );
  const fields = { 'content-type': 'application/json', ...headers };
  const present = Object.entries(fields).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)]],
  );
  return {
    state,
    response: new Response(stream, { status: Number(status), headers: present as [string, string][] }),
  }; // pairs by construction
}

const judged = (...args: Parameters<typeof head>) => readHead(head(...args).response, 'gzip');
const lengthOf = (text: string) => ({ 'content-length': String(new TextEncoder().encode(text).length) });

describe('an answer', () => {
  test('of a small declared length is held whole, byte for byte', async () => {
    const begun = await judged(OK, lengthOf(OK));
    expect(begun).toEqual({
      kind: 'whole',
      bytes: new Uint8Array(new TextEncoder().encode(OK)),
      encoding: undefined,
    });
  });

  test.each([
    ['application/json; charset=utf-8'],
    ['application/json-rpc'],
    ['APPLICATION/JSON'],
    ['application/problem+json'],
  ])('may be of the type %s', async (type) => {
    expect((await judged(OK, { ...lengthOf(OK), 'content-type': type })).kind).toBe('whole');
  });

  test('up to 64 KiB is held, one byte more is streamed', async () => {
    const text = (bytes: number) => `{${' '.repeat(bytes - 2)}}`;
    expect((await judged(text(65_536), { 'content-length': 65_536 })).kind).toBe('whole');
    expect((await judged(text(65_537), { 'content-length': 65_537 })).kind).toBe('stream');
  });

  test('of undeclared length is streamed without being touched', async () => {
    const { response, state } = head(OK);
    const begun = await readHead(response, 'gzip');
    expect(begun.kind).toBe('stream');
    expect(begun.kind === 'stream' ? await new Response(begun.body).text() : '').toBe(OK);
    expect(state.cancelled).toBe(false);
  });

  test('that is compressed is passed on as it is, with its encoding', async () => {
    const bytes = Bun.gzipSync(OK);
    expect(await judged(bytes, { 'content-length': bytes.length, 'content-encoding': 'gzip' })).toEqual({
      kind: 'whole',
      bytes: new Uint8Array(bytes),
      encoding: 'gzip',
    });
  });

  test('that says identity is not compressed', async () => {
    const headers = { ...lengthOf(OK), 'content-encoding': 'identity' };
    expect(await readHead(head(OK, headers).response, 'identity')).toMatchObject({
      kind: 'whole',
      encoding: undefined,
    });
  });

  test('may be surrounded by white space', async () => {
    const text = ` \r\n\t${OK} \r\n`;
    expect((await judged(text, lengthOf(text))).kind).toBe('whole');
  });
});

describe('no answer', () => {
  test.each([
    [201],
    [204],
    [301],
    [307],
    [400],
    [401],
    [403],
    [404],
    [413],
    [429],
    [500],
    [502],
    [503],
    [504],
  ])('a status of %p, and its body is thrown away', async (status) => {
    const { response, state } = head(status === 204 ? undefined : OK, { status });
    expect(await readHead(response, 'gzip')).toEqual({ kind: 'status', status });
    expect(state.cancelled).toBe(status !== 204);
  });

  test.each([['text/html'], ['text/plain'], ['application/octet-stream'], [undefined]])(
    'a 200 of the type %p, and its body is thrown away',
    async (type) => {
      const { response, state } = head('<html>', { 'content-type': type });
      expect((await readHead(response, 'gzip')).kind).toBe('garbage');
      expect(state.cancelled).toBe(true);
    },
  );

  test.each([
    [''],
    [' '],
    ['\n'],
    ['{'],
    ['}'],
    ['[]'],
    ['null'],
    ['"{}"'],
    ['<html></html>'],
    ['{"a":1'],
    ['{"a":1}x'],
    ['x{}'],
  ])('a 200 of JSON by its type whose body is %p', async (body) => {
    expect((await judged(body, lengthOf(body))).kind).toBe('garbage');
  });

  test('a compressed 200 that was not asked for, streamed or not', async () => {
    const bytes = Bun.gzipSync(OK);
    for (const length of [bytes.length, 100_000, undefined]) {
      const { response, state } = head(bytes, { 'content-length': length, 'content-encoding': 'gzip' });
      expect((await readHead(response, 'identity')).kind).toBe('garbage');
      expect(state.cancelled).toBe(true);
    }
  });

  test('a 200 without a body', async () => {
    expect((await judged(undefined)).kind).toBe('garbage');
  });

  test('a body shorter than its length', async () => {
    expect((await judged(OK, { 'content-length': OK.length + 1 })).kind).toBe('no-answer');
  });

  test('a body that breaks off', async () => {
    const stream = new ReadableStream({
      pull(controller) {
        controller.error(Object.assign(new Error('reset'), { code: 'ECONNRESET' }));
      },
    });
    const headers = { 'content-type': 'application/json', 'content-length': '100' };
    expect(await readHead(new Response(stream, { headers }), 'gzip')).toEqual({
      kind: 'no-answer',
      reason: 'ECONNRESET',
    });
  });
});

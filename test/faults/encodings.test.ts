import { describe, expect, test } from 'bun:test';
import { deflateRawSync, gunzipSync, inflateRawSync } from 'node:zlib';
import { gzipSync, zstdCompressSync, zstdDecompressSync } from 'bun';
import { CHUNKED, plain, type RawExchange } from '../fakes/raw-backend.ts';
import { openCaller, postText } from '../fakes/raw-caller.ts';
import { startGateway } from '../started/gateway.ts';
import { callText, lostText, rawPair, resultText } from './pair.ts';

const SCAN = callText(1, 'getProgramAccounts');
const random = Array.from({ length: 20_000 }, (_, i) => Bun.hash(String(i)).toString(36)).join(' ');
const LONG = `${resultText(`"${random}"`)}\n`;
const SHORT = `${resultText(7)}\n`;

const { backend, gateway } = await rawPair();
const key = gateway.key('scale');

/** Asks with an Accept-Encoding and keeps the answer's bytes as they came over the wire. */
async function ask(acceptEncoding: string | undefined, body = SCAN, at = gateway) {
  const headers = { 'accept-encoding': acceptEncoding ?? 'identity' };
  const own = at === gateway ? key : at.key('scale');
  const answer = await at.post(body, own, { headers, decompress: false });
  return { answer, bytes: Buffer.from(await answer.arrayBuffer()) };
}

const acceptedBy = ({ text }: RawExchange) => /accept-encoding: (.*)\r\n/.exec(text)?.[1];

/** An answer of known length. */
const whole = (bytes: Uint8Array, encoding: string) => async (exchange: RawExchange) => {
  await exchange.send(
    plain('', `content-encoding: ${encoding}\r\n`).replace('length: 0', `length: ${bytes.length}`),
  );
  await exchange.send(bytes);
};

/** The same in chunks, the first of which is 20 bytes and comes by itself. */
const inChunks = (bytes: Uint8Array, encoding: string) => async (exchange: RawExchange) => {
  await exchange.send(CHUNKED.replace('\r\n\r\n', `\r\ncontent-encoding: ${encoding}\r\n\r\n`));
  for (let from = 0, to = 20; from < bytes.length; from = to, to = Math.min(from + 30_000, bytes.length)) {
    await exchange.send(`${(to - from).toString(16)}\r\n`);
    await exchange.send(bytes.subarray(from, to));
    await exchange.send('\r\n');
    if (from === 0) await Bun.sleep(10); // so that the first is read by itself
  }
  await exchange.send('0\r\n\r\n');
};

/** In two parts, each compressed by itself. */
const twice = (compress: (text: Buffer<ArrayBuffer>) => Uint8Array) => (text: Buffer<ArrayBuffer>) =>
  Buffer.concat([compress(text.subarray(0, 30)), compress(text.subarray(30))]);

const CODECS = [
  ['gzip', gzipSync, gunzipSync],
  ['zstd', zstdCompressSync, zstdDecompressSync],
  // deflate without zlib's format around it, as some servers send it
  ['deflate', deflateRawSync, inflateRawSync],
  ['gzip', twice(gzipSync), gunzipSync],
  ['zstd', twice(zstdCompressSync), zstdDecompressSync],
] as const;

describe.each(CODECS)('A11 %s', (encoding, compress, decompress) => {
  test.each([
    ['short', SHORT, whole],
    ['short', SHORT, inChunks],
    ['long', LONG, whole],
    ['long', LONG, inChunks],
  ])('A11 a %s compressed answer passes untouched, and says what it is', async (_length, text, how) => {
    const compressed = compress(Buffer.from(text));
    backend.script(how(compressed, encoding));
    const { answer, bytes } = await ask(`br, ${encoding};q=0.9`);
    expect(answer.headers.get('content-encoding')).toBe(encoding);
    expect(answer.headers.get('vary')).toBe('accept-encoding');
    expect(bytes.equals(compressed)).toBe(true);
    expect(Buffer.from(decompress(bytes)).toString() === text).toBe(true);
  });
});

test('A11 an answer up to 64 KB keeps its Content-Length, compressed or not; a longer one, which the listener sends in chunks, keeps its bytes', async () => {
  for (const bytesMax of [100, 65_536, 65_537, 200_000]) {
    const result = random.slice(0, bytesMax - '{"jsonrpc":"2.0","result":"","id":1}\n'.length);
    const text = Buffer.from(`{"jsonrpc":"2.0","result":"${result}","id":1}\n`);
    for (const [encoding, bytes] of [
      ['identity', text],
      ['gzip', gzipSync(text)],
    ] as const) {
      backend.script(whole(bytes, encoding));
      const { answer, bytes: seen } = await ask('gzip');
      expect(seen.equals(bytes)).toBe(true);
      const length = answer.headers.get('content-length');
      // One that has not come whole by its beginning is streamed.
      if (bytes.length <= 65_536 || length !== null) expect(length).toBe(String(bytes.length));
    }
  }
});

test('A11 a backend gets the known codings that the caller accepts, and identity for batches and for a caller without Accept-Encoding', async () => {
  const accepted: (string | undefined)[] = [];
  backend.script((exchange) => {
    accepted.push(acceptedBy(exchange));
    return exchange.send(plain(SHORT));
  });
  await ask('zstd;q=0.5, gzip');
  await ask('gzip', `[${SCAN}]`);
  using caller = await openCaller(gateway.url);
  caller.send(postText(SCAN, key));
  await caller.until('"id":1}');
  expect(accepted).toEqual(['zstd, gzip', 'identity', 'identity']);
});

test('A11 a compressed answer that was not requested is a failure, and is not spliced into a batch', async () => {
  backend.script(whole(gzipSync(Buffer.from(SHORT)), 'gzip'));
  expect((await ask('identity')).answer.status).toBe(503);
  expect((await ask('gzip', `[${SCAN}]`)).bytes.toString()).toBe(`[${lostText()}]`);
});

test('A11 a compressed answer that is cut looks cut', async () => {
  const compressed = gzipSync(Buffer.from(LONG));
  backend.script(async (exchange) => {
    await whole(compressed, 'gzip')({ ...exchange, send: (bytes) => exchange.send(bytes.slice(0, 70_000)) });
    exchange.reset();
  });
  await expect(ask('gzip')).rejects.toThrow();
});

/** The status of a call, or `cut` when its answer does not end cleanly. */
const statusOf = (encoding: string, at: typeof gateway) =>
  ask(encoding, SCAN, at).then(
    ({ answer }) => answer.status,
    () => 'cut' as const,
  );

test.each([
  ['gzip', gzipSync],
  ['zstd', zstdCompressSync],
] as const)(
  'B11 what is cut or is the answer to another call in a part of its own in %s does not end cleanly, behind a short answer or a long one',
  async (encoding, compress) => {
    await using own = await startGateway({ backends: [{ name: 'a', url: backend.url }] });
    for (const text of [SHORT, `{"jsonrpc":"2.0","result":"${random.slice(0, 6_000)}","id":1}`, LONG]) {
      const cut = twice(compress)(Buffer.from(text)).slice(0, -12);
      const foreign = ['{"jsonrpc":"2.0","result":666,"id":2}', '{"id":2,"jsonrpc":"2.0","result":666}'];
      const behind = foreign.map((part) =>
        Buffer.concat([text, part].map((each) => compress(Buffer.from(each)))),
      );
      for (const how of [whole, inChunks])
        for (const packed of [cut, ...behind]) {
          backend.script(how(packed, encoding));
          expect(['cut', 503]).toContain(await statusOf(encoding, own));
        }
    }
  },
);

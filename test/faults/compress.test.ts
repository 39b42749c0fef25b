import { describe, expect, test } from 'bun:test';
import { createGunzip, createZstdDecompress, gunzipSync, zstdDecompressSync } from 'node:zlib';
import { CHUNKED, chunk, plain, type RawExchange } from '../fakes/raw-backend.ts';
import { openCaller, postText } from '../fakes/raw-caller.ts';
import { callText, rawPair, resultText } from './pair.ts';

const SCAN = callText(1, 'getProgramAccounts');
const ACCOUNTS = Array.from({ length: 2_000 }, (_, i) => `{"pubkey":"${Bun.hash(String(i))}","account":{}}`);
const LONG = `${resultText(`[${ACCOUNTS.join(',')}]`)}\n`;
const LINES = `${ACCOUNTS.join('\n')}\n{"accounts":2000,"slot":null}\n`;
const SHORT = `${resultText(7)}\n`;

const CODECS = [
  ['zstd', zstdDecompressSync, createZstdDecompress],
  ['gzip', gunzipSync, createGunzip],
] as const;

const { backend, gateway } = await rawPair({ gateway: { compress: 'zstd,gzip' } });
const key = gateway.key('scale');

async function ask(acceptEncoding: string, body = SCAN, more: Record<string, string> = {}) {
  const headers = { 'accept-encoding': acceptEncoding, ...more };
  const answer = await gateway.post(body, key, { headers, decompress: false });
  const { headers: fields } = answer;
  return {
    bytes: Buffer.from(await answer.arrayBuffer()),
    encoding: fields.get('content-encoding'),
    vary: fields.get('vary'),
    length: fields.get('content-length'),
    type: fields.get('content-type'),
  };
}

/** Whether a frame of zstd is whole (RFC 8878 3.1.1): the runtime's decoders give what they have of one that is cut. */
function hasLastBlock(frame: Buffer): boolean {
  const descriptor = frame[4] ?? 0;
  const isSingle = (descriptor & 0x20) !== 0;
  const sizeBytes = [isSingle ? 1 : 0, 2, 4, 8][descriptor >> 6] ?? 0;
  const dictionaryBytes = [0, 1, 2, 4][descriptor & 3] ?? 0;
  for (let at = 5 + (isSingle ? 0 : 1) + dictionaryBytes + sizeBytes; at + 3 <= frame.length;) {
    const head = frame.readUIntLE(at, 3);
    if ((head & 1) === 1) return true;
    at += 3 + (((head >> 1) & 3) === 1 ? 1 : head >> 3);
  }
  return false;
}

const inChunks =
  (text: string) =>
  async ({ send }: RawExchange) => {
    await send(CHUNKED);
    for (let at = 0; at < text.length; at += 20_000) {
      await send(chunk(text.slice(at, at + 20_000)));
      if (at === 0) await Bun.sleep(10); // so that the first is read by itself
    }
    await send('0\r\n\r\n');
  };

describe.each(CODECS)('A11 a large plain answer goes out in %s', (coding, decompress, _createDecoder) => {
  test.each([
    ['of known length', (exchange: RawExchange) => exchange.send(plain(LONG))],
    ['in chunks', inChunks(LONG)],
  ])('A11 when it came %s, and says so, without a length', async (_how, script) => {
    backend.script(script);
    const { bytes, encoding, vary, length } = await ask(coding);
    expect([encoding, vary, length]).toEqual([coding, 'accept-encoding', null]);
    expect(bytes.length).toBeLessThan(LONG.length / 2);
    expect(decompress(bytes).toString() === LONG).toBe(true);
  });

  test('A11 as lines', async () => {
    backend.script(inChunks(LONG));
    const { bytes, encoding, type } = await ask(coding, SCAN, { accept: 'application/x-ndjson' });
    expect([encoding, type]).toEqual([coding, 'application/x-ndjson']);
    expect(decompress(bytes).toString() === LINES).toBe(true);
  });

  test('A11 in a batch, whole or streamed', async () => {
    for (const script of [(exchange: RawExchange) => exchange.send(plain(LONG)), inChunks(LONG)]) {
      backend.script(script);
      const { bytes, encoding, vary } = await ask(coding, `[${SCAN},${SCAN}]`);
      expect([encoding, vary]).toEqual([coding, 'accept-encoding']);
      expect(JSON.parse(decompress(bytes).toString())).toHaveLength(2);
    }
  });

  test('A11 from memory, without a call to its backend (§2.2.7)', async () => {
    const block = LONG.replace('[{', '[{"slot":1},{');
    backend.script((exchange) => exchange.send(plain(block)));
    const call = callText(1, 'getGenesisHash');
    for (const _ of [1, 2]) {
      const { bytes, encoding } = await ask(coding, call);
      expect(encoding).toBe(coding);
      expect(decompress(bytes).toString() === block).toBe(true);
    }
  });
});

describe.each(CODECS)('A11 a stream in %s', (coding, _decompress, createDecoder) => {
  const request = () => postText(SCAN, key, `accept-encoding: ${coding}\r\n`);

  /** What can be decoded of a chunked answer, and whether its compressed stream has ended. */
  async function decoded(wire: string) {
    const decoder = createDecoder();
    const end = Promise.withResolvers<boolean>();
    let text = '';
    decoder.on('data', (piece: Buffer) => (text += piece.toString()));
    decoder.on('end', () => end.resolve(true)).on('error', () => end.resolve(false));
    const body = wire.slice(wire.indexOf('\r\n\r\n') + 4);
    const parts: Buffer[] = [];
    for (let at = 0; at < body.length;) {
      const head = body.indexOf('\r\n', at);
      const length = Number.parseInt(body.slice(at, head), 16);
      if (!(length > 0)) break;
      parts.push(Buffer.from(body.slice(head + 2, head + 2 + length), 'latin1'));
      at = head + 2 + length + 2;
    }
    const bytes = Buffer.concat(parts);
    decoder.end(bytes);
    const isEnded = await end.promise;
    return { isEnded: coding === 'zstd' ? hasLastBlock(bytes) : isEnded, text };
  }

  test('A11 is flushed as it comes: what the backend has sent can be read before it sends more', async () => {
    const more = Promise.withResolvers<void>();
    backend.script(async ({ send }) => {
      await send(CHUNKED + chunk(LONG.slice(0, 3_000)));
      await more.promise;
      await send(`${chunk(LONG.slice(3_000))}0\r\n\r\n`);
    });
    using caller = await openCaller(gateway.url);
    caller.send(request());
    for (let wire = ''; (await decoded(wire)).text !== LONG.slice(0, 3_000); wire = caller.text())
      await Bun.sleep(1);
    more.resolve();
    expect(await caller.until('\r\n0\r\n\r\n')).toContain(`${coding}\r\n`);
    const { text, isEnded } = await decoded(caller.text());
    expect([text === LONG, isEnded]).toEqual([true, true]);
  });

  test('A11 looks cut when its backend is cut: neither the connection nor what is compressed ends well', async () => {
    backend.script(async (exchange) => {
      await exchange.send(plain(LONG).slice(0, 70_000));
      exchange.reset();
    });
    using caller = await openCaller(gateway.url);
    caller.send(request());
    await caller.ended;
    expect(caller.text()).toContain(`${coding}\r\n`);
    expect(caller.text()).not.toEndWith('0\r\n\r\n');
    expect((await decoded(caller.text())).isEnded).toBe(false);
  });

  test('A11 ends its backend when its caller leaves', async () => {
    const gone = Promise.withResolvers<void>();
    backend.script(async (exchange) => {
      void exchange.gone.then(gone.resolve);
      await exchange.send(CHUNKED + chunk(LONG.slice(0, 70_000)));
    });
    using caller = await openCaller(gateway.url);
    caller.send(request());
    await caller.until(coding);
    caller.reset();
    await gone.promise;
  });

  test('A11 whose caller does not read stops its backend, and reads on to the same bytes', async () => {
    const random = Array.from({ length: 48 }, () =>
      Buffer.from(crypto.getRandomValues(new Uint8Array(49_152))).toString('base64'),
    );
    const pieces = Array.from({ length: 960 }, (_, i) => random[i % random.length] ?? '');
    const expected = new Bun.CryptoHasher('sha256').update('{"jsonrpc":"2.0","result":"');
    for (const piece of pieces) expected.update(piece);
    let sent = 0;
    backend.script(async ({ send }) => {
      await send(CHUNKED + chunk('{"jsonrpc":"2.0","result":"'));
      for (const piece of pieces) {
        await send(chunk(piece));
        sent++;
      }
      await send(`${chunk('","id":1}')}0\r\n\r\n`);
    });
    const headers = { 'accept-encoding': coding };
    const answer = await gateway.post(SCAN, key, { headers, decompress: false });
    const before = process.memoryUsage.rss();
    for (let last = -1; last !== sent; await Bun.sleep(100)) last = sent;
    expect(sent).toBeLessThan(pieces.length);
    expect(process.memoryUsage.rss() - before).toBeLessThan(64 << 20);
    const decoder = createDecoder();
    const seen = new Bun.CryptoHasher('sha256');
    decoder.on('data', (piece: Buffer) => seen.update(piece));
    const ended = new Promise((resolve) => decoder.on('end', resolve));
    for await (const piece of answer.body ?? [])
      await new Promise<void>((resolve) => decoder.write(piece, () => resolve()));
    decoder.end();
    await ended;
    expect(seen.digest('hex')).toBe(expected.update('","id":1}').digest('hex'));
  });
});

test('A11 what is small, what its caller does not accept, and what a backend compressed stay as they are', async () => {
  backend.script((exchange) => exchange.send(plain(SHORT)));
  expect(await ask('zstd')).toMatchObject({ encoding: null, vary: null, length: String(SHORT.length) });
  backend.script((exchange) => exchange.send(plain(LONG)));
  for (const accept of ['identity', 'br', 'zstd;q=0, gzip;q=0', 'identity;q=1, zstd;q=0.5', '*;q=0']) {
    const { bytes, encoding, vary } = await ask(accept);
    expect([encoding, vary]).toEqual([null, 'accept-encoding']);
    expect(bytes.toString() === LONG).toBe(true);
  }
});

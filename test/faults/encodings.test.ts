import { expect, test } from 'bun:test';
import { gunzipSync, gzipSync, zstdCompressSync } from 'bun';
import { CHUNKED, plain, type RawExchange } from '../fakes/raw-backend.ts';
import { startGateway } from '../started/gateway.ts';
import { callText, lostText, rawPair, resultText } from './pair.ts';

const SCAN = callText(1, 'getProgramAccounts');
const random = Array.from({ length: 20_000 }, (_, i) => Bun.hash(String(i)).toString(36)).join(' ');
const LONG = `"${random}"`;
const textOf = (result: string | number, id: string | number = 1) => `${resultText(result, id)}\n`;

const { backend, gateway } = await rawPair({ backend: { codings: 'zstd,gzip' } });
const key = gateway.key('scale');

/** Asks with an Accept-Encoding and keeps the answer's bytes as they came over the wire. */
async function ask(acceptEncoding: string, body = SCAN, at = gateway) {
  const headers = { 'accept-encoding': acceptEncoding };
  const own = at === gateway ? key : at.key('scale');
  const answer = await at.post(body, own, { headers, decompress: false });
  return { answer, bytes: Buffer.from(await answer.arrayBuffer()) };
}

const acceptedBy = ({ text }: RawExchange) => /accept-encoding: (.*)\r\n/.exec(text)?.[1];

/** An answer of known length. */
const whole = async (exchange: RawExchange, bytes: Uint8Array, encoding: string) => {
  await exchange.send(
    plain('', `content-encoding: ${encoding}\r\n`).replace('length: 0', `length: ${bytes.length}`),
  );
  await exchange.send(bytes);
};

/** The same in chunks, the first of which is 20 bytes and comes by itself. */
const inChunks = async (exchange: RawExchange, bytes: Uint8Array, encoding: string) => {
  await exchange.send(CHUNKED.replace('\r\n\r\n', `\r\ncontent-encoding: ${encoding}\r\n\r\n`));
  for (let from = 0, to = 20; from < bytes.length; from = to, to = Math.min(from + 30_000, bytes.length)) {
    await exchange.send(`${(to - from).toString(16)}\r\n`);
    await exchange.send(bytes.subarray(from, to));
    await exchange.send('\r\n');
    if (from === 0) await Bun.sleep(10); // so that the first is read by itself
  }
  await exchange.send('0\r\n\r\n');
};

test('A11 a backend is asked for plain answers, whatever the caller accepts, unless its config says otherwise (§2.2.7)', async () => {
  const accepted: (string | undefined)[] = [];
  backend.script((exchange) => {
    accepted.push(acceptedBy(exchange));
    return exchange.send(plain(textOf(7)));
  });
  await ask('identity');
  await ask('br', `[${SCAN}]`);
  await using own = await startGateway({ backends: [{ name: 'a', url: backend.url }] });
  await ask('zstd, gzip', SCAN, own);
  expect(accepted).toEqual(['zstd, gzip', 'zstd, gzip', 'identity']);
});

test('A11 what a backend sent compressed is compressed anew for callers who accept it, where the config says so', async () => {
  const backends = [{ name: 'a', url: backend.url, codings: 'zstd' }];
  await using own = await startGateway({ backends, gateway: { compress: 'zstd,gzip' } });
  backend.script((exchange) => inChunks(exchange, zstdCompressSync(textOf(LONG, exchange.id)), 'zstd'));
  const { answer, bytes } = await ask('gzip', SCAN, own);
  expect([answer.headers.get('content-encoding'), answer.headers.get('vary')]).toEqual([
    'gzip',
    'accept-encoding',
  ]);
  expect(Buffer.from(gunzipSync(bytes)).toString() === textOf(LONG)).toBe(true);
});

test('A11 a compressed answer that was not requested is decoded too; one in another coding is a failure', async () => {
  await using own = await startGateway({ backends: [{ name: 'a', url: backend.url }] });
  backend.script((exchange) => whole(exchange, gzipSync(textOf(7, exchange.id)), 'gzip'));
  expect((await ask('identity', SCAN, own)).bytes.toString()).toBe(textOf(7));
  backend.script((exchange) => whole(exchange, gzipSync(textOf(7, exchange.id)), 'br'));
  expect((await ask('identity', `[${SCAN}]`, own)).bytes.toString()).toBe(`[${lostText()}]`);
});

test('A11 a compressed answer that is cut looks cut', async () => {
  backend.script(async (exchange) => {
    const packed = gzipSync(textOf(LONG, exchange.id));
    await whole({ ...exchange, send: (bytes) => exchange.send(bytes.slice(0, 70_000)) }, packed, 'gzip');
    exchange.reset();
  });
  await expect(ask('gzip')).rejects.toThrow();
});

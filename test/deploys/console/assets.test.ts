import { expect, test } from 'bun:test';
import { brotliDecompressSync } from 'node:zlib';
import { createAssets, encodingFor } from '../../../deploys/console/assets/assets.ts';
import { CUSTOMER, ORIGIN, startConsole } from './started.tsx';

const assets = createAssets();
const ask = (path: string, headers: Record<string, string> = {}) =>
  assets.answer(new Request(ORIGIN + path, { headers }));
const bytesOf = async (path: string, encodings: string) =>
  new Uint8Array((await ask(path, { 'accept-encoding': encodings })?.arrayBuffer()) ?? new ArrayBuffer(0));

test.each(Object.entries(assets.paths))(
  '%s is named by its content, kept for ever, typed, and the same in every encoding but smaller',
  async (_, path) => {
    expect(path).toMatch(/^\/assets\/[a-z]+\.[0-9a-f]{16}\.(css|js|svg)$/);
    expect(createAssets().paths).toEqual(assets.paths);
    const types = {
      css: 'text/css; charset=utf-8',
      js: 'text/javascript; charset=utf-8',
      svg: 'image/svg+xml',
    };
    const { headers } = ask(path) ?? new Response();
    expect(headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
    expect(headers.get('content-type')).toBe(types[path.split('.').at(-1) as keyof typeof types]); // one of the three
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('content-security-policy')).toContain("default-src 'none'");
    const [plain, gzip] = [await bytesOf(path, ''), await bytesOf(path, 'gzip')];
    const br = await bytesOf(path, 'gzip, br');
    expect(Bun.gunzipSync(gzip)).toEqual(plain);
    expect(new Uint8Array(brotliDecompressSync(br))).toEqual(plain);
    expect(Math.max(br.length, gzip.length)).toBeLessThan(plain.length);
  },
);

test('an asset has an ETag, which differs by encoding', () => {
  const path = assets.paths.style;
  const etag = ask(path)?.headers.get('etag') ?? '';
  const etagBr = ask(path, { 'accept-encoding': 'br' })?.headers.get('etag') ?? '';
  expect(etag).not.toBe(etagBr);
  expect(ask(path, { 'if-none-match': `"x", W/${etag}` })?.status).toBe(304);
  expect(ask(path, { 'if-none-match': etagBr })?.status).toBe(200);
  expect(ask(path, { 'if-none-match': etagBr, 'accept-encoding': 'br' })?.status).toBe(304);
  expect(ask(path)?.headers.get('vary')).toBe('accept-encoding');
});

test.each(['console.css', 'console.0000000000000000.css', '../package.json', ''])(
  'there is nothing at /assets/%s',
  async (name) => expect((await startConsole(CUSTOMER).ask(`/assets/${name}`)).status).toBe(404),
);

test('the console serves its assets to everybody, with HEAD too', async () => {
  const { ask: askConsole } = startConsole(undefined);
  for (const method of ['GET', 'HEAD'])
    expect((await askConsole(assets.paths.htmx, { method })).status).toBe(200);
});

test.each([
  [null, 'identity'],
  ['gzip, deflate, br, zstd', 'br'],
  ['gzip', 'gzip'],
  ['GZIP', 'gzip'],
  ['br;q=0, gzip', 'gzip'],
  ['*', 'br'],
  ['*;q=0', 'identity'],
  ['br;q=nonsense', 'identity'],
] as const)('Accept-Encoding %p is answered in %s', (header, encoding) => {
  expect(encodingFor(header)).toBe(encoding);
});

import { readFileSync } from 'node:fs';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { SECURITY_HEADERS } from '../security-headers.ts';

/** Where assets live. */
export const ASSETS_PATH = '/assets';

/** How a body may be sent; `identity` is as it is. */
type Encoding = 'br' | 'gzip' | 'identity';
type Bytes = Uint8Array<ArrayBuffer>;

/** The smallest encoding that an `Accept-Encoding` takes (RFC 9110 12.5.3); what has `q=0` is not taken. */
export function encodingFor(acceptEncoding: string | null): Encoding {
  const weights = new Map((acceptEncoding ?? '').split(',').map(weightOf));
  const takes = (name: string) => (weights.get(name) ?? weights.get('*') ?? 0) > 0;
  if (takes('br')) return 'br';
  return takes('gzip') ? 'gzip' : 'identity';
}

function weightOf(item: string): readonly [name: string, weight: number] {
  const [name = '', ...parameters] = item.split(';').map((part) => part.trim().toLowerCase());
  const q = parameters.find((parameter) => parameter.startsWith('q='));
  const weight = q === undefined ? 1 : Number(q.slice(2));
  return [name, Number.isNaN(weight) ? 0 : weight];
}

const PACKED: Readonly<Record<Encoding, (plain: Bytes) => Bytes>> = {
  // Level 9 takes a few milliseconds where 11 takes a hundred, for two hundredths of the size.
  br: (plain) =>
    Uint8Array.from(brotliCompressSync(plain, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } })),
  gzip: (plain) => Uint8Array.from(gzipSync(plain, { level: 9 })),
  identity: (plain) => plain,
};

const TYPES = {
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
} as const;

/** Enough for a name that never meets another of its own kind. */
const HASH_LENGTH = 16;

/** One file as browsers get it, named by its content and kept in memory. */
function assetOf(name: string, ext: keyof typeof TYPES, text: string) {
  const plain = Uint8Array.from(Buffer.from(text));
  const hash = new Bun.CryptoHasher('sha256').update(plain).digest('hex').slice(0, HASH_LENGTH);
  const bodies: Partial<Record<Encoding, Bytes>> = {};
  return {
    path: `${ASSETS_PATH}/${name}.${hash}.${ext}`,
    type: TYPES[ext],
    /** A strong ETag without quotes; each encoding adds its own name. */
    hash,
    /** The body in an encoding, compressed at its first use. */
    bodyIn: (encoding: Encoding) => (bodies[encoding] ??= PACKED[encoding](plain)),
  };
}

type Asset = ReturnType<typeof assetOf>;

/** The texts of files beside this one or in a package, in order. */
function textsOf(specifiers: readonly string[]): readonly string[] {
  return specifiers.map((specifier) =>
    readFileSync(Bun.fileURLToPath(import.meta.resolve(specifier)), 'utf8'),
  );
}

/** In the order in which the later may overrule the earlier. */
const STYLES = ['uplot/dist/uPlot.min.css', './page.css', './components.css'];
/** One block of the served script each, so that their names do not meet. */
const SCRIPTS = 'local-time copy flash live drawer focus navigation narrow chart'
  .split(' ')
  .map((name) => `./${name}.js`);

/** A content-named file never changes. */
const FOR_EVER = 'public, max-age=31536000, immutable';

/** Reads every asset once. */
export function createAssets() {
  const [htmx = '', plot = '', icon = ''] = textsOf([
    'htmx.org/dist/htmx.min.js',
    'uplot/dist/uPlot.iife.min.js',
    './icon.svg',
  ]);
  const script = textsOf(SCRIPTS).map((text) => `{\n${text}}\n`);
  const made = {
    style: assetOf('console', 'css', textsOf(STYLES).join('\n')),
    script: assetOf('console', 'js', script.join('')),
    htmx: assetOf('htmx', 'js', htmx),
    plot: assetOf('uplot', 'js', plot),
    icon: assetOf('icon', 'svg', icon),
  };
  const byPath = new Map(Object.values(made).map((asset) => [asset.path, asset]));
  const path = (name: keyof typeof made) => made[name].path;
  return {
    /** The addresses that the document names. */
    paths: {
      style: path('style'),
      script: path('script'),
      htmx: path('htmx'),
      plot: path('plot'),
      icon: path('icon'),
    },
    /** The asset at the request's path; `undefined`: there is none. */
    answer(request: Request): Response | undefined {
      const asset = byPath.get(new URL(request.url).pathname);
      return asset && assetResponse(request, asset);
    },
  };
}

export type AssetPaths = ReturnType<typeof createAssets>['paths'];

function assetResponse(request: Request, asset: Asset): Response {
  const encoding = encodingFor(request.headers.get('accept-encoding'));
  const etag = `"${asset.hash}${encoding === 'identity' ? '' : `-${encoding}`}"`;
  const headers = { ...SECURITY_HEADERS, 'cache-control': FOR_EVER, vary: 'accept-encoding', etag };
  if (isKnown(request.headers.get('if-none-match'), etag))
    return new Response(null, { status: 304, headers });
  const packed = encoding !== 'identity' && { 'content-encoding': encoding };
  return new Response(asset.bodyIn(encoding), {
    headers: { ...headers, 'content-type': asset.type, ...packed },
  });
}

/** RFC 9110 13.1.2: a list of tags, weak ones alike, or any. */
function isKnown(ifNoneMatch: string | null, etag: string): boolean {
  const tags = ifNoneMatch?.split(',').map((tag) => tag.trim().replace(/^W\//, '')) ?? [];
  return tags.includes(etag) || tags.includes('*');
}

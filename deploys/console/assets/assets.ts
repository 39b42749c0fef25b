import { SECURITY_HEADERS } from '../security-headers.ts';
import { type Asset, assetOf, textsOf } from './asset.ts';
import { encodingFor } from './encoding.ts';

/** The addresses that the document names. */
export type AssetPaths = Readonly<{
  style: string;
  script: string;
  htmx: string;
  plot: string;
  icon: string;
}>;

export type Assets = Readonly<{
  paths: AssetPaths;
  /** The asset at the request's path; `undefined`: there is none. */
  answer(request: Request): Response | undefined;
}>;

/** In the order in which the later may overrule the earlier. */
const STYLES = [
  'uplot/dist/uPlot.min.css',
  './tokens.css',
  './base.css',
  './layout.css',
  './parts.css',
  './forms.css',
  './webhooks.css',
  './chart.css',
];
/** One block of the served script each, so that their names do not meet. */
const SCRIPTS = [
  './local-time.js',
  './copy.js',
  './flash.js',
  './live.js',
  './drawer.js',
  './focus.js',
  './navigation.js',
  './narrow.js',
  './chart.js',
];

/** A content-named file never changes. */
const FOR_EVER = 'public, max-age=31536000, immutable';

/** Reads every asset once. No answer names another origin. */
export function createAssets(): Assets {
  const [htmx = '', plot = '', icon = ''] = textsOf([
    'htmx.org/dist/htmx.min.js',
    'uplot/dist/uPlot.iife.min.js',
    './icon.svg',
  ]);
  const made = {
    style: assetOf('console', 'css', textsOf(STYLES).join('\n')),
    script: assetOf(
      'console',
      'js',
      textsOf(SCRIPTS)
        .map((text) => `{\n${text}}\n`)
        .join(''),
    ),
    htmx: assetOf('htmx', 'js', htmx),
    plot: assetOf('uplot', 'js', plot),
    icon: assetOf('icon', 'svg', icon),
  };
  const byPath = new Map(Object.values(made).map((asset) => [asset.path, asset]));
  const { style, script } = made;

  return {
    paths: {
      style: style.path,
      script: script.path,
      htmx: made.htmx.path,
      plot: made.plot.path,
      icon: made.icon.path,
    },
    answer(request) {
      const asset = byPath.get(new URL(request.url).pathname);
      return asset && assetResponse(request, asset);
    },
  };
}

function assetResponse(request: Request, asset: Asset): Response {
  const encoding = encodingFor(request.headers.get('accept-encoding'));
  const etag = `"${asset.hash}${encoding === 'identity' ? '' : `-${encoding}`}"`;
  const headers = {
    ...SECURITY_HEADERS,
    'cache-control': FOR_EVER,
    vary: 'accept-encoding',
    etag,
  };
  if (isKnown(request.headers.get('if-none-match'), etag))
    return new Response(null, { status: 304, headers });
  return new Response(asset.bodyIn(encoding), {
    headers: {
      ...headers,
      'content-type': asset.type,
      ...(encoding !== 'identity' && { 'content-encoding': encoding }),
    },
  });
}

/** RFC 9110 13.1.2: a list of tags, weak ones alike, or any. */
function isKnown(ifNoneMatch: string | null, etag: string): boolean {
  const tags = ifNoneMatch?.split(',').map((tag) => tag.trim().replace(/^W\//, '')) ?? [];
  return tags.includes(etag) || tags.includes('*');
}

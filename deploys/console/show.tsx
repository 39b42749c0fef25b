/** @jsxImportSource preact */
import { render } from 'preact-render-to-string';
import type { AssetPaths } from './assets/assets.ts';
import { Document } from './page/document.tsx';
import { flashOf } from './page/flash.ts';
import { themeOf } from './page/theme.ts';
import type { Show } from './routing/answer.ts';

/** Renders pages into the one document. */
export function createShow(assets: AssetPaths): Show {
  return function show(content, { request, url, viewer, account }) {
    const html = render(
      <Document
        content={content}
        viewer={viewer}
        account={account}
        path={url.pathname}
        here={`${url.pathname}${withoutFlash(url)}`}
        theme={themeOf(request)}
        flash={flashOf(url.searchParams.get('done'))}
        assets={assets}
      />,
    );
    return new Response(`<!doctype html>${html}`, {
      status: content.status ?? 200,
      headers: { 'content-type': 'text/html; charset=utf-8' },
    });
  };
}

/** A message or a secret is not asked for a second time by coming back here. */
function withoutFlash({ searchParams }: URL): string {
  const kept = new URLSearchParams(searchParams);
  kept.delete('done');
  kept.delete('shown');
  return kept.size === 0 ? '' : `?${kept}`;
}

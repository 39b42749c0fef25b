/** @jsxImportSource preact */
import { render } from 'preact-render-to-string';
import type { Content } from './asked.ts';

/** Content in a plain document; the routes give every answer its headers. */
export function showPlain({ title, body, status = 200 }: Content): Response {
  const html = render(
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>{`${title} - Sluice`}</title>
        <link rel="icon" href="data:," />
      </head>
      <body>
        <main>
          <h1>{title}</h1>
          {body}
        </main>
      </body>
    </html>,
  );
  return new Response(`<!doctype html>${html}`, {
    status,
    headers: { 'content-type': 'text/html; charset=utf-8' },
  });
}

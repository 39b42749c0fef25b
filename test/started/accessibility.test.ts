import { expect, setDefaultTimeout, test } from 'bun:test';
import { accessibilityFaults } from './accessibility.ts';
import { startBrowser } from './browser.ts';

// A browser on a busy machine takes its time.
setDefaultTimeout(30_000);

test('a picture without words and a field without a label are found, under a policy that lets no script in', async () => {
  await using browser = await startBrowser();
  const body =
    '<!doctype html><html lang="en"><title>A</title><main><h1>A</h1><img src="data:,"><input></main></html>';
  const headers = {
    'content-type': 'text/html',
    'content-security-policy': "default-src 'none'; img-src data:",
  };
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    reusePort: false,
    fetch: () => new Response(body, { headers }),
  });
  await using opened = await browser.open({ origin: server.url.origin });
  await opened.page.goto('/');
  const found = await accessibilityFaults(opened.page);
  expect(found.map((line) => line.split(':')[0])).toEqual(['image-alt', 'label']);
  await server.stop(true);
});

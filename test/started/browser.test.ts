import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { accessibilityFaults } from './accessibility.ts';
import { type StartedBrowser, startBrowser } from './browser.ts';

// A browser on a busy machine takes its time.
setDefaultTimeout(30_000);

const html = (body: string, init: ResponseInit = {}) =>
  new Response(`<!doctype html><html lang="en"><title>A page</title>${body}</html>`, {
    ...init,
    headers: { 'content-type': 'text/html', ...init.headers },
  });

const headers = { 'content-security-policy': "default-src 'none'; img-src data:" };

let browser: StartedBrowser;
const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  routes: {
    '/quiet': () => html('<p>Quiet</p>'),
    '/loud': () => html('<script>console.error("loud"); throw new Error("thrown")</script>'),
    '/elsewhere': () => html('<img src="http://other.example.com/a.png">'),
    '/inaccessible': () => html('<main><h1>A</h1><img src="data:,"><input></main>', { headers }),
    '/favicon.ico': () => new Response(null, { status: 204 }),
  },
  fetch: () => html('nothing', { status: 404 }),
});
beforeAll(async () => void (browser = await startBrowser()));
afterAll(async () => {
  await browser[Symbol.asyncDispose]();
  await server.stop(true);
});

test.each<[string, string, number[], unknown[]]>([
  ['nothing where nothing is wrong', '/quiet', [], []],
  ['console errors and exceptions', '/loud', [], ['console: loud', 'exception: thrown']],
  ['a status of 400 and more', '/missing', [], [expect.stringContaining('404')]],
  ['no status that the test provokes', '/missing', [404], []],
  [
    'a request to another origin, which is not made',
    '/elsewhere',
    [],
    ['request to another origin: http://other.example.com/a.png', expect.stringContaining('ERR_FAILED')],
  ],
])('a page of the browser reports %s', async (_, path, expectedStatuses, faults) => {
  await using opened = await browser.open({ origin: server.url.origin, expectedStatuses });
  await opened.page.goto(path);
  expect(opened.faults as unknown[]).toEqual(faults);
});

test('what keeps people out is found, also under a policy that lets no script in', async () => {
  await using opened = await browser.open({ origin: server.url.origin });
  await opened.page.goto('/inaccessible');
  const found = await accessibilityFaults(opened.page);
  expect(found.map((line) => line.split(':')[0])).toEqual(['image-alt', 'label']);
});

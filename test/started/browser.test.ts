import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { accessibilityFaults } from './accessibility.ts';
import { type StartedBrowser, startBrowser } from './browser.ts';

// A browser on a busy machine takes its time.
setDefaultTimeout(30_000);

const html = (body: string, init: ResponseInit = {}) =>
  new Response(`<!doctype html><html lang="en"><title>A page</title>${body}</html>`, {
    ...init,
    headers: { 'content-type': 'text/html', ...init.headers },
  });
const policy = { 'content-security-policy': "default-src 'none'; img-src data:" };

let browser: StartedBrowser;
let server: Bun.Server<undefined>;
beforeAll(async () => {
  browser = await startBrowser();
  server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    reusePort: false,
    routes: {
      '/quiet': (request) => html(`<p>${request.headers.get('cookie') ?? 'nobody'}</p>`),
      '/cookie': () => new Response('', { headers: { 'set-cookie': 'who=me; Path=/' } }),
      '/loud': () => html('<script>console.error("loud"); throw new Error("thrown")</script>'),
      '/elsewhere': () => html('<img src="http://other.example.com/a.png">'),
      '/inaccessible': () => html('<main><h1>A</h1><img src="data:,"><input></main>', { headers: policy }),
      '/favicon.ico': () => new Response(null, { status: 204 }),
    },
    fetch: () => html('nothing', { status: 404 }),
  });
});
afterAll(async () => {
  await browser[Symbol.asyncDispose]();
  await server.stop(true);
});

describe('a page of the browser', () => {
  test('has no faults where nothing is wrong, and no cookies of another page', async () => {
    await using first = await browser.open({ origin: server.url.origin });
    await first.page.goto('/cookie');
    await first.page.goto('/quiet');
    expect(await first.page.textContent('p')).toBe('who=me');
    await using second = await browser.open({ origin: server.url.origin });
    await second.page.goto('/quiet');
    expect(await second.page.textContent('p')).toBe('nobody');
    expect([first.faults, second.faults]).toEqual([[], []]);
  });

  test.each<[string, string, object, unknown[]]>([
    ['reports console errors and exceptions', '/loud', {}, ['console: loud', 'exception: thrown']],
    ['runs without scripts if configured so', '/loud', { javaScript: false }, []],
    ['reports a status of 400 and more', '/missing', {}, [expect.stringContaining('404')]],
    ['but not of one that the test provokes', '/missing', { expectedStatuses: [404] }, []],
  ])('%s', async (_, path, options, faults) => {
    await using opened = await browser.open({ origin: server.url.origin, ...options });
    await opened.page.goto(path);
    expect(opened.faults as unknown[]).toEqual(faults);
  });

  test('reports a request to another origin, which is not made', async () => {
    await using opened = await browser.open({ origin: server.url.origin });
    await opened.page.goto('/elsewhere');
    expect(opened.faults[0]).toBe('request to another origin: http://other.example.com/a.png');
  });

  test('is searched for what keeps people out, also under a policy that lets no script in', async () => {
    await using opened = await browser.open({ origin: server.url.origin });
    await opened.page.goto('/inaccessible');
    const found = await accessibilityFaults(opened.page);
    expect(found.map((line) => line.split(':')[0])).toEqual(['image-alt', 'label']);
  });
});

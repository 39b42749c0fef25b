import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { type StartedBrowser, startBrowser } from './browser.ts';

let browser: StartedBrowser;
let server: Bun.Server<undefined>;
const html = (body: string, status = 200) =>
  new Response(`<!doctype html><title>A page</title>${body}`, {
    status,
    headers: { 'content-type': 'text/html' },
  });

beforeAll(async () => {
  browser = await startBrowser();
  server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    reusePort: false,
    fetch(request) {
      switch (new URL(request.url).pathname) {
        case '/quiet':
          return html(`<p>${request.headers.get('cookie') ?? 'nobody'}</p>`);
        case '/cookie':
          return new Response('', { headers: { 'set-cookie': 'who=me; Path=/' } });
        case '/loud':
          return html('<script>console.error("loud"); throw new Error("thrown")</script>');
        case '/elsewhere':
          return html('<img src="http://other.example.com/a.png">');
        case '/favicon.ico':
          return new Response(null, { status: 204 });
        default:
          return html('nothing', 404);
      }
    },
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

  test('tells of console errors and exceptions', async () => {
    await using opened = await browser.open({ origin: server.url.origin });
    await opened.page.goto('/loud');
    expect(opened.faults).toEqual(['console: loud', 'exception: thrown']);
  });

  test('tells of a request to another origin, which is not made', async () => {
    await using opened = await browser.open({ origin: server.url.origin });
    await opened.page.goto('/elsewhere');
    expect(opened.faults[0]).toBe('request to another origin: http://other.example.com/a.png');
  });

  test('tells of a status of 400 and more, unless the test provokes it', async () => {
    await using surprised = await browser.open({ origin: server.url.origin });
    await surprised.page.goto('/missing');
    expect(surprised.faults).toEqual([expect.stringContaining('404')]);
    await using prepared = await browser.open({ origin: server.url.origin, expectedStatuses: [404] });
    await prepared.page.goto('/missing');
    expect(prepared.faults).toEqual([]);
  });

  test('runs without scripts where it is asked to', async () => {
    await using opened = await browser.open({ origin: server.url.origin, javaScript: false });
    await opened.page.goto('/loud');
    expect(opened.faults).toEqual([]);
  });
});

import { afterEach, describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { status, t } from 'elysia';
import { signCookie } from 'elysia/utils';
import { RpcResponse } from '../../../gateway/listener/rpc.ts';
import { openCaller } from '../../fakes/raw-caller.ts';
import { JSON_HEADERS } from '../../started/gateway.ts';
import { type Init, onBoth, serve, stopAll } from '../both-ways.ts';
import { streamBodyOf } from '../stream-body.ts';

const INTERNAL_ERROR = '{"jsonrpc":"2.0","error":{"code":-32603,"message":"Internal error"},"id":null}';

afterEach(stopAll);

describe('hooks of a plugin work on connections as by app.handle,', () => {
  const hooked = () =>
    serve(undefined, (app) =>
      app
        .onRequest(({ request, set }) => {
          set.headers['x-seen'] = request.headers.get('X-Asked') ?? 'none';
          if (new URL(request.url).pathname === '/closed') return status(503, 'closed');
          if (request.headers.has('x-fail')) throw new Error('a secret');
          return undefined;
        })
        .derive({ as: 'global' }, ({ headers, query }) => ({ asked: `${headers['x-asked']} ${query['a']}` }))
        .onAfterHandle({ as: 'global' }, ({ response, asked, set, cookie }) => {
          set.headers['x-after'] = `${asked} ${response instanceof RpcResponse}`;
          cookie['seen']?.set({ value: '1', httpOnly: true });
          cookie['again']?.set({ value: '2' });
        })
        .onError({ as: 'global' }, ({ code, set }) => {
          set.headers['x-error'] = String(code);
        }),
    );

  test('F13 on what the gateway answers itself, streams with their length included', async () => {
    const { app, url } = hooked();
    const init = () => ({ method: 'POST', headers: { 'x-asked': 'b' } });
    const plain = await onBoth(app, url, '/?a=1', init);
    expect(plain).toMatchObject({ status: 200, body: 'POST ' });
    expect(plain.fields).toMatchObject({
      'x-own': 'own',
      'x-seen': 'b',
      'x-after': 'b 1 true',
      'content-length': '5',
    });
    expect(plain.cookies).toEqual(['seen=1; Path=/; HttpOnly', 'again=2; Path=/']);
    const stream = await onBoth(app, url, '/?stream-length', init);
    expect(stream).toMatchObject({
      body: 'some1',
      fields: { 'content-length': '5', 'x-own': 'own', 'x-seen': 'b' },
    });
  });

  test('F13 on errors, and in place of an answer', async () => {
    const { app, url } = hooked();
    for (const path of ['/none', '/?error', '/closed']) {
      const found = await onBoth(app, url, path, () => ({ method: 'POST' }));
      expect(found.fields['x-seen']).toBe('none');
      expect([path, found.status, found.fields['x-error']]).toEqual(
        path === '/none'
          ? [path, 404, 'NOT_FOUND']
          : path === '/closed'
            ? [path, 503, undefined]
            : [path, 500, 'UNKNOWN'],
      );
    }
    const failed = await onBoth(app, url, '/', () => ({ headers: { 'x-fail': '1' } }));
    expect(failed).toMatchObject({ status: 500, body: INTERNAL_ERROR, fields: { 'x-seen': 'none' } });
  });
});

test('F13 a hook that stands behind the routes sets fields on them too', async () => {
  const { app, url } = serve((plugin) =>
    plugin.onRequest(({ set }) => {
      set.headers['x-late'] = '1';
    }),
  );
  for (const path of ['/', '/health', '/none'])
    expect((await onBoth(app, url, path, () => ({}))).fields['x-late']).toBe('1');
});

test('F13 a hook may give another answer in place of one of the gateway', async () => {
  const { app, url } = serve(undefined, (plugin) =>
    plugin.onAfterHandle({ as: 'global' }, ({ response }) => {
      if (!(response instanceof RpcResponse)) return undefined;
      return new RpcResponse({ ...response, status: 202, fields: { 'x-hook': '1' } });
    }),
  );
  const found = await onBoth(app, url, '/?stream-length', () => ({ method: 'POST' }));
  expect(found).toMatchObject({
    status: 202,
    body: 'some1',
    fields: { 'x-hook': '1', 'content-length': '5' },
  });
});

test('F13 a hook that sets a status alone has it sent', async () => {
  const { app, url } = serve(undefined, (plugin) =>
    plugin.onAfterHandle({ as: 'global' }, ({ set }) => {
      set.status = 202;
    }),
  );
  expect(await onBoth(app, url, '/', () => ({ method: 'POST' }))).toMatchObject({
    status: 202,
    body: 'POST ',
  });
});

const signed = `signed=${await signCookie('good', 'a secret')}`;

describe('routes of a plugin', () => {
  /** By its text nobody sees that it gives a promise. */
  const later = Promise.resolve(new RpcResponse({ status: 203, fields: { 'x-own': 'own' } }));
  const made = Buffer.from('a,b\n');
  const routes = () =>
    serve((app) =>
      app
        .get('/text', () => 'text é')
        .get('/static', 'static')
        .get('/signed', ({ cookie }) => cookie['signed']?.value, {
          cookie: t.Cookie({ signed: t.String() }, { secrets: 'a secret', sign: ['signed'] }),
        })
        .get('/object', () => ({ status: 7, fields: {}, body: 'an object' }))
        .get('/number', () => 7)
        .get('/later', () => later)
        .get('/nothing', () => undefined)
        .get('/status', () => status(418, { error: 'teapot' }))
        .get('/thrown', () => {
          throw status(409, 'thrown');
        })
        .get('/redirect', ({ redirect }) => redirect('/text'))
        .get(
          '/made',
          () => new Response(made, { headers: { 'content-type': 'text/csv', 'set-cookie': 'a=1' } }),
        )
        .get('/large', () => 'x'.repeat(500_000))
        .get('/empty', () => new Response(null, { status: 204 }))
        .get('/unchanged', () => new Response(null, { status: 304, headers: { etag: '"a"' } }))
        .get('/generator', async function* () {
          for (const each of ['a', 'b', 'c']) {
            await Bun.sleep(1);
            yield each;
          }
        })
        .get('/broken-generator', async function* () {
          yield 'a';
          await Bun.sleep(1);
          throw new Error('a secret');
        })
        .get('/file', () => Bun.file(import.meta.path))
        .get('/p/:id/*', ({ params, query, headers }) => ({ params, query, agent: headers['user-agent'] }))
        .post('/body', ({ body }) => body, { body: t.Object({ a: t.Number() }) })
        .post('/text', async ({ request }) => [await request.text(), request.bodyUsed], { parse: 'none' })
        .post('/blob', async ({ request }) => (await request.blob()).size, { parse: 'none' })
        .post(
          '/bytes',
          async ({ request }) => [(await request.clone().text()).length, (await request.bytes()).length],
          { parse: 'none' },
        )
        .post('/form', async ({ request }) => [...(await request.formData())], { parse: 'none' })
        .all('/any', ({ request, server }) => [request.method, typeof server?.port])
        .mount('/mounted', async (request) => new Response(`${request.method} ${await request.text()}`)),
    );

  test.each<[string, number, string, Init?]>([
    ['/text', 200, 'text é'],
    ['/static', 200, 'static'],
    ['/object', 200, '{"status":7,"fields":{},"body":"an object"}'],
    ['/number', 200, '7'],
    ['/later', 203, ''],
    ['/nothing', 200, ''],
    ['/status', 418, '{"error":"teapot"}'],
    ['/thrown', 409, 'thrown'],
    ['/redirect', 302, ''],
    ['/made', 200, 'a,b\n'],
    ['/large', 200, 'x'.repeat(500_000)],
    ['/empty', 204, ''],
    ['/unchanged', 304, ''],
    ['/generator', 200, 'abc'],
    ['/file', 200, readFileSync(import.meta.path, 'utf8')],
    [
      '/p/%20a/b?c=d',
      200,
      '{"params":{"*":"b","id":" a"},"query":{"c":"d"},"agent":"me"}',
      { headers: { 'User-Agent': 'me' } },
    ],
    ['/body', 200, '{"a":1}', { method: 'POST', headers: JSON_HEADERS, body: '{"a":1}' }],
    ['/body', 422, '', { method: 'POST', headers: JSON_HEADERS, body: '{"a":"b"}' }],
    ['/body', 400, 'Bad Request', { method: 'POST', headers: JSON_HEADERS, body: '{"a"' }],
    ['/text', 200, '["t",true]', { method: 'POST', body: 't' }],
    ['/text', 200, '["",false]', { method: 'POST' }],
    ['/blob', 200, '3', { method: 'POST', body: 'abc' }],
    ['/bytes', 200, '[3,3]', { method: 'POST', body: 'abc' }],
    ['/signed', 200, 'good', { headers: { cookie: signed } }],
    ['/signed', 400, '"signed" has invalid cookie signature', { headers: { cookie: `${signed}x` } }],
    [
      '/form',
      200,
      '[["a","1"]]',
      { method: 'POST', headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: 'a=1' },
    ],
    ['/mounted/x', 200, 'PUT put', { method: 'PUT', body: 'put' }],
    ['/text', 404, 'Not found', { method: 'DELETE' }],
    ['/text', 200, '', { method: 'HEAD' }],
    ['/large', 200, '', { method: 'HEAD' }],
    ['/made', 200, '', { method: 'HEAD' }],
  ])('F13 %s is answered %p alike on both', async (path, code, body, init = {}) => {
    const { app, url } = routes();
    const found = await onBoth(app, url, path, () => init);
    expect(found.status).toBe(code);
    expect(found.body).toContain(body);
  });
});

describe('on the wire', () => {
  const routes = () =>
    serve((app) =>
      app
        .get('/generator', async function* () {
          yield 'a';
          await Bun.sleep(1);
          yield 'b';
        })
        .get('/cookies', ({ cookie }) => {
          cookie['a']?.set({ value: '1' });
          cookie['b']?.set({ value: '2' });
          return new Response('c', { headers: { 'content-type': 'text/plain' } });
        })
        .get('/unchanged', () => new Response(null, { status: 304 }))
        .get('/too-long', async () => {
          const body = new ReadableStream({
            async pull(controller) {
              await Bun.sleep(1);
              controller.enqueue('abc');
            },
          });
          return new Response(body, { headers: { 'content-length': '5' } });
        })
        .get('/endless', async () => new Response(new ReadableStream({ pull: () => Bun.sleep(1_000) })))
        .head('/endless', async () => new Response(new ReadableStream({ pull: () => Bun.sleep(1_000) })))
        .get('/failed', () => Response.error()),
    );
  const lines = async (path: string, { method = 'GET', version = '1.1' } = {}) => {
    using caller = await openCaller(routes().url);
    caller.send(`${method} ${path} HTTP/${version}\r\nhost: a\r\nconnection: close\r\n\r\n`);
    await caller.ended;
    return caller
      .text()
      .replace(/date: .*\r\n/, '')
      .split('\r\n')
      .filter((line) => line !== 'connection: close');
  };

  test.each<[string, Parameters<typeof lines>[1], readonly string[]]>([
    // The first piece comes with the next: what is there at once is gathered.
    [
      '/generator',
      {},
      [
        'HTTP/1.1 200 OK',
        'content-type: text/plain',
        'cache-control: no-cache',
        'transfer-encoding: chunked',
        '',
        '1',
        'a',
        '1',
        'b',
        '0',
        '',
        '',
      ],
    ],
    [
      '/generator',
      { version: '1.0' },
      ['HTTP/1.1 200 OK', 'content-type: text/plain', 'cache-control: no-cache', '', 'ab'],
    ],
    [
      '/cookies',
      {},
      [
        'HTTP/1.1 200 OK',
        'content-type: text/plain',
        'set-cookie: a=1; Path=/',
        'set-cookie: b=2; Path=/',
        'content-length: 1',
        '',
        'c',
      ],
    ],
    ['/unchanged', {}, ['HTTP/1.1 304 ', '', '']],
    ['/endless', { method: 'HEAD' }, ['HTTP/1.1 200 OK', 'transfer-encoding: chunked', '', '']],
    ['/too-long', {}, ['HTTP/1.1 200 OK', 'content-length: 5', '', 'abc']],
    ['/failed', {}, ['HTTP/1.1 500 Internal Server Error', 'content-length: 0', '', '']],
  ])('F13 %s %p is framed once', async (path, how, expected) => {
    const found = await lines(path, how);
    expect(found.toSorted()).toEqual([...expected].toSorted());
  });

  test('F13 a stream in answer to HEAD is left, and its head sent alone', async () => {
    let cancelled = 0;
    const { app, url } = serve((plugin) =>
      plugin.head('/s', () => {
        const body = streamBodyOf(new ReadableStream({ cancel: () => void cancelled++ }));
        return new RpcResponse({ status: 200, fields: {}, body, length: 5 });
      }),
    );
    const found = await onBoth(app, url, '/s', () => ({ method: 'HEAD' }));
    expect([found.fields['content-length'], cancelled]).toEqual(['5', 2]);
  });

  test('F13 a body above a megabyte is an error of its route, and not a shorter one', async () => {
    const { url } = serve((plugin) =>
      plugin.post('/text', async ({ request }) => (await request.text()).length, { parse: 'none' }),
    );
    const post = (length: number) =>
      fetch(`${url.origin}/text`, { method: 'POST', body: 'x'.repeat(length) });
    expect(await (await post(1_048_576)).text()).toBe('1048576');
    expect((await post(1_048_577)).status).toBe(500);
  });

  test('F13 a caller that leaves ends the stream of its route', async () => {
    const left = Promise.withResolvers<void>();
    const pull = (controller: ReadableStreamDefaultController) =>
      Bun.sleep(1).then(() => controller.enqueue('x'));
    const cancel = () => left.resolve();
    const { url } = serve((app) => app.get('/s', () => new Response(new ReadableStream({ pull, cancel }))));
    const caller = await openCaller(url);
    caller.send('GET /s HTTP/1.1\r\nhost: a\r\n\r\n');
    await caller.until('1\r\nx\r\n', 3);
    caller.reset();
    await left.promise;
  });
});

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { Elysia, status, t } from 'elysia';
import { createAdapter, Direct } from '../../gateway/listener/adapter.ts';
import type { RpcRequest, RpcResponse } from '../../gateway/listener/http.ts';
import { createListener } from '../../gateway/listener/listener.ts';
import { createApp } from '../../gateway/server.ts';
import { systemClock } from '../../shared/clock.ts';
import { CHUNKED, chunk, plain, type RawExchange, startRawBackend } from '../fakes/raw-backend.ts';
import { openCaller } from '../fakes/raw-caller.ts';
import { JSON_HEADERS, startGateway, testConfig } from '../started/gateway.ts';
import { streamBodyOf } from './stream-body.ts';

/** Fields of a connection, which no `Response` has. */
const HOP = ['date', 'connection', 'transfer-encoding', 'keep-alive'];

/** What a caller sees of an answer: a body that is cut is told from a whole one. */
async function seen(response: Response) {
  const fields = Object.fromEntries([...response.headers].filter(([name]) => !HOP.includes(name)));
  const cookies = response.headers.getSetCookie();
  let body = '';
  try {
    for await (const piece of response.body ?? []) body += Buffer.from(piece).toString();
  } catch {
    body = 'cut';
  }
  return { status: response.status, fields, cookies, body };
}

type App = Readonly<{ handle(request: Request): Promise<Response> }>;
type Init = Readonly<{ method?: string; headers?: Record<string, string>; body?: string }>;

/** The answer to both, which must be the same; a listener adds the length of a whole body where a `Response` says none. */
async function onBoth(app: App, url: URL, path: string, init: () => Init) {
  const byHandle = await seen(await app.handle(new Request(`http://localhost${path}`, init())));
  const bySocket = await seen(await fetch(`${url.origin}${path}`, { redirect: 'manual', ...init() }));
  const { 'content-length': length, ...fields } = bySocket.fields;
  if (length === undefined || byHandle.fields['content-length'] !== undefined)
    expect(byHandle).toEqual(bySocket);
  else expect({ ...byHandle, length }).toEqual({ ...bySocket, fields, length: lengthOf(bySocket.body) });
  return bySocket;
}
const lengthOf = (body: string) => String(Buffer.byteLength(body));

describe('the gateway answers app.handle as it answers a connection', () => {
  const CALL = (method: string) => ({ jsonrpc: '2.0', id: 'x" \\ é', method, params: [1] });
  const long = 'x'.repeat(300_000);
  const resultOf = (text: string, result: string) => {
    const body = Buffer.from(text.slice(text.indexOf('\r\n\r\n') + 4), 'latin1').toString();
    const { id } = JSON.parse(body) as { id: unknown };
    return `{"jsonrpc":"2.0","result":${result},"id":${JSON.stringify(id)}}`;
  };
  const script = async ({ text, send, reset }: RawExchange) => {
    if (text.includes('getSlot')) return send(plain(resultOf(text, '7')));
    const body = resultOf(text, `"${long}"`);
    if (text.includes('getProgramAccounts')) {
      await send(CHUNKED + chunk(body.slice(0, 100_000)));
      return send(`${chunk(body.slice(100_000))}0\r\n\r\n`);
    }
    await send(plain(body).slice(0, text.includes('getBlock"') ? undefined : 150_000));
    if (!text.includes('getBlock"')) reset();
  };
  let backend: ReturnType<typeof startRawBackend>;
  let gateway: Awaited<ReturnType<typeof startGateway>>;
  beforeAll(async () => {
    backend = startRawBackend(script);
    gateway = await startGateway({ backends: [{ name: 'a', url: backend.url }] });
    await gateway.gateway.probeAll(new AbortController().signal);
  });
  afterAll(async () => {
    await gateway[Symbol.asyncDispose]();
    backend[Symbol.dispose]();
  });

  const post = (body: unknown) => () => ({
    method: 'POST',
    headers: { ...JSON_HEADERS, origin: 'https://a.example', 'X-Token': gateway.key() },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });

  test.each<[string, string, () => Init, number, string]>([
    ['a call', '/', post(CALL('getSlot')), 200, '"result":7'],
    ['a call with a query', '/?a=1', post(CALL('getSlot')), 200, '"result":7'],
    ['a batch', '/', post([CALL('getSlot'), CALL('nope'), CALL('getSlot')]), 200, '"result":7'],
    ['a stream with a length', '/', post(CALL('getBlock')), 200, long],
    ['a stream without one', '/', post(CALL('getProgramAccounts')), 200, long],
    ['broken JSON', '/', post('{'), 400, '-32700'],
    ['a body that is too long', '/', post(`"${'x'.repeat(1 << 20)}"`), 413, 'too large'],
    ['a call without a key', '/', () => ({ method: 'POST', headers: JSON_HEADERS, body: '{}' }), 401, 'key'],
    ['another type', '/', () => ({ method: 'POST', headers: { 'x-token': gateway.key() } }), 415, 'Type'],
    ['a preflight', '/', () => ({ method: 'OPTIONS', headers: { origin: 'https://a.example' } }), 204, ''],
    ['GET', '/', () => ({ headers: { 'x-token': gateway.key() } }), 405, 'Only POST'],
    ['HEAD', '/', () => ({ method: 'HEAD', headers: { 'x-token': gateway.key() } }), 405, ''],
    [
      'another method',
      '/',
      () => ({ method: 'PURGE', headers: { 'x-token': gateway.key() } }),
      405,
      'Only POST',
    ],
    ['another path', '/rpc?api-key=1', post(CALL('getSlot')), 404, 'Not found'],
    ['HEAD of another path', '/rpc', () => ({ method: 'HEAD' }), 404, ''],
    ['health', '/health', () => ({}), 200, 'ok\n'],
    ['HEAD of health', '/health', () => ({ method: 'HEAD' }), 200, ''],
    ['readiness', '/health/ready', () => ({}), 200, 'ok\n'],
    ['liveness', '/health/live', () => ({}), 200, 'ok\n'],
    ['POST to health', '/health', () => ({ method: 'POST' }), 404, 'Not found'],
    // The last: its backend is behind others then.
    ['a stream that is cut', '/', post(CALL('getBlocks')), 200, 'cut'],
  ])('F13 %s', async (_name, path, init, code, part) => {
    const answer = await onBoth(gateway.app, gateway.url, path, init);
    expect([answer.status, answer.body.includes(part)]).toEqual([code, true]);
    expect(answer.body === '').toBe(part === '');
  });

  test('F13 by app.handle too, a stream is held back while it is not read, and left when its reader leaves', async () => {
    const left = Promise.withResolvers<void>();
    let sent = 0;
    backend.script(async ({ text, send, gone }: RawExchange) => {
      await send(`${CHUNKED}${chunk(resultOf(text, `"${long}`).slice(0, -10))}`);
      void gone.then(left.resolve);
      for (; sent < 2_000; sent++) await send(chunk(long));
    });
    const request = new Request('http://localhost/', post(CALL('getProgramAccounts'))());
    const { body } = await gateway.app.handle(request);
    await Bun.sleep(200); // that no more comes cannot be awaited
    expect(sent).toBeLessThan(200);
    await body?.cancel();
    await left.promise;
    backend.script(script);
  });
});

const text = (body: string): RpcResponse => ({
  status: 200,
  fields: { 'x-own': 'own' },
  body: Buffer.from(body),
});

/** Answers with the method and what it is asked for in the query: an error, or a stream of 5 bytes, whole or cut. */
async function answer({ method, url, headers }: RpcRequest): Promise<RpcResponse> {
  const [, how = ''] = url.split('?');
  if (how === 'error') throw new Error('a secret');
  if (!how.startsWith('stream')) return text(`${method} ${headers.get('X-Own') ?? ''}`);
  const isCut = how.includes('cut');
  const pieces = new ReadableStream<Uint8Array>({
    pull(controller) {
      controller.enqueue(Buffer.from('some'));
      controller.enqueue(Buffer.from('1'));
      if (isCut) controller.error(new Error('cut'));
      else controller.close();
    },
  });
  return { ...text(''), body: streamBodyOf(pieces), length: how.includes('length') ? 5 : undefined };
}

const open: { stop(isNow?: boolean): Promise<unknown> }[] = [];
afterEach(async () => {
  for (const each of open.splice(0)) await each.stop(true);
});

/** The app of the gateway behind plugins, on a port. */
function serve(plug: (app: Elysia) => unknown = () => undefined) {
  const listener = createListener(testConfig({}).gateway, { clock: systemClock, shared: false });
  const adapter = createAdapter(listener);
  const app = new Elysia({ adapter, strictPath: true });
  plug(app);
  const health = () => ({ ok: true, sentence: 'ok' });
  app.use(createApp({ answer, health }, adapter)).listen(0);
  open.push(app);
  return { app, url: app.server?.url ?? new URL('http://none') };
}

describe('hooks of a plugin work by app.handle and on connections', () => {
  const hooked = () =>
    serve((app) =>
      app
        .onRequest(({ request, set }) => {
          set.headers['x-seen'] = request.headers.get('X-Asked') ?? 'none';
          if (new URL(request.url).pathname === '/closed') return status(503, 'closed');
          if (request.headers.has('x-fail')) throw new Error('a secret');
          return undefined;
        })
        .derive({ as: 'global' }, ({ headers, query }) => ({ asked: `${headers['x-asked']} ${query['a']}` }))
        .onAfterHandle({ as: 'global' }, ({ response, asked, set, cookie }) => {
          set.headers['x-after'] = `${asked} ${response instanceof Direct}`;
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
const INTERNAL_ERROR = '{"jsonrpc":"2.0","error":{"code":-32603,"message":"Internal error"},"id":null}';

describe('without a hook', () => {
  test.each([
    ['a stream that is cut before its length', '/?stream-cut-length', 200, 'cut', '5'],
    ['a stream that is cut', '/?stream-cut', 200, 'cut', undefined],
    ['a stream', '/?stream', 200, 'some1', undefined],
    ['an error', '/?error', 500, INTERNAL_ERROR, '78'],
  ])('F13 %s is the same on both', async (_name, path, code, body, length) => {
    const { app, url } = serve();
    const found = await onBoth(app, url, path, () => ({ method: 'POST' }));
    expect([found.status, found.body, found.fields['content-length']]).toEqual([code, body, length]);
  });

  test('an error hook that fails itself costs a bare 500', async () => {
    const { url } = serve((app) =>
      app.onError({ as: 'global' }, () => {
        throw new Error('a secret');
      }),
    );
    expect(await seen(await fetch(`${url.origin}/none`))).toMatchObject({ status: 500, body: '' });
  });
});

describe('routes of a plugin', () => {
  const made = Buffer.from('a,b\n');
  const routes = () =>
    serve((app) =>
      app
        .get('/text', () => 'text é')
        .get('/static', 'static')
        .get('/object', () => ({ status: 7, fields: {}, body: 'an object' }))
        .get('/number', () => 7)
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
        .post('/form', async ({ request }) => [...(await request.formData())], { parse: 'none' })
        .all('/any', ({ request, server }) => [request.method, typeof server?.port])
        .mount('/mounted', async (request) => new Response(`${request.method} ${await request.text()}`)),
    );

  test.each<[string, number, string, Init?]>([
    ['/text', 200, 'text é'],
    ['/static', 200, 'static'],
    ['/object', 200, '{"status":7,"fields":{},"body":"an object"}'],
    ['/number', 200, '7'],
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

  test('F13 a call goes to its handler without a look at query, headers or body', () => {
    const { app } = serve();
    const route = app.routes.find(({ method, path }) => method === 'POST' && path === '/');
    const way = 'async function handle(c){try{return mapCompactResponse(await handler(c),c.request)';
    expect(String(route?.compile())).toStartWith(way);
  });
});

describe('while it listens', () => {
  test('F13 a plugin that is loaded late works on both', async () => {
    const { app, url } = serve();
    const loaded = Promise.withResolvers<Elysia>();
    app.use(loaded.promise);
    expect((await onBoth(app, url, '/late', () => ({}))).status).toBe(404);
    loaded.resolve(new Elysia().get('/late', () => 'late') as unknown as Elysia); // its routes are in its type
    await app.modules;
    expect(await onBoth(app, url, '/late', () => ({}))).toMatchObject({ status: 200, body: 'late' });
  });

  test('F13 app.stop drains, runs the stop hooks once, and cuts when it is told to', async () => {
    let stops = 0;
    const release = Promise.withResolvers<void>();
    const { app, url } = serve((plugin) =>
      plugin
        .onStop(() => void stops++)
        .get('/slow', async () => {
          await release.promise;
          return 'slow';
        }),
    );
    using slow = await openCaller(url);
    slow.send('GET /slow HTTP/1.1\r\nhost: a\r\n\r\n');
    await seen(await fetch(`${url.origin}/health/live`));
    const stopped = Promise.all([app.stop(), app.stop()]);
    const during = await fetch(`${url.origin}/health/live`);
    expect([during.status, during.headers.get('connection')]).toEqual([200, 'close']);
    release.resolve();
    await stopped;
    expect(await slow.ended).toBe('closed');
    expect(slow.text()).toEndWith('\r\n\r\nslow');
    expect([stops, app.server]).toEqual([1, null]);
    expect(await fetch(url).catch(({ code }) => code)).toBe('ECONNREFUSED');
  });

  test('F13 app.stop(true) cuts what is under way, also while it drains', async () => {
    const { app, url } = serve((plugin) => plugin.get('/never', () => new Promise(() => undefined)));
    using caller = await openCaller(url);
    caller.send('GET /never HTTP/1.1\r\nhost: a\r\n\r\n');
    await seen(await fetch(`${url.origin}/health/live`));
    const drained = app.stop();
    await app.stop(true);
    await drained;
    expect(await caller.ended).toBe('ECONNRESET');
  });
});

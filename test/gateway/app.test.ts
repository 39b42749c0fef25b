import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { Elysia } from 'elysia';
import { CHUNKED, chunk, plain, type RawExchange, startRawBackend } from '../fakes/raw-backend.ts';
import { openCaller } from '../fakes/raw-caller.ts';
import { atRest } from '../faults/gateway-process.ts';
import { JSON_HEADERS, startGateway } from '../started/gateway.ts';
import { type Init, onBoth, seen, serve, stopAll } from './both-ways.ts';

afterEach(stopAll);

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

  test('F13 every route of the app is answered alike, and HEAD as GET', async () => {
    for (const { method, path } of gateway.app.routes) {
      const methods = method === 'GET' ? ['GET', 'HEAD'] : [method === 'ALL' ? 'PUT' : method];
      for (const each of methods) {
        const { status } = await onBoth(gateway.app, gateway.url, path, () => ({ method: each }));
        expect([each, path, status]).toEqual([
          each,
          path,
          path === '/' ? (each === 'POST' ? 415 : 405) : 200,
        ]);
      }
    }
  });

  test('F13 app.handle finds the path behind a host as short as may be', async () => {
    for (const host of ['a', 'ab', 'gateway.example'])
      expect((await gateway.app.handle(new Request(`http://${host}/health/live`))).status).toBe(200);
  });

  test('F13 a call of app.handle holds its permit until its answer has been read', async () => {
    await using single = await startGateway({
      backends: [{ name: 'a', url: backend.url }],
      plans: { single: { rps: 1_000, burst: 1_000, in_flight: 1 } },
    });
    const init = {
      ...post(CALL('getBlock'))(),
      headers: { ...JSON_HEADERS, 'x-token': single.key('single') },
    };
    const ask = () => single.app.handle(new Request('http://localhost/', init));
    const first = await ask();
    const second = await ask();
    expect([first.status, second.status]).toEqual([200, 429]);
    await first.text();
    expect((await ask()).status).toBe(200);
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
    await atRest(() => sent, 30);
    expect(sent).toBeLessThan(200);
    await body?.cancel();
    await left.promise;
    backend.script(script);
  });
});

const INTERNAL_ERROR = '{"jsonrpc":"2.0","error":{"code":-32603,"message":"Internal error"},"id":null}';

describe('what a call comes to is the same on both', () => {
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

  test.each<[string, unknown]>([
    ['a number as its code', Object.assign(new Error('a secret'), { code: 5, status: 418 })],
    ['a code of Elysia', Object.assign(new Error('a secret'), { code: 'NOT_FOUND' })],
    ['an odd status', Object.assign(new Error('a secret'), { code: 'VALIDATION', status: 'x' })],
    ['no members', 'a secret'],
  ])('F13 the message of an error with %s is not sent', async (_name, error) => {
    const { app, url } = serve((plugin) =>
      plugin.get('/thrown', () => {
        throw error;
      }),
    );
    expect(await onBoth(app, url, '/thrown', () => ({}))).toMatchObject({
      status: 500,
      body: INTERNAL_ERROR,
    });
  });

  test('an error hook that fails itself costs a bare 500', async () => {
    const { url } = serve(undefined, (app) =>
      app.onError({ as: 'global' }, () => {
        throw new Error('a secret');
      }),
    );
    expect(await seen(await fetch(`${url.origin}/none`))).toMatchObject({ status: 500, body: '' });
  });
});

describe('while it listens', () => {
  test('F13 a call goes to its handler without a look at query, headers or body', () => {
    const { app } = serve();
    const route = app.routes.find(({ method, path }) => method === 'POST' && path === '/');
    const way = 'async function handle(c){try{return mapCompactResponse(await handler(c),c.request)';
    expect(String(route?.compile())).toStartWith(way);
  });

  test('F13 a plugin that is loaded late works on both', async () => {
    const { app, url } = serve();
    const loaded = Promise.withResolvers<Elysia>();
    app.use(loaded.promise);
    expect((await onBoth(app, url, '/late', () => ({}))).status).toBe(404);
    loaded.resolve(new Elysia().get('/late', () => 'late') as unknown as Elysia); // its routes are in its type
    await app.modules;
    expect(await onBoth(app, url, '/late', () => ({}))).toMatchObject({ status: 200, body: 'late' });
  });

  test('F13 a plugin that loads while it listens works on both', async () => {
    const loaded = Promise.withResolvers<void>();
    const { app, url } = serve((plugins) =>
      plugins.use(async (plugin) => {
        await loaded.promise;
        return plugin.get('/late', () => 'late');
      }),
    );
    loaded.resolve();
    await app.modules;
    expect(await onBoth(app, url, '/late', () => ({}))).toMatchObject({ status: 200, body: 'late' });
  });

  test('F13 app.listen runs the start hooks, and calls back with its server', () => {
    const seenBy: unknown[] = [];
    const note = ({ server }: Pick<Elysia, 'server'>) => seenBy.push(['start', server?.port]);
    const { url } = serve(
      (plugin) => plugin.onStart(note),
      undefined,
      ({ port }) => {
        seenBy.push(port);
      },
    );
    const port = Number(url.port);
    expect(seenBy).toEqual([['start', port], port]);
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

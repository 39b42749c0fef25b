import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { type RpcRequest, RpcResponse } from '../../gateway/listener/rpc.ts';
import { listen } from '../../gateway/server.ts';
import { systemClock } from '../../shared/clock.ts';
import { openCaller } from '../fakes/raw-caller.ts';
import { testConfig } from '../started/gateway.ts';

const INTERNAL_ERROR = '{"jsonrpc":"2.0","error":{"code":-32603,"message":"Internal error"},"id":null}';
const NOT_FOUND = '{"error":"Not found. The RPC endpoint is POST /."}';

describe('routes', () => {
  const health = () => ({ ok: true, sentence: 'ok' });
  const answer = ({ headers, method }: RpcRequest) => {
    if (headers.has('throw')) throw new Error('a secret');
    if (headers.has('reject')) return Promise.reject(new Error('a secret'));
    return new RpcResponse({ status: 202, fields: { 'x-own': '1' }, body: Buffer.from(method) });
  };
  let url: URL;
  let close: () => Promise<void>;
  beforeAll(() => {
    const options = { clock: systemClock, shared: false };
    const listening = listen(testConfig({}).gateway, { answer, health }, options);
    if (listening.kind === 'refused') throw new Error(listening.sentence);
    ({ url } = listening);
    close = () => listening.close(100, 0);
  });
  afterAll(() => close());

  test.each(['POST', 'GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND'])(
    '%s / is answered, with any query, by the response as it was given',
    async (method) => {
      for (const path of ['/', '/?api-key=a']) {
        const response = await fetch(new URL(path, url), { method });
        const own = response.headers.get('x-own');
        expect([response.status, own, await response.text()]).toEqual([202, '1', method]);
      }
    },
  );

  test.each([
    ['POST', 'throw'],
    ['GET', 'reject'],
  ])('an error of %s / (%s) is answered with -32603 and without its message', async (method, how) => {
    const response = await fetch(url, { method, headers: { [how]: '1' } });
    expect([response.status, response.headers.get('content-type'), await response.text()]).toEqual([
      500,
      'application/json; charset=utf-8',
      INTERNAL_ERROR,
    ]);
  });

  test.each([
    ['POST', '/rpc'],
    ['GET', '/favicon.ico'],
    ['POST', '/health'],
    ['OPTIONS', '/v1/'],
    ['GET', '/health/'],
    ['GET', '/%zz'],
  ])('F11 %s %s is answered with 404 in JSON', async (method, path) => {
    const response = await fetch(`${url.origin}${path}`, { method });
    expect([response.status, response.headers.get('content-type'), await response.text()]).toEqual([
      404,
      'application/json',
      NOT_FOUND,
    ]);
  });

  test.each(['a', 'ab', 'gateway.example'])('a request for the host %s finds its path', async (host) => {
    using caller = await openCaller(url);
    caller.send(`PUT / HTTP/1.1\r\nhost: ${host}\r\ncontent-length: 0\r\n\r\n`);
    expect(await caller.until('\r\n\r\n')).toStartWith('HTTP/1.1 202 ');
    caller.send(`GET /health HTTP/1.1\r\nhost: ${host}\r\n\r\n`);
    expect(await caller.until('ok\n')).toContain('HTTP/1.1 200 ');
  });
});

test('M9 a gateway that can serve nothing is alive and not ready (§7)', async () => {
  const stages = {
    answer: () => new RpcResponse({ status: 200, fields: {} }),
    health: () => ({ ok: false, sentence: 'no backend' }),
  };
  const listening = listen(testConfig({}).gateway, stages, { clock: systemClock, shared: false });
  if (listening.kind === 'refused') throw new Error(listening.sentence);
  const at = async (path: string) => {
    const response = await fetch(new URL(path, listening.url));
    return [response.status, await response.text()];
  };
  expect(await at('/health/live')).toEqual([200, 'ok\n']);
  expect(await at('/health/ready')).toEqual([503, 'no backend\n']);
  expect(await at('/health')).toEqual([503, 'no backend\n']);
  await listening.close(100, 0);
});

describe('TLS', () => {
  const TLS_FOLDER = join(import.meta.dir, '../fixtures/tls');
  const listenWith = (cert: string, key: string) => {
    const tls = { cert: join(TLS_FOLDER, cert), key: join(TLS_FOLDER, key) };
    const stages = {
      answer: ({ method }: RpcRequest) =>
        new RpcResponse({ status: 200, fields: {}, body: Buffer.from(method) }),
      health: () => ({ ok: true, sentence: 'ok' }),
    };
    return listen(testConfig({ gateway: { tls } }).gateway, stages, { clock: systemClock, shared: false });
  };

  test('serves every method with the certificate and key of the config', async () => {
    const listening = listenWith('localhost.pem', 'localhost-key.pem');
    if (listening.kind === 'refused') throw new Error(listening.sentence);
    const ca = await Bun.file(join(TLS_FOLDER, 'ca.pem')).text();
    const url = `https://localhost:${listening.url.port}/`;
    for (const method of ['POST', 'OPTIONS', 'GET'])
      expect(await (await fetch(url, { method, tls: { ca } })).text()).toBe(method);
    await listening.close(100, 0);
  });

  test('is refused in one sentence when the key is none of the certificate', () => {
    expect(listenWith('localhost.pem', 'ca.pem')).toMatchObject({
      kind: 'refused',
      sentence: expect.stringMatching(/^The certificate and key of gateway\.tls cannot be used \(.+\)\.$/),
    });
  });
});

import { describe, expect, test } from 'bun:test';
import { plain, startRawBackend } from '../fakes/raw-backend.ts';
import { openCaller } from '../fakes/raw-caller.ts';
import { startGateway } from '../started/gateway.ts';
import { shared } from '../started/shared.ts';
import { callText, resultText } from './pair.ts';

const CALL = callText(1, 'getSlot');
const GOOD = resultText(7);
const ORIGIN = { origin: 'https://page.example' };

const backend = shared(startRawBackend((exchange) => exchange.send(plain(GOOD))));
const url = `${backend.url}rpc/v1?token=of-the-operator`;
const gateway = shared(
  await startGateway({
    backends: [{ name: 'a', url, headers: { authorization: 'Bearer of-the-operator' } }],
    plans: { trial: { rps: 1_000, burst: 1_000 }, one: { rps: 0.001, burst: 1 } },
  }),
);
const key = gateway.key();

/** The names of a message's headers, in its order. */
const namesOf = (head: string) =>
  head
    .slice(0, head.indexOf('\r\n\r\n'))
    .split('\r\n')
    .slice(1)
    .map((line) => line.slice(0, line.indexOf(':')).toLowerCase());

/** Posts over a bare socket with these head lines; gives the answer and what the backend saw. */
async function ask(lines: string, target = '/') {
  const seen = Promise.withResolvers<string>();
  backend.script((exchange) => {
    seen.resolve(exchange.text);
    return exchange.send(plain(GOOD));
  });
  using caller = await openCaller(gateway.url);
  const head = `POST ${target} HTTP/1.1\r\nhost: gateway\r\ncontent-type: application/json\r\n`;
  caller.send(Buffer.from(`${head}${lines}content-length: ${CALL.length}\r\n\r\n${CALL}`, 'latin1'));
  return { text: await caller.until(GOOD), upstream: await seen.promise };
}

describe('F7 nothing of a caller but its call and its Accept-Encoding reaches a backend', () => {
  const OURS = ['host', 'content-type', 'authorization', 'accept-encoding', 'content-length'];
  const hostile = [
    'connection: keep-alive, authorization, content-type',
    'cookie: session=1',
    'x-forwarded-for: 10.0.0.1',
    'x-real-ip: 10.0.0.1',
    'forwarded: for=10.0.0.1',
    'via: 1.1 somewhere',
    'origin: https://page.example',
    'referer: https://page.example/?api-key=secret',
    'user-agent: curl',
    'x-bigtable: disabled',
    'keep-alive: timeout=5',
    'proxy-authorization: Basic eA==',
    'te: trailers',
    'trailer: x-a',
    'upgrade-insecure-requests: 1',
    'x-request-id: 1',
  ].join('\r\n');

  test('E2 F7 headers of the caller, hop-by-hop ones and those that Connection names too, with the key in a header', async () => {
    const { upstream } = await ask(`${hostile}\r\nx-token: ${key}\r\nauthorization: Bearer ${key}\r\n`);
    expect(namesOf(upstream)).toEqual(OURS);
    expect(upstream).not.toContain(key);
    expect(upstream).toContain('\r\nauthorization: Bearer of-the-operator\r\n');
    expect(upstream).toContain(`\r\nhost: ${new URL(backend.url).host}\r\n`);
  });

  test("E2 F7 the caller's path and query, with the key in the query", async () => {
    const { upstream } = await ask('', `/?api-key=${key}&token=of-the-caller`);
    expect(upstream).toStartWith('POST /rpc/v1?token=of-the-operator HTTP/1.1\r\n');
    expect(upstream).not.toContain(key);
    expect(upstream).not.toContain('of-the-caller');
  });

  test.each(['gzip\xc4\x8d\xc4\x8ax-evil: 1', 'gzip\x8dx-evil: 1', '\xff'])(
    'F7 an Accept-Encoding of odd bytes (%j) stays one header line',
    async (value) => {
      const { text, upstream } = await ask(`x-token: ${key}\r\naccept-encoding: ${value}\r\n`);
      expect(text).toStartWith('HTTP/1.1 200 ');
      expect(namesOf(upstream)).toEqual(OURS);
    },
  );
});

test('F7 nothing of a backend but its answer and its encoding reaches a caller', async () => {
  const theirs = [
    'set-cookie: a=b',
    'server: nginx',
    'via: 1.1 cache',
    'x-powered-by: node',
    'keep-alive: timeout=5',
    'connection: keep-alive, x-a',
    'x-a: b',
    'proxy-authenticate: Basic',
    'alt-svc: h3=":443"',
    'strict-transport-security: max-age=1',
    'access-control-allow-origin: https://other.example',
    'access-control-allow-credentials: true',
    'x-credits-left: 1000000',
    'retry-after: 99',
    'content-security-policy: none',
    'date: Thu, 01 Jan 1970 00:00:00 GMT',
    'content-type: text/html',
  ].join('\r\n');
  backend.script((exchange) => exchange.send(plain(GOOD, `${theirs}\r\n`)));
  const answer = await gateway.post(CALL, gateway.key('trial', 10));
  expect([...answer.headers.keys()].toSorted()).toEqual([
    'content-length',
    'content-type',
    'date',
    'ratelimit',
    'ratelimit-policy',
    'x-credits-cost',
    'x-credits-left',
  ]);
  expect(answer.headers.get('x-credits-left')).toBe('9');
  expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
  expect(answer.headers.get('date')).not.toContain('1970');
});

describe('F10 a page of any origin', () => {
  const preflight = (headers: Record<string, string>) =>
    fetch(gateway.url, {
      method: 'OPTIONS',
      headers: { ...ORIGIN, 'access-control-request-method': 'POST', ...headers },
    });

  test.each<[string, Record<string, string>]>([
    ['without a key', { 'access-control-request-headers': 'content-type, x-token' }],
    ['with a wrong key', { 'x-token': 'sluice_wrong' }],
    ['with a cookie', { cookie: 'session=1' }],
    ['from nowhere', { origin: 'null' }],
  ])('F10 may ask before its request %s, and is never allowed credentials', async (_name, headers) => {
    const answer = await preflight(headers);
    expect([answer.status, await answer.text()]).toEqual([204, '']);
    expect(answer.headers.get('access-control-allow-origin')).toBe('*');
    expect(answer.headers.get('access-control-allow-methods')).toBe('OPTIONS, POST');
    expect(answer.headers.get('access-control-allow-headers')).toContain('x-token');
    expect(answer.headers.has('access-control-allow-credentials')).toBe(false);
  });

  test('F10 gets the list of headers it may send, its own and those of the SDKs, and how long to cache it', async () => {
    const { headers } = await preflight({ 'access-control-request-headers': 'content-type,solana-client' });
    expect(headers.get('access-control-allow-headers')).toBe('content-type,solana-client');
    expect(headers.get('access-control-max-age')).toBe('86400');
  });

  test.each([
    ['x-a, <script>, x-b', 'x-a, x-b'],
    ['x a,x-b', 'x-b'],
    ['\xe9', 'content-type, accept, authorization, x-token, solana-client'],
    [`x${'\t '.repeat(5_000)}x`, 'content-type, accept, authorization, x-token, solana-client'],
  ])('F10 gets of %j the names alone', async (list, names) => {
    using caller = await openCaller(gateway.url);
    const head = `OPTIONS / HTTP/1.1\r\nhost: a\r\naccess-control-request-headers: ${list}\r\n\r\n`;
    caller.send(Buffer.from(head, 'latin1'));
    expect(await caller.until('\r\n\r\n')).toContain(`\r\naccess-control-allow-headers: ${names}\r\n`);
  });

  test('F10 may read every answer and refusal with its fields, and is never allowed credentials (§2.1.5)', async () => {
    const large = GOOD.replace('7', `"${'a'.repeat(1 << 20)}"`);
    backend.script(({ text, send }) => send(plain(text.includes('getBlock') ? large : GOOD)));
    const limited = gateway.key('one');
    const init = { headers: ORIGIN };
    const answers = [
      await gateway.post(CALL, limited, init),
      await gateway.post(CALL, limited, init),
      await gateway.post(CALL.replace('getSlot', 'getBlock'), key, init),
      await gateway.post(`[${CALL},${CALL}]`, key, init),
      await gateway.post(CALL, undefined, init),
      await gateway.post(CALL, gateway.key('trial', 0), init),
      await gateway.post('{', key, init),
      await gateway.post(CALL, key, { headers: { ...ORIGIN, 'content-type': 'text/plain' } }),
      await fetch(gateway.url, init),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 429, 200, 200, 401, 402, 400, 415, 405]);
    for (const { headers } of answers) {
      expect(headers.get('access-control-allow-origin')).toBe('*');
      expect(headers.get('access-control-expose-headers')).toContain('retry-after, ');
      expect(headers.has('access-control-allow-credentials')).toBe(false);
    }
    expect((await answers[2]?.text())?.length).toBe(large.length);
    const plainAnswer = await gateway.post(CALL, key);
    expect(plainAnswer.headers.has('access-control-allow-origin')).toBe(false);
  });
});

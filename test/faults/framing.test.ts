import { describe, expect, test } from 'bun:test';
import { CHUNKED, chunk, plain, type RawExchange } from '../fakes/raw-backend.ts';
import { openCaller } from '../fakes/raw-caller.ts';
import { callText, rawPair, resultText } from './pair.ts';

const CALL = callText(1, 'getSlot');
const SEND = callText(2, 'sendTransaction');
const GOOD = resultText(7);
const LENGTH = `content-length: ${CALL.length}\r\n`;
const AS_CHUNK = `${CALL.length.toString(16)}\r\n${CALL}\r\n`;
const IN_CHUNKS = `${AS_CHUNK}0\r\n\r\n`;

const { backend, gateway } = await rawPair({}, undefined, (exchange) => exchange.send(plain(GOOD)));
const key = gateway.key();
/** What every request here begins with. */
const HEAD = `host: gateway\r\nx-token: ${key}\r\ncontent-type: application/json\r\n`;

/** A request that a careless reader would find behind the first. */
const smuggled = () => `POST / HTTP/1.1\r\n${HEAD}content-length: ${SEND.length}\r\n\r\n${SEND}`;

/** How much stands in a request, and how it is refused, is in `request-tables` of the listener. */
test.each<[string, string, string]>([
  ['Content-Length and Transfer-Encoding', `${LENGTH}transfer-encoding: chunked\r\n`, IN_CHUNKS],
  ['two Content-Lengths', `${LENGTH}content-length: ${CALL.length + 1}\r\n`, CALL],
  ['a chunk without its line end', 'transfer-encoding: chunked\r\n', `${AS_CHUNK.slice(0, -2)}XX0\r\n\r\n`],
  ['much in extensions', 'transfer-encoding: chunked\r\n', `1;${'x'.repeat(999)}\r\n \r\n`.repeat(17)],
  [
    'long trailers',
    'transfer-encoding: chunked\r\n',
    `${AS_CHUNK}0\r\n${`x: ${'a'.repeat(995)}\r\n`.repeat(5)}\r\n`,
  ],
  ['a trailer with a control character', 'transfer-encoding: chunked\r\n', `${AS_CHUNK}0\r\nx: \x07\r\n\r\n`],
  ['a head of 100 KB', `x-a: ${'a'.repeat(100_000)}\r\n${LENGTH}`, CALL],
])(
  'F6 a request whose end two readers could see in two places is refused, with all that follows it: %s',
  async (_name, lines, body) => {
    const before = backend.calls();
    using caller = await openCaller(gateway.url);
    caller.send(`POST / HTTP/1.1\r\n${HEAD}${lines}\r\n${body}${smuggled()}`);
    await caller.ended;
    expect(caller.text()).toMatch(/^HTTP\/1\.1 (400|431) [^\r]+\r\nConnection: close\r\n\r\n$/);
    expect(backend.calls()).toBe(before);
  },
);

describe('F6 a request that is odd and clear is one call to the configured backend', () => {
  test.each<[string, string, string, string]>([
    ['the same Content-Length twice', '/', `${LENGTH}${LENGTH}`, CALL],
    ['a tab before chunked', '/', 'transfer-encoding:\tchunked\r\n', IN_CHUNKS],
    ['a chunk extension', '/', 'transfer-encoding: chunked\r\n', IN_CHUNKS.replace('\r\n', ';a=b\r\n')],
    [
      'trailers, which are no fields of the request',
      '/',
      'transfer-encoding: chunked\r\n',
      `${AS_CHUNK}0\r\nx-token: b\r\ncontent-length: 9\r\n\r\n`,
    ],
    ['the URL of another host as target', 'http://127.0.0.1:1/', LENGTH, CALL],
    ['the host of another', '/', `x-forwarded-host: 127.0.0.1:1\r\n${LENGTH}`, CALL],
    ['an expectation', '/', `expect: 100-continue\r\n${LENGTH}`, CALL],
  ])('F6 %s', async (_name, target, lines, body) => {
    const before = backend.calls();
    using caller = await openCaller(gateway.url);
    caller.send(`POST ${target} HTTP/1.1\r\n${HEAD}${lines}\r\n${body}`);
    const text = await caller.until(GOOD);
    expect(text.replace('HTTP/1.1 100 Continue\r\n\r\n', '')).toStartWith('HTTP/1.1 200 ');
    expect(backend.calls() - before).toBe(1);
  });

  test('F6 with Expect: 100-continue the body is requested, and sent only then', async () => {
    using caller = await openCaller(gateway.url);
    caller.send(`POST / HTTP/1.1\r\n${HEAD}expect: 100-continue\r\n${LENGTH}\r\n`);
    expect(await caller.until('\r\n\r\n')).toBe('HTTP/1.1 100 Continue\r\n\r\n');
    caller.send(CALL);
    expect(await caller.until(GOOD)).toContain('HTTP/1.1 200 ');
  });
});

test('F6 who has no valid key is refused without a 100, with id null', async () => {
  using caller = await openCaller(gateway.url);
  const head = HEAD.replace(key, 'sluice_nobody');
  caller.send(`POST / HTTP/1.1\r\n${head}expect: 100-continue\r\n${LENGTH}\r\n`);
  await caller.ended;
  expect(caller.text()).toMatch(/^HTTP\/1\.1 401 [^]*\r\nconnection: close\r\n[^]*"id":null}\s*$/);
  using sent = await openCaller(gateway.url);
  sent.send(`POST / HTTP/1.1\r\n${head}expect: 100-continue\r\n${LENGTH}\r\n${CALL}`);
  expect(await sent.until('"id":1}')).toMatch(/^HTTP\/1\.1 401 /);
});

test('F6 who is refused before a 100 ends with that: what comes next may be its body or a request', async () => {
  using caller = await openCaller(gateway.url);
  const head = HEAD.replace('application/json', 'text/plain');
  caller.send(`POST / HTTP/1.1\r\n${head}expect: 100-continue\r\n${LENGTH}\r\n`);
  expect(await caller.until('\r\n\r\n')).toMatch(/^HTTP\/1\.1 415 [^]*\r\nconnection: close\r\n/);
  const before = backend.calls();
  caller.send(smuggled());
  await caller.ended;
  expect([caller.text().split('HTTP/1.1 ').length, backend.calls()]).toEqual([2, before]);
});

describe('F6 what a backend sends beside its answer reaches no caller', () => {
  const other = plain(resultText('"of another"'));
  test.each<[string, (exchange: RawExchange) => unknown, number]>([
    ['a second answer at once', ({ send }) => send(`${plain(GOOD)}${other}`), 200],
    ['a second answer behind chunks', ({ send }) => send(`${CHUNKED}${chunk(GOOD)}0\r\n\r\n${other}`), 200],
    ['two lengths', ({ send }) => send(plain(GOOD, 'content-length: 3\r\n')), 503],
    ['a head of 1 MB', ({ send }) => send(plain(GOOD, `x-a: ${'a'.repeat(1_000_000)}\r\n`)), 503],
  ])('F6 %s', async (_name, script, status) => {
    const gone = Promise.withResolvers<void>();
    backend.script((exchange) => {
      void exchange.gone.then(gone.resolve);
      return script(exchange);
    });
    const answer = await gateway.post(CALL, key);
    await gone.promise; // no more is read from such a connection
    expect(answer.status).toBe(status);
    if (status === 200) expect(await answer.text()).toBe(GOOD);
    backend.script((exchange) => exchange.send(plain(GOOD)));
    for (let i = 0; i < 3; i++) expect(await (await gateway.post(CALL, key)).text()).toBe(GOOD);
  });

  test('F6 a late second answer on an idle connection ends that connection', async () => {
    const gone = Promise.withResolvers<void>();
    backend.script(async (exchange) => {
      void exchange.gone.then(gone.resolve);
      await exchange.send(plain(GOOD));
      await Bun.sleep(10); // so that it comes when the connection is idle
      await exchange.send(other);
    });
    expect(await (await gateway.post(CALL, key)).text()).toBe(GOOD);
    await gone.promise;
    backend.script((exchange) => exchange.send(plain(GOOD)));
    expect(await (await gateway.post(CALL, key)).text()).toBe(GOOD);
  });
});

import { afterEach, describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import type { RpcRequest, RpcResponse } from '../../../gateway/listener/http.ts';
import { listen } from '../../../gateway/server.ts';
import { type Clock, systemClock } from '../../../shared/clock.ts';
import { openCaller, type RawCaller } from '../../fakes/raw-caller.ts';
import { atRest } from '../../faults/gateway-process.ts';
import { testConfig } from '../../started/gateway.ts';
import { createVirtualClock } from '../virtual-clock.ts';

type Answer = (request: RpcRequest) => RpcResponse | Promise<RpcResponse>;

const text = (body: string): RpcResponse => ({ status: 200, fields: {}, body: Buffer.from(body) });
const get = (path: string, head = '') => `GET ${path} HTTP/1.1\r\nhost: a\r\n${head}\r\n`;
const sized = (bytes: number | string, head = '') => get(`/?${bytes}`, head);
/** Answers with so many bytes as the query says. */
const bySize: Answer = ({ url }) => text('x'.repeat(Number(url.slice(2))));

/** A stream of these pieces that ends so. */
const stream = (pieces: readonly string[], kind: 'complete' | 'cut', length?: number): RpcResponse => ({
  status: 200,
  fields: {},
  length,
  body: {
    cancel: () => undefined,
    async pipe(write) {
      for (const piece of pieces) await write(Buffer.from(piece));
      return kind === 'cut' ? { kind, reason: 'closed', bytes: 0 } : { kind, bytes: 0 };
    },
  },
});

const statuses = (answers: string) =>
  [...answers.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, code]) => Number(code));

const listeners: Extract<ReturnType<typeof listen>, { kind: 'listening' }>[] = [];
afterEach(async () => {
  for (const each of listeners.splice(0)) await each.close(0, 0);
});

function start(answer: Answer, clock: Clock = systemClock, gateway: object = {}) {
  const health = () => ({ ok: true, sentence: 'ok' });
  const listening = listen(testConfig({ gateway }).gateway, { answer, health }, { clock, shared: false });
  if (listening.kind === 'refused') throw new Error(listening.sentence);
  listeners.push(listening);
  return listening;
}

/** Callers that stop reading are sent what the system holds for them, and no more. */
async function stopped(caller: RawCaller, request: string, count: () => number): Promise<void> {
  caller.pause();
  caller.send(request);
  await atRest(count, 30);
}

describe('requests behind others', () => {
  test('twenty thousand that are answered at once, in one write, are answered in order', async () => {
    const { url } = start(bySize);
    using caller = await openCaller(url);
    const requests = Array.from({ length: 20_000 }, (_, i) => (i % 2 === 0 ? get('/no') : sized(1)));
    caller.send(`${requests.join('')}${sized(77)}`);
    const codes = statuses(await caller.until('x'.repeat(77)));
    expect(codes.length).toBe(20_001);
    expect(codes.every((code, i) => code === (i % 2 === 0 && i < 20_000 ? 404 : 200))).toBe(true);
  });

  test('small, large and streamed answers leave in their order', async () => {
    const { url } = start((request) =>
      request.url === '/?s' ? stream(['x', 'xx'], 'complete', 3) : bySize(request),
    );
    const sizes = [1, 20_000, 2, 4, 70_000, 5, 's', 6, 17_000, 's', 300_000, 7];
    using caller = await openCaller(url);
    caller.send(`${sizes.map((size) => sized(size)).join('')}${sized(8, 'connection: close\r\n')}`);
    await caller.ended;
    const answers = [...caller.text().matchAll(/content-length: (\d+)\r\n.*\r\n\r\n(x*)/g)];
    const lengths = [...sizes, 8].map((size) => (size === 's' ? 3 : Number(size)));
    expect(answers.map(([, length]) => Number(length))).toEqual(lengths);
    expect(answers.map(([, , { length } = '']) => length)).toEqual(lengths);
  });

  test('of a caller that reads nothing few are answered, and all when it reads', async () => {
    let answered = 0;
    const { url } = start((request) => {
      answered++;
      return bySize(request);
    });
    using caller = await openCaller(url);
    await stopped(caller, sized(1 << 20).repeat(100), () => answered);
    expect(answered).toBeLessThan(30);
    caller.resume();
    while (caller.received() < 100 << 20) await Bun.sleep(1); // bounded by the test's own timeout
    expect(answered).toBe(100);
  });
});

test.each<[string, Answer]>([
  ['an answer', () => broken],
  ['a later answer', async () => broken],
  ['the end of a stream', () => ({ ...stream(['a'], 'complete'), onEnd: defect })],
  ['a stream', () => ({ ...text(''), body: { pipe: async () => defect(), cancel: () => undefined } })],
])('an unexpected error of %s costs its own connection alone', async (_name, answer) => {
  const { url } = start((request) => (request.url === '/?1' ? bySize(request) : answer(request)));
  using other = await openCaller(url);
  using caller = await openCaller(url);
  caller.send(get('/'));
  await caller.ended;
  other.send(sized(1));
  expect(await other.until('\r\n\r\nx')).toStartWith('HTTP/1.1 200 ');
});
function defect(): never {
  throw new Error('a defect');
}
const broken: RpcResponse = {
  status: 200,
  get fields() {
    return defect();
  },
};

describe('a drain', () => {
  test('waits for an answer that its caller has not read yet', async () => {
    const { url, close } = start(bySize);
    using caller = await openCaller(url);
    await stopped(caller, sized(30 << 20), caller.received);
    const closed = close(10_000, 0);
    caller.resume();
    await closed;
    await caller.ended;
    expect(caller.received()).toBeGreaterThan(30 << 20);
  });

  test.each([
    ['kept', '', 0],
    ['ended by its answer', 'connection: close\r\n', 3_000],
  ])('loses nothing of an answer on its way by a connection that is %s', async (_name, head, ms) => {
    const { clock, advance } = createVirtualClock();
    const { url, close } = start(bySize, clock);
    using caller = await openCaller(url);
    await stopped(caller, sized(1 << 20, head), caller.received);
    advance(ms);
    await Promise.resolve(); // the tick
    if (ms === 0) await close(0, 0);
    caller.resume();
    expect(await caller.ended).toBe('closed');
    expect(caller.received()).toBeGreaterThan(1 << 20);
  });

  test('does not wait for the rest of a body that was refused', async () => {
    const { url, close } = start(() => text('no'), createVirtualClock().clock);
    using caller = await openCaller(url);
    caller.send('POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\nabc');
    await caller.until('\r\n\r\nno');
    await close(10_000, 0);
    expect(await caller.ended).toBe('closed');
  });

  test('answers the first request of a connection that was accepted last, and ends the others', async () => {
    const { clock, advance, sleeping } = createVirtualClock();
    const { url, close } = start(bySize, clock);
    using caller = await openCaller(url);
    using idle = await openCaller(url);
    idle.send(sized(1));
    await idle.until('\r\n\r\nx');
    const closed = close(10_000, 1_000);
    advance(1_000);
    while (await accepts(url)) await Bun.sleep(1); // bounded by the test's own timeout
    caller.send(sized(3));
    await caller.ended;
    expect(caller.text()).toMatch(/^HTTP\/1\.1 200 OK\r\nconnection: close\r\n[^]*\r\n\r\nxxx$/);
    advance(1_000);
    expect(await idle.ended).toBe('closed');
    await closed;
    await close(1_000, 1_000); // once more: a clock that stands still would let it wait for ever
    expect(sleeping()).toBe(0);
  });
});

async function accepts(url: URL): Promise<boolean> {
  return openCaller(url).then(
    (caller) => {
      caller[Symbol.dispose]();
      return true;
    },
    () => false,
  );
}

describe('a request that is odd', () => {
  test('is not answered a second time for what is broken behind its refusal', async () => {
    const { url } = start(() => ({ ...text('no'), status: 415 }));
    using caller = await openCaller(url);
    caller.send('POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n');
    await caller.until('no');
    caller.send('zzz\r\n');
    await caller.ended;
    expect(statuses(caller.text())).toEqual([415]);
  });

  test.each([
    ['1.1', [100, 200]],
    ['1.0', [200]], // RFC 9110 10.1.1
  ])('expects 100 by HTTP/%s', async (version, codes) => {
    const read = Promise.withResolvers<void>();
    const { url } = start(async (request) => {
      const body = request.readBody(100);
      read.resolve();
      return text((await body).kind);
    });
    using caller = await openCaller(url);
    caller.send(`POST / HTTP/${version}\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\n`);
    await read.promise;
    caller.send('abc');
    expect(statuses(await caller.until('\r\n\r\nbody'))).toEqual(codes);
  });

  test.each<[string, RpcResponse, string, string, string]>([
    ['whole', stream(['ab', 'c'], 'complete', 3), '1.1', 'abc', ''],
    ['whole, with an empty piece at its end,', stream(['ab', 'c', ''], 'complete', 3), '1.1', 'abc', ''],
    ['cut at its end', stream(['ab', 'c'], 'cut', 3), '1.1', 'ab', 'closed'],
    ['too short', stream(['ab'], 'complete', 3), '1.1', 'ab', 'closed'],
    ['cut in chunks', stream(['ab'], 'cut'), '1.1', '2\r\nab\r\n', 'closed'],
    ['whole for HTTP/1.0', stream(['ab', 'c'], 'complete'), '1.0', 'abc', 'closed'],
    ['cut for HTTP/1.0', stream(['ab', 'c'], 'cut'), '1.0', '', 'ECONNRESET'],
  ])('has a stream that is %s as it came', async (_name, response, version, body, how) => {
    const { url } = start(() => response);
    using caller = await openCaller(url);
    caller.send(`GET / HTTP/${version}\r\nhost: a\r\n\r\n`);
    if (how === '') await caller.until(body);
    else expect(await caller.ended).toBe(how);
    expect(caller.text()).toEndWith(body);
  });
});

test('a caller that reads slowly is not cut for the age of its answer, one that reads nothing is', async () => {
  const { clock, advance } = createVirtualClock();
  const { url } = start(bySize, clock, { idle_seconds: 2 });
  using caller = await openCaller(url);
  await stopped(caller, sized(60 << 20), caller.received);
  for (let i = 0; i < 4; i++) {
    const before = caller.received();
    caller.resume();
    while (caller.received() < before + (6 << 20)) await Bun.sleep(1); // bounded by the test's own timeout
    caller.pause();
    await atRest(caller.received, 30);
    advance(3_000);
  }
  for (let second = 0; second < 12; second++) {
    advance(1_000);
    await Bun.sleep(1); // the tick
  }
  caller.resume();
  expect(await caller.ended).toBe('ECONNRESET');
  expect(caller.received()).toBeLessThan(60 << 20);
});

test('a connection that never finishes its TLS handshake is ended', async () => {
  const folder = join(import.meta.dir, '../../fixtures/tls');
  const tls = { cert: join(folder, 'localhost.pem'), key: join(folder, 'localhost-key.pem') };
  const { clock, advance } = createVirtualClock();
  const { url } = start(bySize, clock, { idle_seconds: 2, tls });
  const address = new URL(`http://127.0.0.1:${url.port}`);
  using silent = await openCaller(address);
  using half = await openCaller(address);
  half.send('\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03');
  let over = 0;
  const ended = [silent, half].map(({ ended }) => ended.then(() => over++));
  while (over < 2) {
    advance(10_000); // they may not have been accepted yet
    await Bun.sleep(1);
  }
  await Promise.all(ended);
});

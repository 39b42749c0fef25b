import { describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { type RpcRequest, RpcResponse } from '../../../gateway/listener/rpc.ts';
import { openCaller, type RawCaller } from '../../fakes/raw-caller.ts';
import { atRest } from '../../faults/gateway-process.ts';
import { createVirtualClock } from '../virtual-clock.ts';
import { type Answer, get, heldStream, open, statusesIn, text, turns } from './open-listener.ts';

const sized = (bytes: number | string, head = '') => get(`/?${bytes}`, head);
/** Answers with so many bytes as the query says. */
const sizeIn = ({ url }: RpcRequest) => Number(url.slice(url.indexOf('?') + 1));
const bySize: Answer = (request) => text('x'.repeat(sizeIn(request)));

/** A stream of these pieces that ends so. */
const stream = (pieces: readonly string[], kind: 'complete' | 'cut', length?: number) =>
  new RpcResponse({
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

/** Callers that stop reading are sent what the system holds for them, and no more. */
async function stopped(caller: RawCaller, request: string, count: () => number): Promise<void> {
  caller.pause();
  caller.send(request);
  await atRest(count, 30);
}

describe('requests behind others', () => {
  test('twenty thousand that are answered at once, in one write, are answered in order', async () => {
    const { url } = open(bySize);
    using caller = await openCaller(url);
    const requests = Array.from({ length: 20_000 }, (_, i) => (i % 2 === 0 ? get('/no') : sized(1)));
    caller.send(`${requests.join('')}${sized(77)}`);
    const codes = statusesIn(await caller.until('x'.repeat(77)));
    expect(codes.length).toBe(20_001);
    expect(codes.every((code, i) => code === (i % 2 === 0 && i < 20_000 ? 404 : 200))).toBe(true);
  }, 30_000); // seconds beside other work

  test('small, large and streamed answers leave in their order', async () => {
    const { url } = open((request) =>
      request.url.endsWith('/?s') ? stream(['x', 'xx'], 'complete', 3) : bySize(request),
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
    const { url } = open((request) => {
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

test('F20 the rest of a request that comes while its caller does not read is answered when it reads', async () => {
  let answered = 0;
  const { url } = open((request) => {
    answered++;
    return bySize(request);
  });
  using caller = await openCaller(url);
  caller.pause();
  const [begin, rest] = ['GET /?16000 HTTP/1.1\r\n', 'host: a\r\n\r\n'];
  caller.send(begin);
  let sent = 0;
  for (let before = -1; answered > before; await turns(20)) {
    before = answered;
    for (let i = 0; i < 20; i++, sent++, await turns(1)) caller.send(rest + begin);
  }
  caller.resume();
  while (answered < sent) await turns(1); // bounded by the test's own timeout
});

test('behind answers that are waited for no more than a read is taken in', async () => {
  let asked = 0;
  const { url } = open(async ({ url: { length } }) => {
    asked++;
    await new Promise(setImmediate);
    return text('x'.repeat(length > 9_000 ? 1 : 77));
  });
  using caller = await openCaller(url);
  const before = process.memoryUsage().rss;
  // 60 MB in requests of 10 KB; were each answer to let in a whole read, all of them would be held at once.
  const request = sized('y'.repeat(10_000));
  for (let i = 0; i < 60; i++) caller.send(request.repeat(100));
  caller.send(sized('end'));
  while (asked < 3_000) await Bun.sleep(1); // bounded by the test's own timeout
  expect(caller.received()).toBeLessThan(6_000 * 200);
  expect(process.memoryUsage().rss - before).toBeLessThan(320 << 20);
  await caller.until('x'.repeat(77));
  expect(asked).toBe(6_001);
}, 30_000); // sixty megabytes take seconds beside other work

test('a long body that is not read ends the connection of its refusal', async () => {
  const { url } = open(() => text('no'));
  using caller = await openCaller(url);
  caller.send('POST /other HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000000\r\n\r\n');
  expect(await caller.until('POST /.')).toContain('connection: close\r\n');
});

test('a caller that leaves is noticed, also with so much behind its request that no more is read', async () => {
  const { body, goOn, cancelled } = heldStream();
  const { url } = open(() => new RpcResponse({ status: 200, fields: {}, body }));
  const caller = await openCaller(url);
  caller.send(sized('s') + 'x'.repeat(200_000));
  await caller.until('first');
  await caller.flushed();
  caller[Symbol.dispose]();
  await caller.ended;
  goOn();
  await cancelled;
});

test.each<[string, Answer]>([
  ['an answer', () => broken],
  ['a later answer', async () => broken],
  ['the end of a stream', () => new RpcResponse({ ...stream(['a'], 'complete'), onEnd: defect })],
  [
    'a stream',
    () => new RpcResponse({ ...text(''), body: { pipe: async () => defect(), cancel: () => undefined } }),
  ],
])('an unexpected error of %s costs its own connection alone', async (_name, answer) => {
  const { url } = open((request) => (request.url.endsWith('/?1') ? bySize(request) : answer(request)));
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
const broken: RpcResponse = Object.defineProperty(text(''), 'fields', { get: defect });

describe('a drain', () => {
  test('waits for an answer that its caller has not read yet', async () => {
    const { url, close } = open(bySize);
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
    const { url, close } = open(bySize, clock);
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
    const { url, close } = open(() => text('no'), createVirtualClock().clock);
    using caller = await openCaller(url);
    caller.send('POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\nabc');
    await caller.until('\r\n\r\nno');
    await close(10_000, 0);
    expect(await caller.ended).toBe('closed');
  });

  test('answers the first request of a connection that was accepted last, and ends the others', async () => {
    const { clock, advance, sleeping } = createVirtualClock();
    const { url, close } = open(bySize, clock);
    using caller = await openCaller(url);
    using idle = await openCaller(url);
    idle.send(sized(1));
    await idle.until('\r\n\r\nx');
    const closed = close(10_000, 1_000);
    advance(1_000);
    // Until it is closed for new ones; bounded by the test's own timeout.
    while (await openCaller(url).catch(() => undefined)) await Bun.sleep(1);
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

test('a request is not answered a second time for what is broken behind its refusal', async () => {
  const { url } = open(() => text('no', 415));
  using caller = await openCaller(url);
  caller.send('POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n');
  await caller.until('no');
  caller.send('zzz\r\n');
  await caller.ended;
  expect(statusesIn(caller.text())).toEqual([415]);
});

test('F20 a stream whose request turns out to be broken is cut, without a second answer in it', async () => {
  const { body, cancelled } = heldStream();
  const { url } = open(() => new RpcResponse({ status: 200, fields: {}, length: 90, body }));
  using caller = await openCaller(url);
  caller.send('POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n');
  await caller.until('first');
  caller.send('zzz\r\n');
  await Promise.all([caller.ended, cancelled]);
  expect(caller.text()).toEndWith('\r\n\r\nfirst');
});

test.each([
  ['1.1', 3, 'closed'],
  ['1.0', undefined, 'ECONNRESET'],
])('a stream that is cut at its last byte looks cut, by HTTP/%s', async (version, length, how) => {
  const { url } = open(() => stream(['ab', 'c'], 'cut', length));
  using caller = await openCaller(url);
  caller.send(`GET / HTTP/${version}\r\nhost: a\r\n\r\n`);
  expect(await caller.ended).toBe(how);
  if (length !== undefined) expect(caller.text()).toEndWith('\r\n\r\nab');
});

test('a caller that reads slowly is not cut for the age of its answer, one that reads nothing is', async () => {
  const { clock, advance } = createVirtualClock();
  const { url } = open(bySize, clock, { idle_seconds: 2 });
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
  // What the system still takes counts as read.
  for (let second = 0; second < 100; second++) {
    advance(1_000);
    await Bun.sleep(1); // the tick
  }
  caller.resume();
  expect(await caller.ended).toBe('ECONNRESET');
  expect(caller.received()).toBeLessThan(60 << 20);
});

test('a head must come whole within ten seconds, of the connection or of its first byte; an idle connection is kept', async () => {
  const { clock, advance } = createVirtualClock();
  const { url } = open(bySize, clock, { idle_seconds: 120 });
  const [silent, half, idle, late] = await Promise.all([1, 2, 3, 4].map(() => openCaller(url)));
  half?.send('GET / HTTP/1.1\r\n');
  for (const used of [idle, late]) used?.send(sized(1));
  for (const used of [idle, late]) await used?.until('\r\n\r\nx');
  advance(9_000);
  late?.send('GET /?5 HTTP/1.1\r\n');
  // On another connection, so that what was sent before it has come.
  idle?.send(sized(2));
  await idle?.until('\r\n\r\nxx');
  advance(1_001);
  expect(await Promise.all([silent?.ended, half?.ended])).toEqual(['closed', 'closed']);
  advance(12_000);
  await late?.ended;
  expect(late?.text()).not.toContain('xxxxx');
  idle?.send(sized(33));
  expect(await idle?.until('x'.repeat(33))).toEndWith('x'.repeat(33));
  idle?.[Symbol.dispose]();
});

const TLS_FOLDER = join(import.meta.dir, '../../fixtures/tls');
const TLS = { cert: join(TLS_FOLDER, 'localhost.pem'), key: join(TLS_FOLDER, 'localhost-key.pem') };

test.each([
  ['http', {}],
  ['https', { tls: TLS }],
])('A8 an answer that does not begin is waited for over %s, far beyond the idle limit', async (_, rows) => {
  const { clock, advance } = createVirtualClock();
  const [arrived, late] = [Promise.withResolvers<void>(), Promise.withResolvers<RpcResponse>()];
  const answer = () => (arrived.resolve(), late.promise);
  const { url } = open(answer, clock, { idle_seconds: 1, ...rows });
  const answered = fetch(url, { tls: { rejectUnauthorized: false } });
  await arrived.promise;
  for (let second = 0; second < 60; second++) {
    advance(1_000);
    await new Promise(setImmediate); // the tick
  }
  late.resolve(text('late'));
  expect(await (await answered).text()).toBe('late');
});

test('a connection that never finishes its TLS handshake is ended', async () => {
  const { clock, advance } = createVirtualClock();
  const { url } = open(bySize, clock, { idle_seconds: 2, tls: TLS });
  using silent = await openCaller(new URL(`http://127.0.0.1:${url.port}`));
  let isOver = false;
  void silent.ended.then(() => (isOver = true));
  for (; !isOver; await Bun.sleep(1)) advance(10_000); // it may not have been accepted yet
});

describe('L25 an answer counts as sent', () => {
  /** Answers so, and notes which answers have been sent. */
  function noting(answerTo: (size: number) => RpcResponse) {
    const sent: number[] = [];
    const { url } = open((request) => {
      const size = sizeIn(request);
      request.onSent(() => void sent.push(size));
      return answerTo(size);
    });
    return { url, sent };
  }
  const whole = (size: number) => text('x'.repeat(size));
  const streamed = (size: number) => stream(Array(size >> 16).fill('x'.repeat(1 << 16)), 'complete', size);
  const LARGE = 64 << 20;

  test.each([
    ['whole', whole],
    ['streamed', streamed],
  ])('L25 when its last byte has left, and not before: one that is %s', async (_name, answerTo) => {
    const { url, sent } = noting(answerTo);
    using caller = await openCaller(url);
    caller.pause();
    caller.send(sized(LARGE));
    for (let turn = 0; turn < 100; turn++) await Bun.sleep(1);
    expect(sent).toEqual([]);
    caller.resume();
    while (caller.received() < LARGE) await Bun.sleep(1); // bounded by the test's own timeout
    while (sent.length < 1) await Bun.sleep(1);
    expect(sent).toEqual([LARGE]);
  });

  test.each([
    ['small', 3, whole],
    ['cut', 3, () => stream(['x'], 'cut')],
    ['cut with a length', 3, () => stream(['x'], 'cut', 7)],
    ['that is not read when its caller leaves', LARGE, whole],
    ['streamed that is not read when its caller leaves', LARGE, streamed],
  ])('L25 one that is %s, once', async (_name, size, answerTo) => {
    const { url, sent } = noting(answerTo);
    const caller = await openCaller(url);
    if (size === LARGE) caller.pause();
    caller.send(sized(size));
    if (size === LARGE) {
      await caller.flushed();
      for (let turn = 0; turn < 20; turn++) await Bun.sleep(1);
      caller.reset();
    }
    while (sent.length < 1) await Bun.sleep(1); // bounded by the test's own timeout
    caller.reset();
    await Bun.sleep(1);
    expect(sent).toEqual([size]);
  });

  test('L25 before the request behind it is read', async () => {
    const sent: number[] = [];
    const { url } = open((request) => {
      const size = sizeIn(request);
      expect(sent).toEqual(Array.from({ length: size - 1 }, (_, i) => i + 1));
      request.onSent(() => void sent.push(size));
      return whole(size);
    });
    using caller = await openCaller(url);
    caller.send([1, 2, 3, 4].map((size) => sized(size)).join(''));
    await caller.until('xxxx');
    while (sent.length < 4) await Bun.sleep(1); // bounded by the test's own timeout
  });
});

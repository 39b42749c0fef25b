import { afterEach, describe, expect, test } from 'bun:test';
import type { RpcRequest, RpcResponse } from '../../../gateway/listener/http.ts';
import { listen } from '../../../gateway/server.ts';
import { type Clock, systemClock } from '../../../shared/clock.ts';
import { openCaller } from '../../fakes/raw-caller.ts';
import { testConfig } from '../../started/gateway.ts';
import { atRest } from '../../faults/gateway-process.ts';
import { streamBodyOf } from '../stream-body.ts';
import { createVirtualClock } from '../virtual-clock.ts';

type Answer = (request: RpcRequest) => RpcResponse | Promise<RpcResponse>;

const health = () => ({ ok: true, sentence: 'ok' });
const text = (body: string): RpcResponse => ({ status: 200, fields: {}, body: Buffer.from(body) });
const get = (path: string, head = '') => `GET ${path} HTTP/1.1\r\nhost: a\r\n${head}\r\n`;
const sized = (bytes: number) => get(`/?${bytes}`);
/** Answers with so many bytes as the query says. */
const bySize: Answer = ({ url }) => text('x'.repeat(Number(url.slice(2))));

const opened: { close(drainMs: number, leaveMs: number): Promise<void> }[] = [];
afterEach(async () => {
  for (const each of opened.splice(0)) await each.close(0, 0);
});

function start(answer: Answer, clock: Clock = systemClock, gateway: object = {}) {
  const listening = listen(testConfig({ gateway }).gateway, { answer, health }, { clock, shared: false });
  if (listening.kind === 'refused') throw new Error(listening.sentence);
  opened.push(listening);
  return listening;
}

const statuses = (answers: string) =>
  [...answers.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, code]) => Number(code));

describe('F9 requests behind others', () => {
  test('F9 twenty thousand that are answered at once, in one write, are answered in order', async () => {
    const { url } = start(bySize);
    using caller = await openCaller(url);
    const before = performance.now();
    caller.send(Array.from({ length: 20_000 }, (_, i) => get(i % 2 === 0 ? '/no' : `/?${i % 10}`)).join(''));
    caller.send(get('/?77'));
    const answers = await caller.until('x'.repeat(77));
    console.log('ms', performance.now() - before);
    expect(statuses(answers).length).toBe(20_001);
  });

  test('F9 small, large and streamed answers leave in their order', async () => {
    const { url } = start((request) =>
      request.url === '/?s'
        ? { status: 200, fields: {}, length: 3, body: streamBodyOf(new Blob(['abc']).stream()) }
        : bySize(request),
    );
    const sizes = [1, 20_000, 2, 3, 70_000, 4, 's', 5, 17_000, 's', 300_000, 6];
    using caller = await openCaller(url);
    caller.send(
      `${sizes.map((size) => get(`/?${size}`)).join('')}${get('/health/live', 'connection: close\r\n')}`,
    );
    await caller.ended;
    const lengths = [...caller.text().matchAll(/content-length: (\d+)\r\n.*\r\n\r\n([xabc]+)/g)];
    expect(lengths.map(([, length, { length: got } = '']) => [Number(length), got])).toEqual(
      sizes.map((size) => (size === 's' ? [3, 3] : [Number(size), Number(size)])),
    );
    expect(caller.text()).toEndWith('ok\n');
  });

  test('F9 of a caller that reads nothing few are answered, and all when it reads', async () => {
    let answered = 0;
    const { url } = start((request) => (answered++, bySize(request)));
    using caller = await openCaller(url);
    caller.pause();
    caller.send(sized(1 << 20).repeat(100));
    await atRest(() => answered, 50);
    console.log({ answered });
    expect(answered).toBeLessThan(30);
    let bytes = 0;
    caller.onData(({ length }) => (bytes += length));
    caller.resume();
    while (bytes < 100 << 20) await Bun.sleep(5); // bounded by the test's own timeout
    expect(answered).toBe(100);
  });
});

describe('errors', () => {
  const broken = (): RpcResponse => ({
    status: 200,
    get fields(): never {
      throw new Error('a defect');
    },
  });
  test.each<[string, Answer]>([
    ['an answer', broken],
    ['a later answer', async () => broken()],
    [
      'the end of a stream',
      () => ({
        status: 200,
        fields: {},
        body: streamBodyOf(new Blob(['abc']).stream()),
        onEnd() {
          throw new Error('a defect');
        },
      }),
    ],
    [
      'a stream',
      () => ({ status: 200, fields: {}, body: { pipe: () => Promise.reject(new Error()), cancel() {} } }),
    ],
  ])('an unexpected error of %s costs its own connection alone', async (_name, answer) => {
    const { url } = start((request) => (request.url === '/?1' ? text('well') : answer(request)));
    using other = await openCaller(url);
    using caller = await openCaller(url);
    caller.send(get('/'));
    await caller.ended;
    other.send(sized(1));
    expect(await other.until('well')).toContain('200');
  });
});

describe('a drain', () => {
  test('waits for an answer that its caller has not read yet', async () => {
    const { url, close } = start(bySize);
    using caller = await openCaller(url);
    caller.pause();
    caller.send(sized(30 << 20));
    await Bun.sleep(50);
    const closed = close(10_000, 0);
    await Bun.sleep(20);
    let bytes = 0;
    caller.onData(({ length }) => (bytes += length));
    caller.resume();
    await closed;
    await caller.ended;
    expect(bytes).toBeGreaterThan(30 << 20);
  });

  test.each([
    ['kept', '', 0],
    ['ended by its answer', 'connection: close\r\n', 3_000],
  ])('loses nothing of an answer that is on its way on a connection that is %s', async (_name, head, ms) => {
    const { clock, advance } = createVirtualClock();
    const { url, close } = start(bySize, clock);
    using caller = await openCaller(url);
    caller.pause();
    caller.send(get(`/?${1 << 20}`, head));
    await Bun.sleep(50);
    advance(ms);
    await Bun.sleep(5);
    if (ms === 0) await close(0, 0);
    caller.resume();
    expect(await caller.ended).toBe('closed');
    expect(caller.received()).toBeGreaterThan(1 << 20);
  });

  test('ends once, however often it is asked for', async () => {
    const { clock, sleeping, advance } = createVirtualClock();
    const { close } = start(bySize, clock);
    const closed = close(1_000, 1_000);
    advance(1_000);
    await closed;
    await close(1_000, 1_000); // a clock that stands still would let it wait for ever
    expect(sleeping()).toBe(0);
  });
});

describe('F6', () => {
  test('F6 what is broken behind a refusal is not answered a second time', async () => {
    const { url } = start(() => ({ ...text('no'), status: 415 }));
    using caller = await openCaller(url);
    caller.send('POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n');
    await caller.until('no');
    caller.send('zzz\r\n');
    await caller.ended;
    expect(statuses(caller.text())).toEqual([415]);
  });

  test('an HTTP/1.0 caller is sent no 100', async () => {
    const { url } = start(async (request) => text((await request.readBody(100)).kind));
    using caller = await openCaller(url);
    caller.send('POST / HTTP/1.0\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\n');
    await Bun.sleep(20);
    caller.send('abc');
    await caller.ended;
    expect(statuses(caller.text())).toEqual([200]);
  });
});

describe('streams', () => {
  const stream = (pieces: string[], end: 'complete' | 'cut', length?: number): RpcResponse => ({
    status: 200,
    fields: {},
    length,
    body: {
      cancel() {},
      async pipe(write) {
        for (const piece of pieces) await write(Buffer.from(piece));
        return end === 'cut' ? { kind: 'cut', reason: 'closed', bytes: 3 } : { kind: 'complete', bytes: 3 };
      },
    },
  });
  test.each<[string, RpcResponse, string, string, string]>([
    ['whole', stream(['ab', 'c'], 'complete', 3), '1.1', 'abc', ''],
    ['whole with an empty piece', stream(['ab', 'c', ''], 'complete', 3), '1.1', 'abc', ''],
    ['cut at its end', stream(['ab', 'c'], 'cut', 3), '1.1', 'ab', 'closed'],
    ['short', stream(['ab'], 'complete', 3), '1.1', 'ab', 'closed'],
    ['cut chunked', stream(['ab'], 'cut'), '1.1', '2\r\nab\r\n', 'closed'],
    ['1.0 whole', stream(['ab', 'c'], 'complete'), '1.0', 'abc', 'closed'],
    ['1.0 cut', stream(['ab', 'c'], 'cut'), '1.0', '', 'ECONNRESET'],
  ])('%s', async (_name, response, version, body, how) => {
    const { url } = start(() => response);
    using caller = await openCaller(url);
    caller.send(`GET / HTTP/${version}\r\nhost: a\r\n\r\n`);
    if (how === '') await caller.until(body);
    else expect(await caller.ended).toBe(how);
    expect(caller.text()).toEndWith(body);
  });
});

describe('idle', () => {
  test('unread: cut when it reads nothing, kept while it reads', async () => {
    const { clock, advance } = createVirtualClock();
    const { url } = start(bySize, clock, { idle_seconds: 2 });
    using caller = await openCaller(url);
    caller.pause();
    caller.send(sized(30 << 20));
    await Bun.sleep(50);
    let over = false;
    void caller.ended.then(() => (over = true));
    let bytes = 0;
    caller.onData(({ length }) => (bytes += length));
    for (let i = 0; i < 12; i++) {
      caller.resume();
      while (bytes < (i + 1) << 20) await Bun.sleep(1);
      caller.pause();
      await Bun.sleep(5);
      advance(1_000);
      await Bun.sleep(2);
    }
    console.log({ bytes, over });
    caller.resume();
    while (bytes < 30 << 20 && !over) await Bun.sleep(1);
    expect(bytes).toBeGreaterThan(30 << 20);
  });
});

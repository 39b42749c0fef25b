import { describe, expect, test } from 'bun:test';
import type { Backend } from '../../../gateway/upstream/backend.ts';
import type { Reply } from '../../../gateway/upstream/forward.ts';
import type { Call } from '../../../gateway/request/envelope.ts';
import { Secret } from '../../../shared/secret.ts';
import { failure, type Script, startBackend } from '../../fakes/backend.ts';
import { textOfBody } from '../stream-body.ts';
import { createVirtualClock } from '../virtual-clock.ts';
import { ACCOUNT_ABC, backendOf, forwardOf, routeTo } from './of.ts';
import { CHUNKED, chunk, refusedUrl, type RawScript, startRawBackend } from '../../fakes/raw-backend.ts';

const bytesOf = (text: string) => new TextEncoder().encode(text);
const callOf = (method: string): Call => ({
  kind: 'call',
  id: bytesOf('7'),
  method,
  params: bytesOf('["a"]'),
});

function started(clock = createVirtualClock()) {
  const failures: string[] = [];
  const overs: string[] = [];
  const told: Parameters<typeof forwardOf>[2] = {
    onFailure: ({ config }, { kind }) => void failures.push(`${config.name}: ${kind}`),
    onCut: ({ config }, { reason }) => void failures.push(`${config.name}: cut ${reason}`),
  };
  return {
    failures,
    /** The calls that no backend works on any more. */
    overs,
    clock,
    /** A backend whose connections live by the test's clock; `pass` lets time go by for it. */
    backend: (rows: Parameters<typeof backendOf>[0]) => backendOf({ ...rows, clock: clock.clock }),
    pass(ms: number, ...backends: readonly Backend[]) {
      clock.advance(ms);
      for (const { client } of backends) client.tick();
    },
    send: (backends: readonly Backend[], method = 'getSlot', signal = new AbortController().signal) =>
      forwardOf(backends, clock.clock, told).forward(callOf(method), routeTo(backends, method), {
        acceptEncoding: 'identity',
        signal,
        accountId: ACCOUNT_ABC,
        startedMs: clock.clock.monotonic(),
        onSettled: () => void overs.push(method),
      }),
  };
}

async function textOf(reply: Reply): Promise<string> {
  if (reply.kind === 'whole') return new TextDecoder().decode(reply.bytes);
  return reply.kind === 'stream' ? textOfBody(reply.body) : reply.kind;
}

const plain =
  (text: string, status: number, type = 'text/html') =>
  () =>
    new Response(text, { status, headers: { 'content-type': type } });

/** Answers whose front is at fault, by what they are called when told of. */
const BAD_ANSWERS: readonly (readonly [string, string, Script])[] = [
  ['500', 'status', plain('oops', 500)],
  ['502', 'status', plain('Bad Gateway', 502)],
  ['503', 'status', plain('busy', 503)],
  ['504', 'status', plain('late', 504)],
  ['429', 'status', plain('{"jsonrpc":"2.0"}', 429, 'application/json')],
  ['403', 'status', plain('forbidden', 403)],
  ['a redirect', 'status', () => new Response(null, { status: 307, headers: { location: '/elsewhere' } })],
  ['HTML with 200', 'garbage', plain('<html>welcome</html>', 200)],
  ['HTML that says it is JSON', 'garbage', plain('<html>welcome</html>', 200, 'application/json')],
  ['an empty body', 'garbage', plain('', 200, 'application/json')],
  ['cut JSON', 'garbage', plain('{"jsonrpc":"2.0","result":', 200, 'application/json')],
];

const HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n';
const ANSWER = '{"jsonrpc":"2.0","result":1,"id":7}';
const BAD_CONNECTIONS: readonly (readonly [string, RawScript])[] = [
  ['a reset after the call was sent', (connection) => connection.reset()],
  ['a close after the call was sent', (connection) => connection.end()],
  [
    'a body shorter than its length',
    (connection) => {
      void connection.send(`${HEAD}content-length: 100\r\n\r\n${ANSWER}`);
      connection.end();
    },
  ],
  [
    'a head that breaks off',
    (connection) => {
      void connection.send(HEAD);
      connection.end();
    },
  ],
  [
    'something that is not HTTP',
    (connection) => {
      void connection.send('SSH-2.0-OpenSSH_9.2\r\n');
      connection.end();
    },
  ],
];

describe('the first backend', () => {
  test('answers alone while it is well, with its own bytes', async () => {
    await using backends = pair();
    const { a, b } = backends;
    const { send, failures } = started();
    expect(
      await textOf(await send([backendOf({ name: 'a', at: a.url }), backendOf({ name: 'b', at: b.url })])),
    ).toBe('{"jsonrpc":"2.0","result":"answer to getSlot","id":7}\n');
    expect([a.seen.length, b.seen.length, failures]).toEqual([1, 0, []]);
  });

  test('is sent the envelope and its own headers, and nothing of the caller but what it accepts', async () => {
    await using backend = startBackend();
    const headers = new Map([['authorization', new Secret('Bearer x')]]);
    const { clock } = createVirtualClock();
    const { forward } = forwardOf([], clock);
    const route = routeTo([backendOf({ at: `${backend.url}path?x=1`, headers })]);
    await forward(callOf('getSlot'), route, {
      acceptEncoding: 'gzip, br',
      signal: new AbortController().signal,
      accountId: 1,
      startedMs: clock.monotonic(),
      onSettled: () => undefined,
    });
    const { text, request } = backend.seen[0] ?? {};
    expect(text).toBe('{"jsonrpc":"2.0","id":7,"method":"getSlot","params":["a"]}');
    expect(request?.method).toBe('POST');
    expect(new URL(request?.url ?? '').pathname + new URL(request?.url ?? '').search).toBe('/path?x=1');
    expect(request?.headers.get('accept-encoding')).toBe('gzip, br');
    expect(request?.headers.get('authorization')).toBe('Bearer x');
    expect(request?.headers.get('content-type')).toBe('application/json');
  });

  test('may answer compressed when the caller can read it, and its bytes pass as they came', async () => {
    const bytes = Bun.gzipSync(ANSWER);
    const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' };
    await using backend = startBackend(() => new Response(bytes, { headers }));
    const { clock } = createVirtualClock();
    const { forward } = forwardOf([], clock);
    const route = routeTo([backendOf({ at: backend.url })]);
    const reply = await forward(callOf('getSlot'), route, {
      acceptEncoding: 'gzip',
      signal: new AbortController().signal,
      accountId: 1,
      startedMs: clock.monotonic(),
      onSettled: () => undefined,
    });
    expect(reply).toEqual({ kind: 'whole', bytes: new Uint8Array(bytes), encoding: 'gzip', backend: 'a' });
  });

  test("keeps the method's own errors: they are answers", async () => {
    await using backends = pair((seen) => failure(seen, -32602, 'Invalid params'));
    const { a, b } = backends;
    const reply = await started().send([backendOf({ at: a.url }), backendOf({ at: b.url })]);
    expect(await textOf(reply)).toContain('-32602');
    expect(b.seen.length).toBe(0);
  });
});

describe('a read goes to the next backend', () => {
  test.each(BAD_ANSWERS)('after %s', async (_, kind, script) => {
    await using backends = pair(script);
    const { a, b } = backends;
    const { send, failures } = started();
    const reply = await send([backendOf({ name: 'a', at: a.url }), backendOf({ name: 'b', at: b.url })]);
    expect(await textOf(reply)).toContain('answer to getSlot');
    expect([a.seen.length, b.seen.length, failures]).toEqual([1, 1, [`a: ${kind}`]]);
  });

  test.each(BAD_CONNECTIONS)('after %s', async (_, script) => {
    using a = startRawBackend(script);
    await using b = startBackend();
    const { send, failures } = started();
    const reply = await send([backendOf({ name: 'a', at: a.url }), backendOf({ name: 'b', at: b.url })]);
    expect(await textOf(reply)).toContain('answer to getSlot');
    expect([a.calls(), b.seen.length, failures]).toEqual([1, 1, ['a: no-answer']]);
  });

  test('after a refused connection', async () => {
    await using b = startBackend();
    const { send, failures } = started();
    const reply = await send([
      backendOf({ name: 'a', at: refusedUrl() }),
      backendOf({ name: 'b', at: b.url }),
    ]);
    expect(await textOf(reply)).toContain('answer to getSlot');
    expect(failures).toEqual(['a: unsent']);
  });

  test('after a compressed answer that was not asked for, which no caller could read', async () => {
    const gzip = { 'content-type': 'application/json', 'content-encoding': 'gzip' };
    await using backends = pair(() => new Response(Bun.gzipSync(ANSWER), { headers: gzip }));
    const { a, b } = backends;
    const { send, failures } = started();
    const reply = await send([backendOf({ name: 'a', at: a.url }), backendOf({ name: 'b', at: b.url })]);
    expect(await textOf(reply)).toContain('answer to getSlot');
    expect(failures).toEqual(['a: garbage']);
  });

  test('and when all have failed there is no backend, and each was asked once', async () => {
    await using backends = pair(plain('', 503), plain('', 500));
    const { a, b } = backends;
    const { send, failures } = started();
    const reply = await send([backendOf({ name: 'a', at: a.url }), backendOf({ name: 'b', at: b.url })]);
    expect(reply).toEqual({ kind: 'no-backend', replied: true });
    expect([a.seen.length, b.seen.length, failures]).toEqual([1, 1, ['a: status', 'b: status']]);
  });

  test('and none is asked that takes no body of this length', async () => {
    await using backend = startBackend();
    const reply = await started().send([backendOf({ at: backend.url, bodyBytesMax: 10 })]);
    expect(reply).toEqual({ kind: 'too-large' });
    expect(backend.seen.length).toBe(0);
  });
});

describe('an error of the method', () => {
  const asked = async (first: Script, second: Script, method = 'getBlock') => {
    await using backends = pair(first, second);
    const { a, b } = backends;
    const { send, failures, overs } = started();
    const text = await textOf(await send([backendOf({ at: a.url }), backendOf({ at: b.url })], method));
    return { text, calls: [a.seen.length, b.seen.length], failures, overs };
  };
  const says =
    (code: number): Script =>
    (seen) =>
      failure(seen, code, `says ${code}`);
  const answers: Script = () => undefined;

  test('that no other mends is passed on as the first one said it', async () => {
    expect((await asked(says(-32005), says(-32016))).text).toContain('"message":"says -32005"');
    expect((await asked(says(-32005), plain('', 502))).text).toContain('"message":"says -32005"');
    expect((await asked(says(-32007), says(-32009))).text).toContain('"message":"says -32007"');
  });

  test('that the next backend knows to be final is passed on as that one said it', async () => {
    expect((await asked(says(-32005), says(-32602))).text).toContain('"message":"says -32602"');
  });

  test("an upstream's own throttling never reaches the caller as his", async () => {
    expect((await asked(says(-32429), says(429))).text).toBe('no-backend');
    expect((await asked(says(-429), answers)).text).toContain('answer to getBlock');
  });

  test.each([
    [{ processed: 101, confirmed: 99, finalized: 68 }, 1],
    [{ processed: 100, confirmed: 99, finalized: 69 }, 1],
    [{ processed: 0, confirmed: 0, finalized: 0 }, 1],
    [{ processed: 100, confirmed: 99, finalized: 68 }, 0],
    [{ processed: 0, confirmed: 99, finalized: 68 }, 0],
  ])('-32016 of one at the slots 100, 99 and 68 is for another at %j: %d', async (tip, calls) => {
    await using backends = pair(says(-32016));
    const { a, b } = backends;
    const [first, second] = [backendOf({ name: 'a', at: a.url }), backendOf({ name: 'b', at: b.url })];
    Object.assign(first.slots.tip, { processed: 100, confirmed: 99, finalized: 68 });
    Object.assign(second.slots.tip, tip);
    await started().send([first, second], 'getBalance');
    expect([a.seen.length, b.seen.length]).toEqual([1, calls]);
  });

  test('whatever comes of a call, it is over once', async () => {
    for (const script of [answers, says(-32602), says(-32005), plain('', 500)]) {
      expect((await asked(script, plain('', 500))).overs).toEqual(['getBlock']);
    }
  });
});

test('a backend that failed is asked last for a second, then first again', async () => {
  await using backends = pair(plain('', 502));
  const { a, b } = backends;
  const { send, clock } = started();
  const both = [backendOf({ name: 'a', at: a.url }), backendOf({ name: 'b', at: b.url })];
  await send(both);
  a.script(() => undefined);
  for (let i = 0; i < 5; i++) await send(both);
  expect([a.seen.length, b.seen.length]).toEqual([1, 6]);
  clock.advance(999);
  await send(both);
  expect([a.seen.length, b.seen.length]).toEqual([1, 7]);
  clock.advance(1);
  await send(both);
  expect([a.seen.length, b.seen.length]).toEqual([2, 7]);
});

describe('sendTransaction', () => {
  test('goes to the next backend after a refused connection: nothing was sent', async () => {
    await using b = startBackend();
    const reply = await started().send(
      [backendOf({ at: refusedUrl() }), backendOf({ at: b.url })],
      'sendTransaction',
    );
    expect(await textOf(reply)).toContain('answer to sendTransaction');
  });

  test.each(BAD_ANSWERS.filter(([name]) => name !== '429' && name !== '503'))(
    'is not sent a second time after %s',
    async (name, kind, script) => {
      await using backends = pair(script);
      const { a, b } = backends;
      const { send, failures } = started();
      const reply = await send(
        [backendOf({ name: 'a', at: a.url }), backendOf({ name: 'b', at: b.url })],
        'sendTransaction',
      );
      const isRefused = ['403', 'a redirect'].includes(name);
      expect(reply.kind).toBe(isRefused ? 'no-backend' : 'maybe-sent');
      expect([a.seen.length, b.seen.length, failures]).toEqual([1, 0, [`a: ${kind}`]]);
    },
  );

  test.each(BAD_CONNECTIONS)('is not sent a second time after %s', async (_, script) => {
    using a = startRawBackend(script);
    await using b = startBackend();
    const reply = await started().send(
      [backendOf({ at: a.url }), backendOf({ at: b.url })],
      'sendTransaction',
    );
    expect(reply).toEqual({ kind: 'maybe-sent', replied: false });
    expect([a.calls(), b.seen.length]).toEqual([1, 0]);
  });

  test.each([['reset'], ['end']] as const)(
    'is not sent a second time by the transport itself when a kept-alive connection ends with %s',
    async (how) => {
      using a = startRawBackend((connection) => {
        if (connection.nth === 1)
          void connection.send(`${HEAD}content-length: ${ANSWER.length}\r\n\r\n${ANSWER}`);
        else connection[how]();
      });
      const { send } = started();
      const backend = backendOf({ at: a.url });
      expect((await send([backend])).kind).toBe('whole');
      expect(await send([backend], 'sendTransaction')).toEqual({ kind: 'maybe-sent', replied: false });
      // The second call went over the first one's connection, so a transport that retries would have.
      expect([a.calls(), a.connections()]).toEqual([2, 1]);
    },
  );
});

/** A backend that keeps calls waiting: `asked` resolves at the first, `left` when its caller has gone. */
function silent() {
  const [asked, left] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const backend = startBackend(({ request }) => {
    request.signal.addEventListener('abort', () => left.resolve());
    asked.resolve();
    return new Promise(() => undefined);
  });
  return { ...backend, asked: asked.promise, left: left.promise };
}

describe('a backend that begins no answer', () => {
  test('is left after 30 s, and the read goes to the next', async () => {
    await using a = silent();
    await using b = startBackend();
    const { send, backend, pass, failures } = started();
    const first = backend({ name: 'a', at: a.url });
    const reply = send([first, backend({ name: 'b', at: b.url })]);
    await a.asked;
    pass(29_999, first);
    await new Promise(setImmediate);
    expect(failures).toEqual([]);
    pass(1, first);
    expect(await textOf(await reply)).toContain('answer to getSlot');
    expect(failures).toEqual(['a: no-answer']);
    await a.left;
  });

  test('is left after 30 s also when it began an error, however the rest of it drips', async () => {
    using a = startRawBackend(async (exchange) => {
      await exchange.send(`${CHUNKED}${chunk('{"error":')}`);
      for (let isGone = false; !isGone; await Bun.sleep(1)) {
        void exchange.gone.then(() => (isGone = true));
        await exchange.send(chunk(' '));
      }
    });
    await using b = startBackend();
    const { send, backend, pass, failures } = started();
    const first = backend({ name: 'a', at: a.url });
    const reply = send([first, backend({ name: 'b', at: b.url })]);
    while (a.calls() === 0) await Bun.sleep(1); // until it has been asked
    await Bun.sleep(20); // it drips meanwhile
    pass(29_999, first);
    await Bun.sleep(20);
    expect(failures).toEqual([]);
    pass(1, first);
    expect(await textOf(await reply)).toContain('answer to getSlot');
    expect([failures, first.inFlight]).toEqual([['a: no-answer'], 0]);
  });

  test('may take the longer time of a scan', async () => {
    await using a = silent();
    const { send, backend, pass, failures } = started();
    const first = backend({ name: 'a', at: a.url });
    const reply = send([first], 'getProgramAccounts');
    await a.asked;
    pass(107_999, first);
    await new Promise(setImmediate);
    expect(failures).toEqual([]);
    pass(1, first);
    expect(await reply).toEqual({ kind: 'no-backend', replied: false });
  });
});

describe('a caller who leaves', () => {
  test('ends the request at the backend, which is not blamed, and no other is asked', async () => {
    await using a = silent();
    await using b = startBackend();
    const { send, failures, clock } = started();
    const caller = new AbortController();
    const first = backendOf({ at: a.url });
    const reply = send([first, backendOf({ at: b.url })], 'getSlot', caller.signal);
    await a.asked;
    expect(first.inFlight).toBe(1);
    caller.abort();
    expect(await reply).toEqual({ kind: 'caller-left' });
    await a.left;
    expect([b.seen.length, failures, first.isFailing(clock.clock), first.inFlight]).toEqual([
      0,
      [],
      false,
      0,
    ]);
  });

  test('before anything was sent has nothing sent', async () => {
    await using a = startBackend();
    const reply = await started().send([backendOf({ at: a.url })], 'sendTransaction', AbortSignal.abort());
    expect(reply).toEqual({ kind: 'caller-left', unsent: true });
    expect(a.seen.length).toBe(0);
  });
});

test('an answer leaves no timer and no place taken behind', async () => {
  await using backends = pair(plain('', 502));
  const { a, b } = backends;
  const { send, clock } = started();
  const both = [backendOf({ at: a.url }), backendOf({ at: b.url })];
  await send(both);
  expect([clock.sleeping(), both.map(({ inFlight }) => inFlight)]).toEqual([0, [0, 0]]);
});

test('a deadline that passes after the answer has begun does not cut it', async () => {
  const gate = Promise.withResolvers<void>();
  using backend = startRawBackend(async (exchange) => {
    // What may be a null is held for a while.
    for (const text of [`${CHUNKED}${chunk('{"result":')}`, chunk('[')])
      await exchange.send(text).then(() => Bun.sleep(10));
    await gate.promise;
    await exchange.send(`${chunk('],"id":7}')}0\r\n\r\n`);
  });
  const { send, pass, backend: backendAt } = started();
  const only = backendAt({ at: backend.url });
  const reply = await send([only]);
  pass(1_000_000, only);
  gate.resolve();
  expect(await textOf(reply)).toBe('{"result":[],"id":7}');
});

/** Two scripted backends that end together. */
function pair(first?: Script, second?: Script) {
  const [a, b] = [startBackend(first), startBackend(second)];
  return {
    a,
    b,
    async [Symbol.asyncDispose]() {
      await Promise.all([a[Symbol.asyncDispose](), b[Symbol.asyncDispose]()]);
    },
  };
}

import { describe, expect, test } from 'bun:test';
import type { Backend } from '../../../gateway/upstream/backend.ts';
import { Secret } from '../../../shared/secret.ts';
import { failure, type Script, startBackend } from '../../fakes/backend.ts';
import { CHUNKED, chunk, refusedUrl, type RawScript, startRawBackend } from '../../fakes/raw-backend.ts';
import { createVirtualClock } from '../virtual-clock.ts';
import { ACCOUNT_ABC, backendOf, callOf, contextOf, forwardOf, routeTo, textOf } from './of.ts';

/** The way to backends a, b and so on, on a clock that stands still. */
function started() {
  const virtual = createVirtualClock();
  const { clock } = virtual;
  const failures: string[] = [];
  const overs: string[] = [];
  const told: Parameters<typeof forwardOf>[2] = {
    onFailure: ({ config }, { kind }) => void failures.push(`${config.name}: ${kind}`),
    onCut: ({ config }, { reason }) => void failures.push(`${config.name}: cut ${reason}`),
  };
  return {
    ...virtual,
    failures,
    /** The calls that no backend works on any more. */
    overs,
    backends: (...urls: readonly string[]) =>
      urls.map((at, i) => backendOf({ name: 'abc'[i] ?? '', at, clock })),
    /** Lets time go by for the connections of backends. */
    pass(ms: number, ...backends: readonly Backend[]) {
      virtual.advance(ms);
      for (const { client } of backends) client.tick();
    },
    send: (backends: readonly Backend[], method = 'getSlot', signal = new AbortController().signal) =>
      forwardOf(backends, clock, told).forward(
        callOf(method),
        routeTo(backends, method),
        contextOf({
          signal,
          accountId: ACCOUNT_ABC,
          startedMs: clock.monotonic(),
          onSettled: () => void overs.push(method),
        }),
      ),
  };
}

/** Sends a call to backends with these scripts; what came of it, and how often each was called. */
async function sent(scripts: readonly (Script | undefined)[], method?: string) {
  const fakes = scripts.map((script) => startBackend(script));
  const { send, backends, failures, overs } = started();
  const reply = await send(backends(...fakes.map(({ url }) => url)), method);
  const text = await textOf(reply);
  await Promise.all(fakes.map((fake) => fake[Symbol.asyncDispose]()));
  return { reply, text, calls: fakes.map(({ seen }) => seen.length), failures, overs };
}

const plain =
  (text: string, status: number, type = 'text/html') =>
  () =>
    new Response(text, { status, headers: { 'content-type': type } });

const HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n';
const ANSWER = '{"jsonrpc":"2.0","result":1,"id":7}';
const brokenOff =
  (text: string): RawScript =>
  (connection) => {
    void connection.send(text);
    connection.end();
  };
const BAD_CONNECTIONS: readonly (readonly [string, RawScript])[] = [
  ['a reset after the call was sent', (connection) => connection.reset()],
  ['a close after the call was sent', (connection) => connection.end()],
  ['a body shorter than its length', brokenOff(`${HEAD}content-length: 100\r\n\r\n${ANSWER}`)],
  ['a head that breaks off', brokenOff(HEAD)],
  ['something that is not HTTP', brokenOff('SSH-2.0-OpenSSH_9.2\r\n')],
];

test('a backend is sent the envelope and its own headers, and nothing of the caller but what it accepts', async () => {
  await using backend = startBackend();
  const headers = new Map([['authorization', new Secret('Bearer x')]]);
  const { clock } = createVirtualClock();
  const route = routeTo([backendOf({ at: `${backend.url}path?x=1`, headers })]);
  const context = contextOf({ acceptEncoding: 'gzip, br', startedMs: clock.monotonic() });
  await forwardOf([], clock).forward(callOf('getSlot'), route, context);
  const { text, request } = backend.seen[0] ?? {};
  expect(text).toBe('{"jsonrpc":"2.0","id":7,"method":"getSlot","params":["a"]}');
  expect(request?.url).toEndWith('/path?x=1');
  const fields = ['accept-encoding', 'authorization', 'content-type'];
  expect(fields.map((name) => request?.headers.get(name))).toEqual([
    'gzip, br',
    'Bearer x',
    'application/json',
  ]);
});

describe('a read', () => {
  test('goes to the next backend after a bad answer, and each is called once', async () => {
    expect(await sent([plain('busy', 503), undefined])).toMatchObject({
      text: '{"jsonrpc":"2.0","result":"answer to getSlot","id":7}\n',
      calls: [1, 1],
      failures: ['a: status'],
    });
    expect(await sent([plain('', 503), plain('', 500)])).toMatchObject({
      reply: { kind: 'no-backend', replied: true },
      calls: [1, 1],
      failures: ['a: status', 'b: status'],
    });
  });

  test.each(BAD_CONNECTIONS)('goes to the next backend after %s', async (_, script) => {
    using a = startRawBackend(script);
    await using b = startBackend();
    const { send, failures, backends } = started();
    expect(await textOf(await send(backends(a.url, b.url)))).toContain('answer to getSlot');
    expect([a.calls(), b.seen.length, failures]).toEqual([1, 1, ['a: no-answer']]);
  });

  test('goes to no backend that takes no body of its length', async () => {
    await using backend = startBackend();
    const reply = await started().send([backendOf({ at: backend.url, bodyBytesMax: 10 })]);
    expect([reply.kind, backend.seen.length]).toEqual(['too-large', 0]);
  });
});

describe('an error of the method', () => {
  const says =
    (code: number): Script =>
    (seen) =>
      failure(seen, code, `says ${code}`);

  test.each<[string, Script, Script, string]>([
    ['of the first, when the next has none that mends it', says(-32005), says(-32016), '"says -32005"'],
    ['of the first, when the next fails', says(-32005), plain('', 502), '"says -32005"'],
    ['of the next, when that is final', says(-32005), says(-32602), '"says -32602"'],
    ["that throttles us is nobody's", says(-32429), says(429), 'no-backend'],
  ])('is the answer: %s', async (_, first, second, part) => {
    const { text, overs } = await sent([first, second], 'getBlock');
    expect(text).toContain(part);
    expect(overs).toEqual(['getBlock']);
  });

  test.each([
    [{ processed: 101, confirmed: 99, finalized: 68 }, 1],
    [{ processed: 100, confirmed: 99, finalized: 69 }, 1],
    [{ processed: 0, confirmed: 0, finalized: 0 }, 1],
    [{ processed: 100, confirmed: 99, finalized: 68 }, 0],
    [{ processed: 0, confirmed: 99, finalized: 68 }, 0],
  ])('-32016 of one at the slots 100, 99 and 68 is for another at %j: %d', async (tip, calls) => {
    await using a = startBackend(says(-32016));
    await using b = startBackend();
    const { send, backends } = started();
    const both = backends(a.url, b.url);
    Object.assign(both[0]?.slots.tip ?? {}, { processed: 100, confirmed: 99, finalized: 68 });
    Object.assign(both[1]?.slots.tip ?? {}, tip);
    await send(both, 'getBalance');
    expect([a.seen.length, b.seen.length]).toEqual([1, calls]);
  });
});

describe('sendTransaction', () => {
  test('goes to the next backend after a refused connection: nothing was sent', async () => {
    await using b = startBackend();
    const { send, backends } = started();
    const reply = await send(backends(refusedUrl(), b.url), 'sendTransaction');
    expect(await textOf(reply)).toContain('answer to sendTransaction');
  });

  test.each<[string, number, string]>([
    ['maybe-sent', 500, 'text/html'],
    ['maybe-sent', 200, 'text/html'],
    ['no-backend', 403, 'text/html'],
    ['no-backend', 307, 'text/html'],
  ])('is %s and not sent a second time after %d', async (kind, status, type) => {
    const { reply, calls } = await sent([plain('oops', status, type), undefined], 'sendTransaction');
    expect<unknown>([reply.kind, calls]).toEqual([kind, [1, 0]]);
  });

  test.each(BAD_CONNECTIONS)('is not sent a second time after %s', async (_, script) => {
    using a = startRawBackend(script);
    await using b = startBackend();
    const { send, backends } = started();
    expect(await send(backends(a.url, b.url), 'sendTransaction')).toEqual({
      kind: 'maybe-sent',
      replied: false,
    });
    expect([a.calls(), b.seen.length]).toEqual([1, 0]);
  });

  test.each(['reset', 'end'] as const)(
    'is not sent a second time by the transport itself when a kept-alive connection ends with %s',
    async (how) => {
      using a = startRawBackend((connection) => {
        if (connection.nth > 1) return connection[how]();
        return connection.send(`${HEAD}content-length: ${ANSWER.length}\r\n\r\n${ANSWER}`);
      });
      const { send, backends } = started();
      const both = backends(a.url);
      expect((await send(both)).kind).toBe('whole');
      expect(await send(both, 'sendTransaction')).toEqual({ kind: 'maybe-sent', replied: false });
      // The second call went over the first one's connection, so a transport that retries would have.
      expect([a.calls(), a.connections()]).toEqual([2, 1]);
    },
  );
});

test('a backend that began an error is left after 30 s, however the rest of it drips', async () => {
  using a = startRawBackend(async (exchange) => {
    await exchange.send(`${CHUNKED}${chunk('{"error":')}`);
    for (let isGone = false; !isGone; await Bun.sleep(1)) {
      void exchange.gone.then(() => (isGone = true));
      await exchange.send(chunk(' '));
    }
  });
  await using b = startBackend();
  const { send, backends, pass, failures } = started();
  const both = backends(a.url, b.url);
  const reply = send(both);
  while (a.calls() === 0) await Bun.sleep(1); // until it has the call
  await Bun.sleep(20); // it drips meanwhile
  pass(29_999, ...both);
  await Bun.sleep(20);
  expect(failures).toEqual([]);
  pass(1, ...both);
  expect(await textOf(await reply)).toContain('answer to getSlot');
  expect([failures, both[0]?.inFlight]).toEqual([['a: no-answer'], 0]);
});

describe('a caller who leaves', () => {
  test('ends the request at the backend, which is not blamed, and no other is called', async () => {
    const [arrived, left] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    await using a = startBackend(({ request }) => {
      request.signal.addEventListener('abort', () => left.resolve());
      arrived.resolve();
      return new Promise(() => undefined);
    });
    await using b = startBackend();
    const { send, backends, failures, clock } = started();
    const caller = new AbortController();
    const both = backends(a.url, b.url);
    const reply = send(both, 'getSlot', caller.signal);
    await arrived.promise;
    expect(both[0]?.inFlight).toBe(1);
    caller.abort();
    expect(await reply).toEqual({ kind: 'caller-left' });
    await left.promise;
    expect([b.seen.length, failures]).toEqual([0, []]);
    expect([both[0]?.isFailing(clock), both[0]?.inFlight]).toEqual([false, 0]);
  });

  test('before anything was sent has nothing sent', async () => {
    await using a = startBackend();
    const { send, backends } = started();
    const reply = await send(backends(a.url), 'sendTransaction', AbortSignal.abort());
    expect([reply, a.seen.length]).toEqual([{ kind: 'caller-left', unsent: true }, 0]);
  });
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
  const { send, pass, backends } = started();
  const only = backends(backend.url);
  const reply = await send(only);
  pass(1_000_000, ...only);
  gate.resolve();
  expect(await textOf(reply)).toBe('{"result":[],"id":7}');
});

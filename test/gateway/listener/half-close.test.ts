import { describe, expect, test } from 'bun:test';
import { connect as connectTls, type ConnectionOptions } from 'node:tls';
import { join } from 'node:path';
import { RpcResponse } from '../../../gateway/listener/rpc.ts';
import type { StreamEnd } from '../../../gateway/http/stream-body.ts';
import { openCaller } from '../../fakes/raw-caller.ts';
import { createVirtualClock } from '../virtual-clock.ts';
import { type Answer, get, heldStream, open, post, statusesIn, text, turns } from './open-listener.ts';

/** Answers when `gate` opens; counts the callers that have left before. */
function gated() {
  const gate = Promise.withResolvers<void>();
  const left = Promise.withResolvers<void>();
  const answer: Answer = async ({ signal }) => {
    signal.addEventListener('abort', () => left.resolve());
    await gate.promise;
    return text('late');
  };
  return { answer, open: gate.resolve, left: left.promise };
}

describe('F16 a caller that ends its sending side', () => {
  test('F16 behind a whole request gets its answer, and those to all requests before it', async () => {
    const { url } = open(async (request) => {
      const body = await request.readBody(100, 1);
      return text(body.kind === 'body' ? `<${body.bytes.toString()}>` : body.kind);
    });
    using caller = await openCaller(url);
    caller.send(post('a') + post('b') + post('c'));
    caller.halfClose();
    expect(await caller.ended).toBe('closed');
    expect(caller.text().match(/<\w>/g)).toEqual(['<a>', '<b>', '<c>']);
    expect(statusesIn(caller.text())).toEqual([200, 200, 200]);
  });

  test('F16 before its answer is there is sent a 100 now and then, and the answer', async () => {
    const { clock, advance } = createVirtualClock();
    const { answer, open: answerNow } = gated();
    const { url } = open(answer, clock);
    using caller = await openCaller(url);
    caller.send(get('/'));
    caller.halfClose();
    await turns();
    for (let i = 0; i < 40; i++) {
      advance(500.5);
      await turns(2);
    }
    answerNow();
    expect(await caller.ended).toBe('closed');
    const [last, ...probes] = statusesIn(caller.text()).toReversed();
    expect(last).toBe(200);
    expect(caller.text()).toEndWith('\r\n\r\nlate');
    expect(probes.length).toBeGreaterThanOrEqual(4);
    expect(probes.length).toBeLessThanOrEqual(8);
    expect(probes.every((status) => status === 100)).toBe(true);
  });

  test.each(['it closes', 'it half-closes first'])(
    'F16 A5 and leaves is noticed within a second: %s',
    async (how) => {
      const { answer, left } = gated();
      const { url } = open(answer);
      const caller = await openCaller(url);
      caller.send(get('/'));
      await turns();
      if (how === 'it half-closes first') caller.halfClose();
      const leftMs = performance.now();
      caller[Symbol.dispose]();
      await left;
      expect(performance.now() - leftMs).toBeLessThan(1_000);
    },
  );

  test('F16 and leaves in the middle of a stream ends it with the next bytes', async () => {
    const ends: StreamEnd[] = [];
    const { body, goOn, cancelled } = heldStream();
    const { url } = open(
      () => new RpcResponse({ status: 200, fields: {}, body, onEnd: (end) => void ends.push(end) }),
    );
    const caller = await openCaller(url);
    caller.send(get('/'));
    await caller.until('first');
    caller[Symbol.dispose]();
    await caller.ended;
    await turns();
    goOn();
    await cancelled;
    await turns();
    expect(ends.map(({ kind }) => kind)).toEqual(['cut']);
  });

  test.each([
    ['a part of a head', 'GET / HTTP/1.1\r\nhost'],
    ['a part of a body', 'POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\nhalf'],
    ['nothing', ''],
    ['a request and a part of another one', `${get('/')}GET /`],
  ])('F16 behind %s is let go at once', async (_name, sent) => {
    const { url } = open(async (request) => text((await request.readBody(100, 1)).kind));
    using caller = await openCaller(url);
    caller.send(sent);
    caller.halfClose();
    expect(await caller.ended).toBe('closed');
    expect(statusesIn(caller.text())).toEqual(sent.startsWith('GET / HTTP/1.1\r\nhost: a') ? [200] : []);
  });

  test('F16 by HTTP/1.0, which knows no 100, gets what is there within a second', async () => {
    const { clock, advance } = createVirtualClock();
    const { answer, left } = gated();
    const { url } = open((request) => (request.url.endsWith('/now') ? text('now') : answer(request)), clock);
    using now = await openCaller(url);
    using late = await openCaller(url);
    for (const [caller, path] of [
      [now, '/?/now'],
      [late, '/'],
    ] as const) {
      caller.send(`GET ${path} HTTP/1.0\r\n\r\n`);
      caller.halfClose();
    }
    expect(await now.until('now')).toContain('HTTP/1.1 200 ');
    await turns();
    advance(500.5);
    await left;
    expect(late.text()).toBe('');
  });

  test('F16 over TLS is answered too, and one that leaves is noticed', async () => {
    const folder = join(import.meta.dir, '../../fixtures/tls');
    const tls = { cert: join(folder, 'localhost.pem'), key: join(folder, 'localhost-key.pem') };
    const { answer, left } = gated();
    const { url } = open(
      (request) => (request.url.endsWith('now') ? text('now') : answer(request)),
      undefined,
      { tls },
    );
    // Sockets have it, the type of TLS alone has not.
    const options = {
      port: Number(url.port),
      host: '127.0.0.1',
      rejectUnauthorized: false,
      allowHalfOpen: true,
    };
    const connect = () => connectTls(options as ConnectionOptions);
    const half = connect();
    half.end(get('/?now'));
    let got = '';
    for await (const piece of half) got += String(piece);
    expect(got).toEndWith('\r\n\r\nnow');
    const leaver = connect();
    leaver.write(get('/'));
    await turns();
    leaver.destroy();
    await left;
  });
});

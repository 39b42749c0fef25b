import { describe, expect, test } from 'bun:test';
import { openCaller } from '../../fakes/raw-caller.ts';
import { createVirtualClock } from '../virtual-clock.ts';
import { get, open, post, text, turns, type Answer } from './open-listener.ts';

/** Answers as the gateway does: the request's own target says whether its key is good. */
const byKey: Answer = async (request) => {
  const holder = request.url.endsWith('/?good') ? 1 : undefined;
  const body = await request.readBody(100, holder);
  if (body.kind === 'caller-left') return text('', 400);
  return holder === undefined ? text('no', 401) : text('yes', body.kind === 'body' ? 200 : 413);
};
const half = (target: string) => `POST ${target} HTTP/1.1\r\nhost: a\r\ncontent-length: 50\r\n\r\nhalf`;
const long = (target: string) => `POST ${target} HTTP/1.1\r\nhost: a\r\ncontent-length: 9000\r\n\r\nsome`;

describe('F15 a request without a valid key', () => {
  test('F15 has ten seconds for head and body together; one with a key has as long as it sends', async () => {
    const { clock, advance } = createVirtualClock();
    const { url } = open(byKey, clock, { idle_seconds: 120 });
    using bad = await openCaller(url);
    using good = await openCaller(url);
    let isOver = false;
    void bad.ended.then(() => (isOver = true));
    bad.send(half('/').slice(0, 20));
    good.send(half('/?good').slice(0, 20));
    await turns();
    advance(6_000.5);
    bad.send(half('/').slice(20));
    good.send(half('/?good').slice(20));
    await turns();
    advance(3_900);
    await turns();
    expect(isOver).toBe(false);
    advance(1_000);
    await bad.ended;
    expect(bad.text()).toBe('');
    advance(60_000);
    good.send('x'.repeat(46));
    expect(await good.until('yes')).toContain('HTTP/1.1 200 ');
  });

  test('F15 a body that drips without a key is not waited for longer', async () => {
    const { clock, advance } = createVirtualClock();
    const { url } = open(byKey, clock, { idle_seconds: 120 });
    using caller = await openCaller(url);
    let isOver = false;
    void caller.ended.then(() => (isOver = true));
    caller.send(half('/'));
    let seconds = 0;
    for (; !isOver && seconds < 100; seconds++) {
      caller.send('x');
      await turns(3);
      advance(1_000.25);
      await turns(3);
    }
    expect(seconds).toBeLessThan(13);
  });

  test('F15 has ten seconds after its refusal, also with a body that does not come, and unread', async () => {
    const { clock, advance } = createVirtualClock();
    const { url } = open(byKey, clock, { idle_seconds: 120 });
    const all = await Promise.all(
      [long('/'), get('/nowhere'), post('{}')].map(async (request) => {
        const caller = await openCaller(url);
        caller.send(request);
        await caller.until('HTTP/1.1 4');
        return caller;
      }),
    );
    let over = 0;
    for (const caller of all) void caller.ended.then(() => over++);
    advance(9_500.5);
    await turns();
    expect(over).toBe(0);
    advance(1_000);
    await Promise.all(all.map(({ ended }) => ended));
  });

  test('F15 a kept connection that asks for /health stays, and so does one whose key is good', async () => {
    const { clock, advance } = createVirtualClock();
    const { url } = open(byKey, clock, { idle_seconds: 120 });
    using balancer = await openCaller(url);
    using good = await openCaller(url);
    good.send(post('{}').replace('/', '/?good'));
    await good.until('yes');
    for (let times = 1; times <= 4; times++) {
      balancer.send(get('/health'));
      expect(await balancer.until('ok\n', times)).not.toContain('connection: close');
      advance(30_000.5);
      await turns(3);
    }
    good.send(long('/?good'));
    expect(await good.until('yes', 2)).toContain('HTTP/1.1 413 ');
    good.send('x'.repeat(8_996));
    good.send(post('{}').replace('/', '/?good'));
    expect(await good.until('yes', 3)).toContain('HTTP/1.1 200 ');
  });
});

describe('M17 where descriptors are short', () => {
  test('M17 half bodies and refused ones are given up as half heads are; whole requests and those of a key are not', async () => {
    const { clock, advance } = createVirtualClock();
    const answered = Promise.withResolvers<void>();
    const waiting: Answer = async (request) => {
      if (request.url.endsWith('/?wait')) await answered.promise;
      return byKey(request);
    };
    const { url, closeIdle } = open(waiting, clock, { idle_seconds: 120 });
    const spare = ['', 'POST / HTTP/1.1\r\n', half('/'), long('/'), get('/nowhere'), get('/health')];
    const given = await Promise.all(
      spare.map(async (request) => {
        const caller = await openCaller(url);
        caller.send(request);
        return caller;
      }),
    );
    using whole = await openCaller(url);
    using good = await openCaller(url);
    whole.send(get('/?wait'));
    good.send(half('/?good'));
    await turns();
    closeIdle();
    await Promise.all(given.map(({ ended }) => ended));
    good.send('x'.repeat(46));
    expect(await good.until('yes')).toContain('HTTP/1.1 200 ');
    answered.resolve();
    expect(await whole.until('no')).toContain('HTTP/1.1 401 ');
    good.send(half('/?good'));
    await turns();
    advance(10_000.5);
    closeIdle();
    await good.ended;
    expect(good.text().match(/yes/g)?.length).toBe(1);
  });

  test('M17 an account whose half bodies keep others out loses them at once; a few of another account stay', async () => {
    const { clock } = createVirtualClock();
    const byAccount: Answer = async (request) => {
      await request.readBody(100, Number(request.url.split('?')[1]));
      return text('yes');
    };
    const { url, closeIdle } = open(byAccount, clock, { idle_seconds: 120 });
    const callers = await Promise.all(Array.from({ length: 56 }, () => openCaller(url)));
    const few = callers.slice(0, 16);
    for (const caller of callers) caller.send(half(`/?${few.includes(caller) ? 7 : 8}`));
    await turns();
    closeIdle();
    await Promise.all(callers.slice(16).map(({ ended }) => ended));
    for (const caller of few) caller.send('x'.repeat(46));
    for (const caller of few) expect(await caller.until('yes')).toContain('HTTP/1.1 200 ');
    for (const caller of callers) caller[Symbol.dispose]();
  }, 10_000);
});

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import type { LeaseStore } from '../../../gateway/limits/messages.ts';
import { openRedisStore } from '../../../gateway/limits/store-redis.ts';
import { systemClock } from '../../../shared/clock.ts';
import { startTcpProxy } from '../../fakes/tcp-proxy.ts';
import { freePort } from '../../started/ports.ts';
import { type StartedRedis, startRedis } from '../../started/redis.ts';
import { answers, openedRedis, rateMessage, senderOf } from './stores.ts';

/** A store that is slow, dead or gone: nobody waits, and it comes back by itself. */
let server: StartedRedis;
let proxy: ReturnType<typeof startTcpProxy>;
let store: LeaseStore | undefined;
beforeAll(async () => {
  server = await startRedis();
  proxy = startTcpProxy(server.port);
});
afterEach(() => store?.close());
afterAll(async () => {
  proxy[Symbol.dispose]();
  await server[Symbol.asyncDispose]();
});

const DEADLINE_MS = 100;
/** What a busy machine may add to a deadline; without a deadline the outage of 800 ms would be waited for. */
const SLACK_MS = 1_000;
const BACK_MS = 2_000;

async function connected(): Promise<LeaseStore> {
  store = openedRedis({ url: proxy.url, deadlineMs: DEADLINE_MS });
  await answers(store);
  return store;
}

let seq = 0;

/** Sends one message; how long it took, and whether it had a reply. */
async function send(to: LeaseStore) {
  const startMs = performance.now();
  const [reply] = await to.sync(senderOf('a', ++seq), [rateMessage({ wanted: 1 })]);
  return { tookMs: performance.now() - startMs, kind: reply === undefined ? 'failed' : 'granted' };
}

/** Sends until it is answered again; how long that took. */
async function backAfterMs(to: LeaseStore): Promise<number> {
  const startMs = performance.now();
  while ((await send(to)).kind !== 'granted') await Bun.sleep(10);
  return performance.now() - startMs;
}

describe('no call waits longer than its deadline, and replies come again soon after', () => {
  test.each([
    [
      'the server is killed and starts again with its data',
      () => server.die(),
      () => server.restart('with its data'),
    ],
    ['the server is killed and starts again empty', () => server.die(), () => server.restart('empty')],
    ['the server is stopped', () => server.kill('SIGSTOP'), () => server.kill('SIGCONT')],
    ['every packet is lost', () => proxy.become('black-hole'), () => proxy.become('forward')],
    ['every connection is cut', () => proxy.cut(), () => undefined],
    ['every connection is dead and does not say so', () => proxy.strand(), () => undefined],
  ])('when %s', async (_, breaks, mends) => {
    const to = await connected();
    await breaks();
    const untilMs = performance.now() + 800;
    let slowestMs = 0;
    const outcomes = new Set<string>();
    while (performance.now() < untilMs) {
      const { tookMs, kind } = await send(to);
      slowestMs = Math.max(slowestMs, tookMs);
      outcomes.add(kind);
      await Bun.sleep(5);
    }
    expect(slowestMs).toBeLessThan(DEADLINE_MS + SLACK_MS);
    expect(outcomes).toContain('failed');
    await mends();
    expect(await backAfterMs(to)).toBeLessThan(BACK_MS);
  });
});

test('C6 a store whose server is not there yet fails at once, and answers when it has come', async () => {
  const port = freePort();
  store = openedRedis({ url: `redis://127.0.0.1:${port}`, deadlineMs: DEADLINE_MS });
  const { tookMs, kind } = await send(store);
  expect(kind).toBe('failed');
  expect(tookMs).toBeLessThan(DEADLINE_MS);
  await using late = await startRedis([], port);
  expect(await backAfterMs(store)).toBeLessThan(BACK_MS);
  expect(late.port).toBe(port);
});

test('a primary that has become a replica is left for its successor, without a cut', async () => {
  const to = await connected();
  await using successor = await startRedis();
  proxy.leadTo(successor.port);
  await server.cli('REPLICAOF', '127.0.0.1', String(successor.port));
  expect(await backAfterMs(to)).toBeLessThan(BACK_MS);
  proxy.leadTo(server.port);
  await server.cli('REPLICAOF', 'NO', 'ONE');
});

test('a store closes while its server answers nothing', async () => {
  const to = await connected();
  proxy.become('black-hole');
  const under = send(to);
  await to.close();
  expect((await under).kind).toBe('failed');
  proxy.become('forward');
});

describe('an operator is told', () => {
  async function warnings(settings: readonly string[]): Promise<string[]> {
    await using other = await startRedis(settings);
    const said: string[] = [];
    store = openedRedis({ url: other.url, onWarning: (sentence) => void said.push(sentence) });
    await answers(store);
    return said.map((sentence) => sentence.replace(String(other.port), 'PORT'));
  }
  test('nothing about a server that is set up well', async () => expect(await warnings([])).toEqual([]));
  test('that keys may be evicted, and that nothing survives a restart', async () => {
    const poor = ['--maxmemory-policy', 'allkeys-lru', '--maxmemory', '100mb', '--appendonly', 'no'];
    expect(await warnings(poor)).toEqual([
      'Redis 127.0.0.1:PORT may evict balances (maxmemory-policy allkeys-lru); set it to noeviction.',
      'Redis 127.0.0.1:PORT forgets balances at a restart (appendonly no); set appendonly yes.',
    ]);
  });
  test('that the password is wrong; with the right one all is well', async () => {
    await using other = await startRedis(['--requirepass', 'secret']);
    const said = Promise.withResolvers<string>();
    store = openedRedis({ url: other.url.replace('//', '//:wrong@'), onWarning: said.resolve });
    expect(await said.promise).toContain('Redis refuses a command (WRONGPASS');
    expect(await said.promise).not.toContain('wrong@');
    await store.close();
    store = openedRedis({ url: other.url.replace('//', '//:secret@') });
    await answers(store);
  });
  test('that memory is full, once, and the store grants again when there is some', async () => {
    await using other = await startRedis();
    const said: string[] = [];
    store = openedRedis({ url: other.url, onWarning: (sentence) => void said.push(sentence) });
    await answers(store);
    await other.cli('CONFIG', 'SET', 'maxmemory', '1');
    for (let turn = 0; turn < 3; turn++) expect((await send(store)).kind).toBe('failed');
    expect(said).toHaveLength(1);
    expect(said[0]).toContain('OOM');
    await other.cli('CONFIG', 'SET', 'maxmemory', '0');
    expect((await send(store)).kind).toBe('granted');
  });
  test.each(['', 'redis://', 'http://127.0.0.1:6379', 'redis://h/x', 'redis://h:1,', 'redis://h:x'])(
    'that %p is no address',
    (url) => {
      const ignore = () => undefined;
      const deps = { clock: systemClock, random: () => 0.5, onWarning: ignore, onLoss: ignore };
      expect(openRedisStore({ url, ...deps, onReleased: ignore })).toBeUndefined();
    },
  );
});

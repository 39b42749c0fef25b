import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import type { LeaseStore } from '../../../gateway/cluster/messages.ts';
import { startTcpProxy } from '../../started/tcp-proxy.ts';
import { freePort } from '../../started/ports.ts';
import { type StartedRedis, startRedis } from '../../started/redis.ts';
import { answers, openedRedis, rateMessage, senderOf } from './stores.ts';

/** A store that is slow, dead or gone: nobody waits, and it comes back by itself. */
let server: StartedRedis;
let proxy: ReturnType<typeof startTcpProxy>;
let store: LeaseStore;
beforeAll(async () => {
  server = await startRedis();
  proxy = startTcpProxy(server.port);
});
afterEach(() => store.close());
afterAll(async () => {
  proxy[Symbol.dispose]();
  await server[Symbol.asyncDispose]();
});

const DEADLINE_MS = 100;
/** What a busy machine may add to a deadline; without a deadline the outage of 800 ms would be waited for. */
const SLACK_MS = 1_000;

function open(url: string, onWarning: (sentence: string) => void = () => undefined) {
  store = openedRedis({ url, deadlineMs: DEADLINE_MS, onWarning });
}

let seq = 0;

/** Sends one message; how long it took, and whether it had a reply. */
async function send() {
  const startMs = performance.now();
  const [reply] = await store.sync(senderOf('a', ++seq), [rateMessage({ wanted: 1 })]);
  return { tookMs: performance.now() - startMs, isGranted: reply !== undefined };
}

async function expectBack(): Promise<void> {
  const startMs = performance.now();
  while (!(await send()).isGranted) await Bun.sleep(10);
  expect(performance.now() - startMs).toBeLessThan(2_000);
}

test.each([
  ['the server is killed and starts again', () => server.die(), () => server.restart('empty')],
  ['the server is stopped', () => server.kill('SIGSTOP'), () => server.kill('SIGCONT')],
  ['every packet is lost', () => proxy.become('black-hole'), () => proxy.become('forward')],
  ['every connection is dead and does not say so', () => proxy.strand(), () => undefined],
])(
  'no call waits longer than its deadline, and replies come again soon after: %s',
  async (_, breaks, mends) => {
    open(proxy.url);
    await answers(store);
    await breaks();
    const untilMs = performance.now() + 800;
    const sent: Awaited<ReturnType<typeof send>>[] = [];
    while (performance.now() < untilMs) {
      sent.push(await send());
      await Bun.sleep(5);
    }
    expect(Math.max(...sent.map(({ tookMs }) => tookMs))).toBeLessThan(DEADLINE_MS + SLACK_MS);
    expect(sent.some(({ isGranted }) => !isGranted)).toBe(true);
    await mends();
    await expectBack();
  },
);

test('C6 a store whose server is not there yet fails at once, and replies when it has come', async () => {
  const port = freePort();
  open(`redis://127.0.0.1:${port}`);
  const { tookMs, isGranted } = await send();
  expect([isGranted, tookMs < DEADLINE_MS]).toEqual([false, true]);
  await using _ = await startRedis([], port);
  await expectBack();
});

test('a primary that has become a replica is left for its successor, without a cut', async () => {
  open(proxy.url);
  await answers(store);
  await using successor = await startRedis();
  proxy.leadTo(successor.port);
  await server.cli('REPLICAOF', '127.0.0.1', String(successor.port));
  await expectBack();
  proxy.leadTo(server.port);
  await server.cli('REPLICAOF', 'NO', 'ONE');
});

test('a store closes while its server answers nothing', async () => {
  open(proxy.url);
  await answers(store);
  proxy.become('black-hole');
  const sending = send();
  await store.close();
  expect((await sending).isGranted).toBe(false);
  proxy.become('forward');
});

describe('an operator is warned', () => {
  test('that keys may be evicted, and that nothing survives a restart', async () => {
    const poor = ['--maxmemory-policy', 'allkeys-lru', '--maxmemory', '100mb', '--appendonly', 'no'];
    await using other = await startRedis(poor);
    const said: string[] = [];
    open(other.url, (sentence) => void said.push(sentence.replace(String(other.port), 'PORT')));
    await answers(store);
    expect(said).toEqual([
      'Redis 127.0.0.1:PORT may evict balances (maxmemory-policy allkeys-lru); set it to noeviction.',
      'Redis 127.0.0.1:PORT forgets balances at a restart (appendonly no); set appendonly yes.',
    ]);
  });

  test('that the password is wrong; with the right one all is well', async () => {
    await using other = await startRedis(['--requirepass', 'secret']);
    const said = Promise.withResolvers<string>();
    open(other.url.replace('//', '//:wrong@'), said.resolve);
    expect(await said.promise).toContain('Redis refuses a command (WRONGPASS');
    expect(await said.promise).not.toContain('wrong@');
    await store.close();
    open(other.url.replace('//', '//:secret@'));
    await answers(store);
  });

  test('that memory is full, once, and the store grants again when there is some', async () => {
    await using other = await startRedis();
    const said: string[] = [];
    open(other.url, (sentence) => void said.push(sentence));
    await answers(store);
    await other.cli('CONFIG', 'SET', 'maxmemory', '1');
    for (let turn = 0; turn < 3; turn++) expect((await send()).isGranted).toBe(false);
    expect(said).toEqual([expect.stringContaining('OOM')]);
    await other.cli('CONFIG', 'SET', 'maxmemory', '0');
    expect((await send()).isGranted).toBe(true);
  });
});

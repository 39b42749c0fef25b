import { expect, test } from 'bun:test';
import { createSender } from '../../../deploys/delivery/send.ts';
import { createWorker } from '../../../deploys/delivery/worker.ts';
import { systemClock } from '../../../shared/clock.ts';
import { Secret } from '../../../shared/secret.ts';
import { percentile } from '../../../bench/statistics.ts';
import { CONTENT, startReceiver } from '../../fakes/receiver.ts';
import { startQueue } from '../outbox/queue.ts';
import { AUTHORITY, loopbackPolicy } from './sending.ts';

const DOMAIN = 'example.com';
const certificate = AUTHORITY.issue({ dns: [`*.${DOMAIN}`] });

type World = Readonly<{ hanging: number; healthy: number; accountOf(n: number): number }>;

/** A worker that sends over TLS on loopback: to a host for each webhook, the first `hanging` of which never answer. */
async function startWorld({ hanging, healthy, accountOf }: World) {
  /** When the attempts at healthy receivers came, in monotonic milliseconds. */
  const begins: number[] = [];
  let wanted = { begins: Infinity, come: () => {} };
  const receiver = await startReceiver({
    certificate,
    script: (visit) => {
      if (visit.text.includes('\r\nhost: hung')) return;
      begins.push(systemClock.monotonic());
      if (begins.length === wanted.begins) wanted.come();
      void visit.send(CONTENT);
    },
  });
  const queue = startQueue();
  const over = new AbortController();
  const fail = (error: unknown) => {
    throw error;
  };
  const worker = createWorker({
    outbox: queue.outbox,
    send: createSender(loopbackPolicy(), systemClock),
    secretsOf: () => ({ current: new Secret('whsec'), next: undefined }),
    clock: systemClock,
    noteEnded: () => {},
    noteReaped: () => {},
    noteClockMoved: () => {},
    noteTrouble: fail,
    noteBroken: fail,
  });
  for (let n = 0; n < hanging + healthy; n++) {
    const host = `${n < hanging ? 'hung' : 'well'}${n}.${DOMAIN}`;
    queue.addWebhook(`webhook ${n}`, { host, account: accountOf(n) });
  }
  queue.store.run("UPDATE webhooks SET url = replace(url, '/hook', ?)", [`:${receiver.port}/hook`]);
  const running = worker.run(over.signal);
  let slot = 1;
  return {
    ...queue,
    /** So many upgrades at once; gives how long each attempt at a healthy receiver took to begin, in milliseconds. */
    async upgrade(upgrades: number): Promise<number[]> {
      const before = begins.length;
      const { promise, resolve } = Promise.withResolvers<void>();
      wanted = { begins: before + upgrades * healthy, come: resolve };
      const startMs = systemClock.monotonic();
      for (let i = 0; i < upgrades; i++) queue.upgrade('A', ++slot, systemClock.now());
      worker.wake();
      await promise;
      return begins.slice(before).map((atMs) => atMs - startMs);
    },
    async [Symbol.asyncDispose]() {
      over.abort();
      receiver[Symbol.dispose]();
      await running;
      queue[Symbol.dispose]();
    },
  };
}

const p50AndP99 = (begins: readonly number[]) => [percentile(begins, 0.5), percentile(begins, 0.99)] as const;

function expectWithinBars(begins: readonly number[]) {
  const [p50, p99] = p50AndP99(begins);
  expect({ p50: p50 < 1_000 || p50, p99: p99 < 2_000 || p99 }).toEqual({ p50: true, p99: true });
}

test.each([
  ['are new', 'NULL'],
  ['succeeded before', '1'],
])('80 of 100 receivers that %s and begin to hang delay no attempt at the others (E35)', async (_, at) => {
  await using world = await startWorld({ hanging: 80, healthy: 20, accountOf: () => 1 });
  world.store.run(`UPDATE webhooks SET last_success_at_ms = ${at}`);
  expectWithinBars(await world.upgrade(5));
  // Their attempts still hang, and more upgrades come.
  expectWithinBars(await world.upgrade(5));
});

test('16 receivers that hang, each of an account of its own, delay nobody over eight upgrades (E35)', async () => {
  await using world = await startWorld({ hanging: 16, healthy: 4, accountOf: (n) => n + 1 });
  expectWithinBars(await world.upgrade(8));
});

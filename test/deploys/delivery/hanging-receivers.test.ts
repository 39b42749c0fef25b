import { expect, test } from 'bun:test';
import { percentile } from '../../../bench/self/statistics.ts';
import { createSender } from '../../../deploys/delivery/send.ts';
import { createWorker } from '../../../deploys/delivery/worker.ts';
import { Secret } from '../../../shared/secret.ts';
import { createVirtualClock, START_MS } from '../../fakes/chain-clock.ts';
import { CONTENT, startReceiver, type Visit } from '../../fakes/receiver.ts';
import { startQueue } from '../outbox/queue.ts';
import { until } from '../started.ts';
import { AUTHORITY, loopbackPolicy } from './sending.ts';
import { quiet } from './working.ts';

const certificate = AUTHORITY.issue({ dns: ['*.example.com'] });
/** What a receiver that does well takes to answer, and the step in which time goes on. */
const [ANSWER_MS, STEP_MS] = [200, 10];
/** Below the 10 s in which an attempt that hangs comes to its end. */
const WATCHED_MS_MAX = 4_000;

type World = Readonly<{ hanging: number; healthy: number; accountOf(n: number): number }>;

/**
 * A worker that sends over TLS on loopback: to a host for each webhook, the first `hanging` of which never answer. Time
 * goes on when all that was sent has arrived, so what is seen is what attempts wait for, and not the machine.
 */
async function startWorld({ hanging, healthy, accountOf }: World) {
  const clock = createVirtualClock();
  const over = new AbortController();
  /** When the attempts at healthy receivers came. */
  const begins: number[] = [];
  let [answering, answered] = [0, 0];
  async function receive(visit: Visit): Promise<void> {
    if (visit.text.includes('\r\nhost: hung')) return;
    begins.push(clock.monotonic());
    await clock.sleep(ANSWER_MS, over.signal);
    answering++;
    await visit.send(CONTENT);
    await visit.gone;
    answered++;
  }
  const receiver = await startReceiver({ certificate, script: receive });
  const queue = startQueue();
  const fail = (error: unknown) => {
    throw error;
  };
  const worker = createWorker({
    outbox: queue.outbox,
    send: createSender(loopbackPolicy(), clock),
    secretsOf: () => ({ current: new Secret('whsec'), next: undefined }),
    clock,
    ...quiet(fail),
  });
  for (let n = 0; n < hanging + healthy; n++) {
    const host = `${n < hanging ? 'hung' : 'well'}${n}.example.com`;
    queue.addWebhook(`webhook ${n}`, { host, account: accountOf(n) });
  }
  queue.store.run("UPDATE webhooks SET url = replace(url, '/hook', ?)", [`:${receiver.port}/hook`]);
  const attempts = queue.store.prepare<{ n: number }, []>('SELECT count(*) AS n FROM attempts');
  const running = worker.run(over.signal);
  let slot = 1;
  return {
    ...queue,
    /** So many upgrades at once; gives how long each attempt at a healthy receiver took to begin, in milliseconds. */
    async upgrade(upgrades: number): Promise<number[]> {
      const [before, startMs] = [begins.length, clock.monotonic()];
      const wanted = upgrades * healthy;
      for (let i = 0; i < upgrades; i++) queue.upgrade('A', ++slot, clock.now());
      worker.wake();
      while (begins.length < before + wanted && clock.monotonic() < startMs + WATCHED_MS_MAX) {
        await clock.advance(STEP_MS);
        await until(() => receiver.visits().length === attempts.get()?.n && answering === answered);
      }
      const took = begins.slice(before).map((atMs) => atMs - startMs);
      return [...took, ...Array.from({ length: wanted - took.length }, () => Infinity)];
    },
    async [Symbol.asyncDispose]() {
      over.abort();
      receiver[Symbol.dispose]();
      let isOver = false;
      void running.then(() => (isOver = true));
      while (!isOver) await clock.advance(STEP_MS);
      queue[Symbol.dispose]();
    },
  };
}

function expectWithinBars(begins: readonly number[]) {
  expect(percentile(begins, 0.5)).toBeLessThan(1_000);
  expect(percentile(begins, 0.99)).toBeLessThan(2_000);
}

test.each([
  ['are new', null],
  ['succeeded an hour ago', START_MS - 3_600_000],
  ['succeeded a moment ago', START_MS],
])(
  '80 of 100 receivers that %s and begin to hang delay no attempt at the others (E27, E35)',
  async (_, atMs) => {
    await using world = await startWorld({ hanging: 80, healthy: 20, accountOf: () => 1 });
    world.store.run('UPDATE webhooks SET last_success_at_ms = ?', [atMs]);
    expectWithinBars(await world.upgrade(5));
    // Their attempts still hang, and more upgrades come.
    expectWithinBars(await world.upgrade(5));
  },
);

test('16 receivers that hang, each of an account of its own, delay nobody over eight upgrades (E35)', async () => {
  await using world = await startWorld({ hanging: 16, healthy: 4, accountOf: (n) => n + 1 });
  for (const upgrades of [4, 4]) expectWithinBars(await world.upgrade(upgrades));
});

test('240 of 300 receivers that begin to hang delay no attempt at the others (E35)', async () => {
  await using world = await startWorld({ hanging: 240, healthy: 60, accountOf: (n) => 1 + (n % 5) });
  expectWithinBars(await world.upgrade(5));
});

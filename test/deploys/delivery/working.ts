import type { SecretsOf } from '../../../deploys/delivery/send.ts';
import { createWorker } from '../../../deploys/delivery/worker.ts';
import type { Outbox, RecordResult, AttemptResult } from '../../../deploys/outbox/outbox.ts';
import type { Sent } from '../../../deploys/outbox/outcome.ts';
import type { Clock } from '../../../shared/clock.ts';
import { Secret } from '../../../shared/secret.ts';
import { createVirtualClock } from '../../fakes/chain-clock.ts';
import { createScriptedSend, type SeenPost } from '../../fakes/scripted-send.ts';
import { startQueue } from '../outbox/queue.ts';

export const SECRET = 'whsec_of_the_tests';
export const [SECOND, MINUTE, HOUR] = [1_000, 60_000, 3_600_000];

/** Two turns of the worker while there is something to do: one that sends, one that records. */
export const SOON = 40;

/** A post as the receiver saw it, with the instant it came at. */
export type TimedPost = SeenPost & Readonly<{ atMs: number }>;

type More = Readonly<{
  queue?: ReturnType<typeof startQueue>;
  secretsOf?: SecretsOf;
  outbox?: (outbox: Outbox) => Outbox;
  permit?: () => Promise<boolean>;
}>;

/** A running worker over a real queue in memory, a scripted network, and a clock that stands still. */
export function startWorker(script: (post: SeenPost) => Sent | undefined = () => undefined, more: More = {}) {
  const queue = more.queue ?? startQueue();
  const virtual = createVirtualClock();
  let wallShiftMs = 0;
  const clock: Clock = { ...virtual, now: () => virtual.now() + wallShiftMs };
  const times: number[] = [];
  const network = createScriptedSend((post) => (times.push(clock.now()), script(post)));
  const ended: [AttemptResult, RecordResult][] = [];
  const [troubles, broken, reaped, moved]: [unknown[], unknown[], number[], number[]] = [[], [], [], []];
  const over = new AbortController();
  const worker = createWorker({
    outbox: more.outbox?.(queue.outbox) ?? queue.outbox,
    send: network.send,
    secretsOf: more.secretsOf ?? (() => ({ current: new Secret(SECRET), next: undefined })),
    clock,
    permit: more.permit,
    noteEnded: (...args) => void ended.push(args),
    noteReaped: (count) => void reaped.push(count),
    noteClockMoved: (byMs) => void moved.push(byMs),
    noteTrouble: (error) => void troubles.push(error),
    noteBroken: (error) => void broken.push(error),
  });
  let isStopped = false;
  const running = worker.run(over.signal).finally(() => (isStopped = true));

  async function stop(): Promise<void> {
    over.abort();
    // The drain waits on the clock, so time must go on.
    while (!isStopped) await virtual.advance(SECOND);
    await running;
  }

  return {
    ...queue,
    worker,
    network,
    clock,
    ended,
    troubles,
    broken,
    reaped,
    moved,
    advance: virtual.advance,
    sleepers: virtual.sleepers,
    moveWallClock: (byMs: number) => void (wallShiftMs += byMs),
    /** An upgrade now, told to the worker as the watcher tells it. */
    upgradeNow: (name: string, slot: number) => {
      queue.upgrade(name, slot, clock.now());
      worker.wake();
    },
    posts: (): TimedPost[] => network.posts.map((post, i) => ({ ...post, atMs: times[i] ?? 0 })),
    askToStop: () => over.abort(),
    isStopped: () => isStopped,
    stop,
    async [Symbol.asyncDispose]() {
      await stop();
      queue[Symbol.dispose]();
    },
  };
}

/** The same with one webhook, and one event that has just been sent to it. */
export async function startSending(script?: (post: SeenPost) => Sent | undefined) {
  const work = startWorker(script);
  work.addWebhook('one');
  work.upgradeNow('A', 7);
  await work.advance(SOON);
  return work;
}

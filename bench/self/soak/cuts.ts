import { LEARNING_MS } from '../../../gateway/limits/authority-credits.ts';
import type { CreditGrant, LeaseStore } from '../../../gateway/limits/messages.ts';
import { systemClock } from '../../../shared/clock.ts';
import { startTcpProxy } from '../../../test/started/tcp-proxy.ts';
import { answers, creditsFrom, openedRedis, senderOf } from '../../../test/gateway/limits/stores.ts';
import { startRedis } from '../../../test/started/redis.ts';
import { atMost, exactly, type Finding, said } from './finding.ts';

/** What came of cutting the connection between a message's execution and its reply, again and again. */
type Cut = Readonly<{
  cuts: number;
  /** Messages that were answered although they were cut: the next one must have been, then. */
  answered: number;
  slowestMs: number;
  charged: number;
  available: number;
  held: number;
  total: number;
}>;

const WANTED = 20;
const CHARGED = 7;
const AGAIN_MS = 5;
/** A cut connection is back long before. */
const BACK_MS = 5_000;

/** Two processes that take turns over one Redis, whose every other reply is lost with its connection (limits.md 5, row 10). */
export async function cutReplies(cuts: number, signal: AbortSignal): Promise<Cut> {
  await using redis = await startRedis();
  using proxy = startTcpProxy(redis.port);
  const total = 3 * CHARGED * cuts + 2 * WANTED;
  const stores = ['a', 'b'].map((name) => ({
    name,
    seq: 0,
    charged: 0,
    to: openedRedis({ url: proxy.url }),
  }));
  type Node = (typeof stores)[number];
  await Promise.all(stores.map(({ to }) => answers(to)));
  // A young server is listened to first.
  await systemClock.sleep(LEARNING_MS, signal);
  let [answered, slowestMs] = [0, 0];

  async function send(node: Node, wanted: number): Promise<CreditGrant | undefined> {
    const part = { total, charged: node.charged, wanted };
    return creditsFrom(node.to, senderOf(node.name, ++node.seq), part);
  }
  async function sendUntilHeard(node: Node, wanted: number): Promise<CreditGrant> {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(BACK_MS)]);
    for (;;) {
      const grant = await send(node, wanted);
      if (grant !== undefined) return grant;
      if (limit.aborted) throw new Error('the store does not answer');
      await systemClock.sleep(AGAIN_MS, limit);
    }
  }

  let done = 0;
  for (; done < cuts && !signal.aborted; done++) {
    const node = stores[done % stores.length];
    if (node === undefined) break;
    proxy.cutAtNextReply();
    const sentMs = systemClock.monotonic();
    if ((await send(node, WANTED)) !== undefined) answered++;
    slowestMs = Math.max(slowestMs, systemClock.monotonic() - sentMs);
    const { allowance } = await sendUntilHeard(node, WANTED);
    node.charged += Math.min(CHARGED, Math.max(0, allowance));
  }
  const last = [];
  for (const node of stores) last.push(await sendUntilHeard(node, 0));
  await Promise.all(stores.map(({ to }: { to: LeaseStore }) => to.close()));
  return {
    cuts: done,
    answered,
    slowestMs,
    charged: stores.reduce((sum, { charged }) => sum + charged, 0),
    available: last.at(-1)?.available ?? Number.NaN,
    held: last.reduce((sum, { allowance }) => sum + allowance, 0),
    total,
  };
}

/** That nothing was granted or charged twice, and nobody waited. */
export function declared({
  cuts,
  answered,
  slowestMs,
  charged,
  available,
  held,
  total,
}: Cut): readonly Finding[] {
  return [
    said('replies lost', String(cuts)),
    exactly('answered all the same', answered, 0),
    exactly('charged, to the unit', charged, CHARGED * cuts),
    exactly('credits left', available, total - charged),
    exactly('credits held', held, 0),
    atMost('slowest answer, ms', slowestMs, 150, 1),
  ];
}

import { join } from 'node:path';
import { LEDGER_FILE, LEDGER_MIGRATIONS } from '../../../gateway/ledger.ts';
import type {
  CreditGrant,
  CreditReport,
  LeaseStore,
  Message,
  RateReport,
  ScanReport,
  Sender,
} from '../../../gateway/cluster/messages.ts';
import { openRedisStore } from '../../../gateway/cluster/store-redis.ts';
import { createSqliteStore } from '../../../gateway/cluster/store-sqlite.ts';
import { systemClock } from '../../../shared/clock.ts';
import { opened, temporaryFolder } from '../../started/gateway.ts';
import { startRedisCluster } from '../../started/redis-cluster.ts';
import { startRedis } from '../../started/redis.ts';
import { monotonicOf } from '../../fakes/chain-clock.ts';

/** One place where leases meet, which any number of processes share: the path of a ledger or the address of a Redis. */
export type Place = Readonly<{ at: string }> & AsyncDisposable;

export const PLACES: Readonly<Record<string, () => Promise<Place>>> = {
  async SQLite() {
    const folder = temporaryFolder();
    const at = join(folder.path, LEDGER_FILE);
    opened(at, LEDGER_MIGRATIONS).close();
    return { at, [Symbol.asyncDispose]: async () => folder[Symbol.dispose]() };
  },
  Redis: async () => placeOf(await startRedis()),
  'a Redis Cluster': async () => placeOf(await startRedisCluster()),
};

function placeOf(server: AsyncDisposable & Readonly<{ url: string }>): Place {
  return { at: server.url, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

/** The store of one more process, which no busy machine makes give up; a Redis that it meets has been there for long. */
export async function joined(at: string): Promise<LeaseStore> {
  if (!at.startsWith('redis:')) {
    const clock = { ...systemClock, monotonic: () => monotonicOf(0) };
    return createSqliteStore(opened(at, LEDGER_MIGRATIONS), { clock, onReleased: () => undefined });
  }
  let laterMs = 0;
  const clock = { ...systemClock, monotonic: () => performance.now() + laterMs };
  const store = openedRedis({ url: at, clock });
  await answers(store);
  laterMs = 1e12;
  return store;
}

/** A store of one process over a Redis, which waits for a busy machine, with what a test does not care about left out. */
export function openedRedis(
  options: Partial<Parameters<typeof openRedisStore>[0]> & { url: string },
): LeaseStore {
  const store = openRedisStore({
    clock: systemClock,
    random: () => 0.5,
    deadlineMs: 1_000,
    onWarning: () => undefined,
    onLoss: () => undefined,
    onReleased: () => undefined,
    ...options,
  });
  if (store === undefined) throw new Error(`${options.url} is no address of a Redis`);
  return store;
}

/** Accounts that no test uses, on every node of a cluster. */
const WAITING = Array.from({ length: 16 }, (_, at) => 1_000_000 + at);

/** Resolves when the store replies, from every node of a cluster. */
export async function answers(store: LeaseStore): Promise<void> {
  const messages = WAITING.map((accountId) => rateMessage({}, accountId));
  const untilMs = performance.now() + 10_000;
  for (let seq = 1; ; seq++) {
    const replies = await store.sync(senderOf('waiting', seq, 0), messages);
    if (replies.every((reply) => reply !== undefined)) return;
    if (performance.now() > untilMs) throw new Error('the store does not answer');
    await Bun.sleep(2);
  }
}

export const senderOf = (node: string, seq: number, fence = 1): Sender => ({ node, fence, seq });

const REVISION = { revision: 1 };

export function rateMessage(part: Partial<RateReport> = {}, accountId = 1): Message {
  const plan = { rps: 100, burst: 100 };
  const rate = { ...plan, spent: 0, wanted: 0, needed: 0, weight: 1, recovering: false, ...part };
  return { accountId, ...REVISION, rate };
}

export function creditMessage(part: Partial<CreditReport> = {}, accountId = 1): Message {
  const credits = { total: 1_000, charged: 0, refunded: 0, held: 0, wanted: 0, needed: 0, ...part };
  return { accountId, ...REVISION, credits };
}

export function scanMessage(part: Partial<ScanReport> = {}, accountId = 1): Message {
  return { accountId, ...REVISION, scans: { scans: 4, kept: 0, wanted: 0, ...part } };
}

/** The credits that a store grants for a message about them; `undefined`: it did not reply. */
export async function creditsFrom(
  store: LeaseStore,
  sender: Sender,
  part: Partial<CreditReport>,
): Promise<CreditGrant | undefined> {
  const [reply] = await store.sync(sender, [creditMessage(part)]);
  return reply?.credits;
}

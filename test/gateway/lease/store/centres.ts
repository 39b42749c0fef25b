import { join } from 'node:path';
import { Cluster, Redis } from 'ioredis';
import type { CreditState, Released } from '../../../../gateway/lease/centre-credit.ts';
import { topUpCredits } from '../../../../gateway/lease/centre-credit.ts';
import { type RateState, topUpRate } from '../../../../gateway/lease/centre-rate.ts';
import { type ScanState, topUpScans } from '../../../../gateway/lease/centre-scans.ts';
import type { LeaseStore, NodeId, Speaker } from '../../../../gateway/lease/messages.ts';
import { openRedisStore, type RedisStoreOptions } from '../../../../gateway/lease/store/redis.ts';
import { SCAN_SCRIPT } from '../../../../gateway/lease/store/scan-script.ts';
import { CREDIT_SCRIPT, RATE_SCRIPT } from '../../../../gateway/lease/store/scripts.ts';
import { createSqliteStore } from '../../../../gateway/lease/store/sqlite.ts';
import { LEDGER_FILE, LEDGER_MIGRATIONS } from '../../../../gateway/limits/ledger.ts';
import { type Clock, systemClock } from '../../../../shared/clock.ts';
import { opened, temporaryFolder } from '../../../started/gateway.ts';
import { startRedisCluster } from '../../../started/redis-cluster.ts';
import { startRedis } from '../../../started/redis.ts';

/** One centre that any number of processes share, and whose wall clock a test holds. */
export type Centre = Readonly<{
  /** The store of one more process. */
  join(): Promise<LeaseStore>;
  /** Sets the centre's wall clock, in whole milliseconds since 1970. */
  setClock(nowMs: number): Promise<void>;
  released: readonly (Released & { accountId: number })[];
  /** Has it hold grants back, as after a loss; `undefined` where nothing can be lost. */
  setLearning: ((is: boolean) => void) | undefined;
  /** Forgets everything, as a store that was lost. */
  forget(): Promise<void>;
}> &
  AsyncDisposable;

export const CENTRES: Readonly<Record<string, () => Promise<Centre>>> = {
  'the pure centre': memoryCentre,
  SQLite: sqliteCentre,
  Redis: async () => redisCentre(await startRedis(), 0),
  'a Redis Cluster': async () => redisCentre(await startRedisCluster(), 8),
};

/** The rules of the centre over maps: what the others must equal. */
export async function memoryCentre(): Promise<Centre> {
  const rates = new Map<number, RateState>();
  const credits = new Map<number, CreditState>();
  const scans = new Map<number, ScanState>();
  const released: (Released & { accountId: number })[] = [];
  let nowMs = 0;
  let learning = false;
  const store: LeaseStore = {
    rates: async (speaker, asks) =>
      asks.map((ask) => {
        const { state, grant } = topUpRate(rates.get(ask.accountId), speaker, ask, nowMs);
        rates.set(ask.accountId, state);
        return { kind: 'granted', grant };
      }),
    credits: async (speaker, asks) =>
      asks.map((ask) => {
        const { accountId } = ask;
        const done = topUpCredits(credits.get(accountId), speaker, ask, nowMs, learning);
        credits.set(accountId, done.state);
        released.push(...done.released.map((each) => ({ ...each, accountId })));
        return { kind: 'granted', grant: done.grant };
      }),
    scans: async (speaker, asks) =>
      asks.map((ask) => {
        const { state, grant } = topUpScans(scans.get(ask.accountId), speaker, ask, nowMs, learning);
        scans.set(ask.accountId, state);
        return { kind: 'granted', grant };
      }),
    close: async () => undefined,
  };
  return {
    join: async () => store,
    setClock: async (to) => void (nowMs = to),
    released,
    setLearning: (is) => void (learning = is),
    async forget() {
      rates.clear();
      credits.clear();
      scans.clear();
    },
    [Symbol.asyncDispose]: async () => undefined,
  };
}

async function sqliteCentre(): Promise<Centre> {
  const folder = temporaryFolder();
  const path = join(folder.path, LEDGER_FILE);
  const released: (Released & { accountId: number })[] = [];
  let nowMs = 0;
  // With a monotonic clock that stands still no row is dropped after the first message: what is compared stays.
  const clock: Clock = { ...systemClock, now: () => nowMs, monotonic: () => 0 };
  const ledgers = [opened(path, LEDGER_MIGRATIONS)];
  const stores: LeaseStore[] = [];
  return {
    async join() {
      const ledger = opened(path, LEDGER_MIGRATIONS);
      ledgers.push(ledger);
      const onReleased = (accountId: number, each: Released) => void released.push({ ...each, accountId });
      const store = createSqliteStore({ ledger, clock, onReleased });
      stores.push(store);
      await answers(store);
      return store;
    },
    setClock: async (to) => void (nowMs = to),
    released,
    setLearning: undefined,
    async forget() {
      for (const table of ['rates', 'scans', 'credits', 'credit_holdings'])
        ledgers[0]?.run(`DELETE FROM ${table}`);
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(stores.map((store) => store.close()));
      for (const ledger of ledgers) ledger.close();
      folder[Symbol.dispose]();
    },
  };
}

/** Accounts whose clock a test of Redis may hold. */
const ACCOUNTS = 4;
const LONG_MS = 1e12;

/** The scripts with their one look at the server's clock turned to a key beside the account's. */
export const SCRIPTS_ON_TEST_CLOCK = {
  rate: onTestClock(RATE_SCRIPT),
  credit: onTestClock(CREDIT_SCRIPT),
  scans: onTestClock(SCAN_SCRIPT),
};

function onTestClock(script: string): string {
  const parts = script.split("redis.call('TIME')");
  if (parts.length !== 2) throw new Error('a script looks at its clock once');
  return parts.join("redis.call('HMGET', string.match(KEYS[1], '{.-}') .. ':clock', 's', 'us')");
}

type Server = AsyncDisposable & Readonly<{ url: string }>;

export async function redisCentre(server: Server, othersMax: number): Promise<Centre> {
  const released: (Released & { accountId: number })[] = [];
  const stores: LeaseStore[] = [];
  // Every store meets its server at 0 and learns from it for a while; at LONG_MS that is long ago.
  let monotonicMs = 0;
  const admin = othersMax > 0 ? new Cluster([server.url]) : new Redis(server.url);
  return {
    async join() {
      monotonicMs = 0;
      const store = openedRedis({
        url: server.url,
        clock: { ...systemClock, monotonic: () => monotonicMs },
        deadlineMs: 2_000,
        scripts: SCRIPTS_ON_TEST_CLOCK,
        onReleased: (accountId, each) => void released.push({ ...each, accountId }),
      });
      stores.push(store);
      await Promise.all(WAITING.map((account) => admin.hset(`{sluice:${account}}:clock`, { s: 0, us: 0 })));
      await answers(store);
      monotonicMs = LONG_MS;
      return store;
    },
    async setClock(to) {
      const [s, us] = [Math.floor(to / 1_000), (to % 1_000) * 1_000 + 999];
      const keys = Array.from({ length: ACCOUNTS }, (_, account) => `{sluice:${account}}:clock`);
      await Promise.all(keys.map((key) => admin.hset(key, { s, us })));
    },
    released,
    setLearning: (is) => void (monotonicMs = is ? 0 : LONG_MS),
    async forget() {
      const nodes = admin instanceof Cluster ? admin.nodes('master') : [admin];
      await Promise.all(nodes.map((node) => node.flushall()));
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(stores.map((store) => store.close()));
      admin.disconnect();
      await server[Symbol.asyncDispose]();
    },
  };
}

/** A store of one process over a Redis, told nothing that a test does not say. */
export function openedRedis(options: Partial<RedisStoreOptions> & { url: string }): LeaseStore {
  const result = openRedisStore({
    clock: systemClock,
    random: () => 0.5,
    onWarning: () => undefined,
    onLoss: () => undefined,
    onReleased: () => undefined,
    ...options,
  });
  if (result.kind === 'unusable') throw new Error(result.sentence);
  return result.store;
}

/** Accounts of nobody, on every node of a cluster. */
const WAITING = Array.from({ length: 16 }, (_, at) => 1_000_000 + at);

/** Resolves when the store answers, from every node of a cluster. */
export async function answers(store: LeaseStore): Promise<void> {
  const asks = WAITING.map((accountId) => rateAsk({ accountId }));
  const untilMs = performance.now() + 10_000;
  for (let seq = 1; ; seq++) {
    const all = await store.rates({ node: nodeOf('waiting'), fence: 0, seq }, asks);
    if (all.every(({ kind }) => kind === 'granted')) return;
    if (performance.now() > untilMs) throw new Error('the store does not answer');
    await Bun.sleep(2);
  }
}

/** A brand for tests: they need only names that differ. */
export const nodeOf = (name: string) => name as NodeId;

export const speaker = (node: string, seq: number, fence = 1): Speaker => ({
  node: nodeOf(node),
  fence,
  seq,
});

export function rateAsk(part: Partial<Parameters<LeaseStore['rates']>[1][number]> = {}) {
  const plan = { accountId: 1, revision: 1, rps: 100, burst: 100 };
  return { ...plan, spent: 0, wanted: 0, needed: 0, weight: 1, recovering: false, ...part };
}

export function creditAsk(part: Partial<Parameters<LeaseStore['credits']>[1][number]> = {}) {
  const account = { accountId: 1, revision: 1, total: 1_000 };
  return { ...account, charged: 0, refunded: 0, held: 0, wanted: 0, needed: 0, ...part };
}

export function scanAsk(part: Partial<Parameters<LeaseStore['scans']>[1][number]> = {}) {
  return { accountId: 1, revision: 1, scans: 4, kept: 0, wanted: 0, ...part };
}

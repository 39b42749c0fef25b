import { Database } from 'bun:sqlite';
import { afterAll, beforeAll, beforeEach } from 'bun:test';
import { Redis } from 'ioredis';
import { createChanges } from '../../../deploys/accounts/changes.ts';
import type { Ownership } from '../../../deploys/accounts/ownership.ts';
import { runPublisher } from '../../../deploys/accounts/publication.ts';
import { type Claiming, openRedisHead, type Put } from '../../../deploys/accounts/redis-head.ts';
import { DEPLOYS_MIGRATIONS } from '../../../deploys/schema.ts';
import { type Clock, systemClock } from '../../../shared/clock.ts';
import { ACCOUNTS_MIGRATIONS } from '../../../shared/keys/schema.ts';
import type { Store } from '../../../shared/store/open.ts';
import { opened, testConfig } from '../../started/gateway.ts';
import { waited } from '../../started/host.ts';
import { type StartedRedis, startRedis } from '../../started/redis.ts';

/** A Redis for the tests of a file, with nothing in it when one begins, and a connection to look into it. */
export function redisOfFile() {
  let server: StartedRedis | undefined;
  let admin: Redis | undefined;
  beforeAll(async () => {
    server = await startRedis();
    admin = new Redis(server.port);
  });
  beforeEach(() => admin?.flushall());
  afterAll(async () => {
    admin?.disconnect();
    await server?.[Symbol.asyncDispose]();
  });
  function begun<T>(of: T | undefined): T {
    if (of === undefined) throw new Error('no test has begun');
    return of;
  }
  return { url: () => begun(server).url, admin: () => begun(admin) };
}

/** A database with one account and no key. */
export function newStore(): Store {
  const store = opened(':memory:', { ...ACCOUNTS_MIGRATIONS, ...DEPLOYS_MIGRATIONS });
  store.run("INSERT INTO accounts (id, name, plan, created_at_ms) VALUES (1, 'payer', 'pro', 0)");
  return store;
}
export function storeFrom(bytes: Uint8Array): Store {
  return Database.deserialize(bytes, { strict: true }) as Store; // it was one
}
export const copyOf = (store: Store) => storeFrom(store.serialize());

export const ADD_KEY =
  "INSERT INTO keys (id, account_id, name, hash, prefix, last4, created_at_ms) VALUES (?, 1, '', ?, '', '', 0)";

/** How much faster time goes for a publisher than for its Redis. */
const HASTE = 20;
/** A clock that hurries, and a wall clock that may be wrong. */
export const hurrying = (aheadMs = 0): Clock => ({
  now: () => Date.now() + aheadMs,
  monotonic: () => performance.now() * HASTE,
  sleep: (ms, signal) => systemClock.sleep(ms / HASTE, signal),
});

/** A connection of one start of deploys to the publication in a Redis. */
export function headAt(url: string, origin: string, holder: string = crypto.randomUUID()) {
  const options = { clock: systemClock, random: () => 0.5, onWarning: () => undefined };
  const head = openRedisHead({ url, origin, holder, ...options });
  if (head === undefined) throw new Error('the address is none');
  return head;
}

type Options = Readonly<{
  onPut?(words: Put): unknown;
  onClaim?(words: Claiming): unknown;
  clock?: Clock;
}>;

/** Publishes a database until it is stopped, as deploys does. `onPut` and `onClaim` see each before it is made. */
export function publish(store: Store, url: string, { onPut, onClaim, clock = hurrying() }: Options = {}) {
  const changes = createChanges(store);
  const head = headAt(url, changes.origin);
  const over = new AbortController();
  let state: Ownership | undefined;
  const takenOver: number[] = [];
  let [epochs, claims] = [0, 0];
  async function put(words: Put) {
    await onPut?.(words);
    return head.put(words);
  }
  const claim: typeof head.claim = async (words) => {
    await onClaim?.(words);
    const found = await head.claim(words);
    claims++;
    return found;
  };
  const publishing = runPublisher(
    {
      changes,
      head: { ...head, put, claim },
      clock,
      makeEpoch: () => `epoch ${++epochs} ${crypto.randomUUID()}`,
      readTerms: async () => testConfig({}),
      noteState: (now) => void (state = now),
      noteTakenOver: ({ ended }) => void takenOver.push(ended),
    },
    over.signal,
  );
  async function stop(): Promise<void> {
    over.abort();
    await publishing;
  }
  const isWhole = () => state?.kind === 'sole' && state.isWhole;
  /** Waits until Redis has answered so often more. */
  async function looked(times: number): Promise<void> {
    const before = claims;
    await waited(() => claims >= before + times);
  }
  return { stop, looked, epochs: () => epochs, state: () => state?.kind, isWhole, takenOver };
}

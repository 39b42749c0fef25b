import { Gauge, type Registry } from 'prom-client';
import type { Clock } from '../../shared/clock.ts';
import type { Log } from '../../shared/log.ts';
import type { PublishedTerms } from '../../shared/publication.ts';
import type { Store } from '../../shared/store/open.ts';
import { createChanges } from './changes.ts';
import { runPublisher } from './publish.ts';
import { type KeyUse, LEASE_MS, openRedisHead, type RedisHead } from './redis-head.ts';
import { complaintOf, healthOfPublication, type PublicationState } from './publication-state.ts';

/** The publication of accounts, keys, plans and prices to the gateways of other hosts. */
export type Publication = NonNullable<ReturnType<typeof createPublication>>;

export type PublicationDeps = Readonly<{
  /** The accounts database. */
  store: Store;
  url: string;
  clock: Clock;
  log: Log;
  registry: Registry;
  /** Gives n uniform bytes. */
  random(bytes: number): Uint8Array;
  /** Plans and prices as the config has them now; `undefined` when it is unusable. */
  readTerms(): Promise<PublishedTerms | undefined>;
}>;

/** The claim of a deploys that was just killed is waited for without a word. */
const HELD_QUIETLY_MS = LEASE_MS + 2_000;

/** `undefined` when `url` is no address of a Redis. */
export function createPublication({ store, url, clock, log, random, registry, readTerms }: PublicationDeps) {
  const name = () => Buffer.from(random(16)).toString('hex');
  const holder = name();
  const changes = createChanges(store);
  const head = openRedisHead({
    url,
    origin: changes.origin,
    holder,
    clock,
    random: () => Buffer.from(random(4)).readUInt32BE() / 2 ** 32,
    onWarning: (warning) => log.warn({ warning }, 'redis'),
  });
  if (head === undefined) return undefined;
  const gauge = gaugeOf(registry);
  let state: PublicationState = { kind: 'away' };
  let logged: PublicationState['kind'] = 'away';
  let sinceMs = clock.monotonic();
  let claimedMs = Number.NEGATIVE_INFINITY;

  function noteState(now: PublicationState): void {
    if (now.kind !== state.kind) sinceMs = clock.monotonic();
    state = now;
    gauge.set(now.kind === 'publishing' ? 1 : 0);
    if (now.kind === 'publishing' || now.kind === 'building') claimedMs = clock.monotonic();
    if (now.kind === logged || isQuiet()) return;
    logged = now.kind;
    const complaint = complaintOf(now);
    if (complaint !== undefined) log.error(complaint);
    else if (now.kind === 'away') log.warn('Redis does not answer: changes of accounts and keys wait');
    else if (now.kind === 'building') log.info('all accounts and keys are being written to Redis');
    else log.info('accounts and keys are published');
  }

  function isQuiet(): boolean {
    return state.kind === 'held' && clock.monotonic() - sinceMs < HELD_QUIETLY_MS;
  }

  function shownState(): PublicationState {
    return isQuiet() ? { kind: 'building' } : state;
  }

  const isOwn = () => clock.monotonic() - claimedMs < LEASE_MS;
  return {
    /** Publishes until `signal` aborts. Never rejects. */
    async run(signal: AbortSignal): Promise<void> {
      const publisher = { changes, head, holder, clock, makeEpoch: name, readTerms, noteState };
      await Promise.all([
        runPublisher(publisher, signal),
        takeLastUses({ store, head, isOwn, clock }, signal),
      ]);
    },
    health: () => healthOfPublication(shownState()),
    state: shownState,
    /** Whether what gateways on other hosts count is of this database's accounts. */
    isOwn,
  };
}

/** How often last uses are taken, and how many in one transaction. */
const TAKE_MS = 2_000;
const USES_AT_ONCE = 200;

/**
 * Takes over when keys were used last on other hosts, a row at most once a minute, while `isOwn` says that the keys are
 * this database's. Never rejects.
 */
async function takeLastUses(
  { store, head, isOwn, clock }: Readonly<{ store: Store; head: RedisHead; isOwn(): boolean; clock: Clock }>,
  signal: AbortSignal,
): Promise<void> {
  const update = store.prepare<null, [number, string]>(`
    UPDATE keys SET last_used_at_ms = ?1
    WHERE id = ?2 AND (last_used_at_ms IS NULL OR last_used_at_ms / 60000 < ?1 / 60000)`);
  const write = store.transaction((uses: readonly KeyUse[]) => {
    for (const { keyId, atMs } of uses) update.run(atMs, keyId);
  });
  while (!signal.aborted) {
    await clock.sleep(TAKE_MS, signal);
    try {
      while (isOwn() && !signal.aborted) {
        const uses = await head.uses(USES_AT_ONCE);
        if (uses.length === 0) break;
        write.immediate(uses);
        await head.dropUses(uses);
      }
    } catch {
      // Redis or the database does not answer; they are taken the next time.
    }
  }
}

function gaugeOf(registry: Registry): Gauge {
  return new Gauge({
    name: 'deploys_accounts_published',
    help: 'With storage.redis: 1 while this deploys publishes accounts and keys to gateways on other hosts, else 0',
    registers: [registry],
  });
}

import type { Registry } from 'prom-client';
import type { Clock } from '../shared/clock.ts';
import type { DeploysConfig } from '../shared/config/config.ts';
import { createIdentify, type Identify } from '../shared/keys/identify.ts';
import type { Log } from '../shared/log.ts';
import type { Store } from '../shared/store/open.ts';
import { createApp } from './api/app.ts';
import { createProgramsAnswer } from './api/programs.ts';
import { createRequestLog } from './api/request-log.ts';
import { type AdmitBySession, createAdmit } from './api/webhooks/admit.ts';
import { createDeliveries, type DeliveryDeps } from './delivery/deliveries.ts';
import type { NetworkPolicy } from './delivery/policy.ts';
import { bothHealths, healthOf } from './health.ts';
import { createMetrics, type Metrics } from './metrics.ts';
import { createEnqueue, type Enqueue } from './outbox/enqueue.ts';
import { createOutbox } from './outbox/outbox.ts';
import { createBlockTimeStore } from './store/block-times.ts';
import { createReadings } from './store/readings.ts';
import { createPublication, type Publication, type PublicationDeps } from './publish/publication.ts';
import { openRedisCells } from './usage/redis-cells.ts';
import { tendUsage } from './usage/tend.ts';
import { createBlockTimes } from './watch/block-time.ts';
import { createRead } from './watch/failover.ts';
import { createFill } from './watch/fill.ts';
import { createNotes } from './watch/notes.ts';
import { createRpcBackend, type Fetch } from './watch/rpc.ts';
import type { WatchedProgram } from './watch/watched.ts';
import { createWatcher } from './watch/watcher.ts';
import { gaugeSealedElsewhere } from './webhooks/sealed-elsewhere.ts';
import type { Seal } from './webhooks/seal.ts';
import { createWebhooks } from './webhooks/webhooks.ts';

export type DeploysDeps = Readonly<{
  config: Pick<DeploysConfig, 'publicUrl' | 'rpcUrls' | 'rpcKey' | 'pollMs'>;
  programs: readonly WatchedProgram[];
  /** Holds accounts, keys and what the watcher knows. */
  store: Store;
  /** What gateways spent and used, on a connection that writes and on another that reads. */
  ledger: Store;
  ledgerReader: Store;
  clock: Clock;
  fetch: Fetch;
  log: Log;
  /** Gives n uniform bytes. */
  random(bytes: number): Uint8Array;
  /** How deliveries are sent. Absent, they are queued and wait. */
  delivery?: DeliveryDeps;
  /** Where gateways on other hosts meet. Absent, there are none. */
  redis?: Pick<PublicationDeps, 'url' | 'readTerms'>;
  /**
   * How webhooks are kept, where they may lead, and who may manage them without a key. Absent, the API has none, or
   * keys alone.
   */
  webhooks?: Readonly<{ seal: Seal; policy: NetworkPolicy; bySession?: AdmitBySession }>;
}>;

/** How long a revoked key may go on working. */
const REFRESH_MS = 250;

/** The whole app short of sockets and signals. `tend` watches the chain, the keys and usage until its signal aborts. */
export function createDeploys(deps: DeploysDeps) {
  const { config, programs, store, clock, fetch, log } = deps;
  const backends = config.rpcUrls.map((url, i) =>
    createRpcBackend({ name: `rpc_urls[${i}]`, url, key: config.rpcKey }, { fetch, clock }),
  );
  const [readings, { enqueue, outbox }] = [createReadings(store), createQueue(deps)];
  const times = createBlockTimeStore(store);
  const rememberTime = (slot: bigint, unixSeconds: number) => {
    times.save(slot, unixSeconds);
    deliveries?.wake();
  };
  const blockTimes = createBlockTimes(backends, { ...times, save: rememberTime }, clock);
  const notes = createNotes(log, programs, readings.deploySlots());
  const keys = createIdentify(store, clock);
  const watcher = createWatcher({
    read: createRead(
      backends,
      programs.map(({ address }) => address),
    ),
    save: (latest, deploys, genesisHash) => {
      const addEvents = () => enqueue.deploys(deploys, clock.now());
      if (readings.save(latest, genesisHash, addEvents) === 'same-chain') return;
      blockTimes.forget();
      notes.noteOtherChain();
    },
    fillBlockTimes: createFill({ blockTimes, awaited: outbox.awaited, clock }),
    noteRead: (latest, deploys, reasons) => {
      metrics.noteRead(latest, deploys.length);
      notes.noteRead(latest, deploys, reasons);
    },
    noteUnread: (unread) => {
      metrics.noteUnread(unread.kind);
      notes.noteUnread(unread);
    },
    noteBroken: (error) => log.error({ err: error }, 'looking up block times broke'),
    clock,
    pollMs: config.pollMs,
  });
  const metrics = createMetrics(() => {
    const { latest } = watcher.state();
    return latest === undefined ? undefined : clock.now() - latest.checkedAtMs;
  });
  const { registry } = metrics;
  const deliveries =
    deps.delivery && createDeliveries({ ...deps.delivery, store, outbox, registry, clock, log });
  const publication = deps.redis && createPublication({ ...deps, ...deps.redis, registry });
  const parts = () => [deliveries?.health(), publication?.health()];
  const app = createApp({
    webhooks: webhookRoutesOf(deps, registry, enqueue, keys.identify, () => deliveries?.wake()),
    answerPrograms: createProgramsAnswer({
      identify: keys.identify,
      enter: createRequestLog(),
      latest: () => watcher.state().latest,
      watched: programs,
      timeOf: blockTimes.timeOf,
      clock,
    }),
    health: () => parts().reduce(bothHealths, healthOf(watcher.state(), config.pollMs, clock.now())),
    noteAnswer: metrics.noteAnswer,
    noteBroken: (error) => log.error({ err: error }, 'a request broke'),
    publicUrl: config.publicUrl,
  });

  async function refreshKeys(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      keys.refresh();
      await clock.sleep(REFRESH_MS, signal);
    }
  }

  return {
    answer: (request: Request) => app.handle(request),
    answerMetrics: metrics.answer,
    async tend(signal: AbortSignal): Promise<void> {
      await Promise.all([
        watcher.run(signal),
        refreshKeys(signal),
        lookAfterUsage(deps, metrics, publication, signal),
        deliveries?.run(signal),
        publication?.run(signal),
      ]);
    },
  };
}

function createQueue({ store, programs, random }: Pick<DeploysDeps, 'store' | 'programs' | 'random'>) {
  const labels = new Map<string, string>(programs.map(({ address, label }) => [address, label]));
  const enqueue = createEnqueue(store, (program) => labels.get(program) ?? program, random);
  return { enqueue, outbox: createOutbox(store, random) };
}

function lookAfterUsage(
  deps: DeploysDeps,
  { noteMismatch }: Metrics,
  publication: Publication | undefined,
  signal: AbortSignal,
): Promise<void> {
  const { store, ledger, ledgerReader: reader, clock, log } = deps;
  const accountName = store.prepare<{ name: string }, [number]>('SELECT name FROM accounts WHERE id = ?');
  const nameOf = (accountId: number) => accountName.get(accountId)?.name;
  const source = publication && cellsOf(deps, publication);
  return tendUsage({ ledger, reader, nameOf, noteMismatch, clock, log, ...(source && { source }) }, signal);
}

/** What gateways on other hosts count, while they count for the accounts of this database. */
function cellsOf({ redis, clock, random }: DeploysDeps, { isOwn }: Publication) {
  if (redis === undefined) return undefined;
  const fraction = () => Buffer.from(random(4)).readUInt32BE() / 2 ** 32;
  // The publication warns of the server; here it would be said again.
  return openRedisCells({ url: redis.url, clock, random: fraction, isOwn, onWarning: () => undefined });
}

/** The routes of webhooks, with a rate of their own beside that of the programs, and their figures. */
function webhookRoutesOf(
  deps: DeploysDeps,
  registry: Registry,
  enqueue: Enqueue,
  identify: Identify,
  wake: () => void,
) {
  const { programs, store, clock, random } = deps;
  if (deps.webhooks === undefined) return undefined;
  const { bySession, ...kept } = deps.webhooks;
  gaugeSealedElsewhere(registry, store, kept.seal);
  const watched = new Set<string>(programs.map(({ address }) => address));
  const isWatched = (address: string) => watched.has(address);
  const webhooks = createWebhooks({ ...kept, store, clock, enqueue, wake, isWatched, random });
  return {
    admit: createAdmit({ identify, enter: createRequestLog(), clock, ...(bySession && { bySession }) }),
    webhooks,
  };
}

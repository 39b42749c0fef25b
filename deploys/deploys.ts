import type { Registry } from 'prom-client';
import type { Clock } from '../shared/clock.ts';
import type { DeploysConfig } from '../shared/config/config.ts';
import { createIdentify, type Identify } from '../shared/keys/identify.ts';
import type { Log } from '../shared/log.ts';
import type { Store } from '../shared/store/open.ts';
import { createApp } from './api/app.ts';
import { createProgramsAnswer } from './api/programs.ts';
import { createRequestLog, keptRequests } from './api/request-log.ts';
import { createAdmit } from './api/webhooks/admit.ts';
import { composeConsole, type ConsoleUsers } from './compose-console.ts';
import { createDeliveries, type DeliveryDeps } from './delivery/deliveries.ts';
import type { NetworkPolicy } from './delivery/policy.ts';
import { bothHealths, createStoresHealth, healthOf } from './health.ts';
import { createMetrics, type Metrics } from './metrics.ts';
import { createEnqueue, type Enqueue } from './outbox/enqueue.ts';
import { createOutbox } from './outbox/outbox.ts';
import { createPublication, type Publication, type PublicationDeps } from './publish/publication.ts';
import { openRedisCells } from './usage/redis-cells.ts';
import { tendUsage } from './usage/tend.ts';
import { createClientAddresses } from './users/client-address.ts';
import type { AuthService } from './users/auth-service.ts';
import { createAdmitBySession, createViewerOf } from './users/viewer.ts';
import type { Fetch } from './watch/rpc.ts';
import type { WatchedProgram } from './watch/watched.ts';
import type { WatchState } from './watch/watcher.ts';
import { createWatching } from './watching.ts';
import { gaugeSealedElsewhere } from './webhooks/sealed-elsewhere.ts';
import type { Seal } from './webhooks/seal.ts';
import { createWebhooks, type Webhooks } from './webhooks/webhooks.ts';

export type DeploysDeps = Readonly<{
  config: Pick<DeploysConfig, 'publicUrl' | 'rpcUrls' | 'rpcKey' | 'pollMs'>;
  programs: readonly WatchedProgram[];
  /** Holds accounts, keys and what the watcher knows. */
  store: Store;
  /**
   * What gateways spent and used, on a connection that writes and on another that reads. The one that writes also has
   * the requests of keys.
   */
  ledger: Store;
  ledgerReader: Store;
  clock: Clock;
  fetch: Fetch;
  log: Log;
  /** Gives n uniform bytes. */
  random(bytes: number): Uint8Array;
  /** How deliveries are sent. Absent, they are queued and wait. */
  delivery?: DeliveryDeps;
  /** How webhooks are kept, and where they may lead. Absent, the API has none. */
  webhooks?: Readonly<{ seal: Seal; policy: NetworkPolicy }>;
  /** Who may log in, and what the console tells them. Absent, there is no console. */
  consoleUsers?: ConsoleUsers | undefined;
  /** Where gateways on other hosts meet. Absent, there are none. */
  redis?: Pick<PublicationDeps, 'url' | 'readTerms'>;
}>;

/** How long a revoked key may go on working. */
const REFRESH_MS = 250;
/** Between two looks at the databases. */
const STORES_MS = 1_000;

/** The whole app short of sockets and signals. `tend` watches the chain, the keys and usage until its signal aborts. */
export function createDeploys(deps: DeploysDeps) {
  const { config, programs, store, clock, log } = deps;
  const { enqueue, outbox } = createQueue(deps);
  const keys = createIdentify(store, clock);
  const metrics = createMetrics(() => {
    const { latest } = watcher.state();
    return latest === undefined ? undefined : clock.now() - latest.checkedAtMs;
  });
  const publication = deps.redis && createPublication({ ...deps, ...deps.redis, registry: metrics.registry });
  const sending = { store, outbox, registry: metrics.registry, clock, log };
  const deliveries = deps.delivery && createDeliveries({ ...deps.delivery, ...sending });
  const wake = () => deliveries?.wake();
  const { watcher, timeOf } = createWatching({ ...deps, enqueue, outbox, metrics, wake });
  const webhooks = webhooksOf(deps, metrics.registry, enqueue, wake);
  const addresses = createClientAddresses(deps.consoleUsers?.clientAddressHeader);
  const storesHealth = createStoresHealth([store, deps.ledger]);
  const watcherHealth = () => healthOf(watcher.state(), config.pollMs, clock.now());
  const pages =
    deps.consoleUsers &&
    composeConsole(deps, deps.consoleUsers, addresses.of, {
      watcher: () => ({ health: watcherHealth(), ...seenIn(watcher.state()) }),
      deliveries: () => deliveries?.health(),
      publication: () => publication?.state(),
      webhooks,
    });
  const app = createApp({
    webhooks: webhooks && webhookRoutesOf(deps, webhooks, keys.identify),
    answerPrograms: createProgramsAnswer({
      identify: keys.identify,
      enter: enterOf('programs', deps),
      latest: () => watcher.state().latest,
      watched: programs,
      timeOf,
      clock,
    }),
    health: () =>
      [deliveries?.health(), publication?.health(), storesHealth()].reduce(bothHealths, watcherHealth()),
    noteAnswer: metrics.noteAnswer,
    noteBroken: (error) => log.error({ err: error }, 'a request broke'),
    publicUrl: config.publicUrl,
    console: pages?.console,
  });

  async function refreshKeys(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      keys.refresh();
      await clock.sleep(REFRESH_MS, signal);
    }
  }

  async function watchStores(signal: AbortSignal): Promise<void> {
    for (let told = ''; !signal.aborted;) {
      const { isWell, sentence } = storesHealth();
      if (!isWell && sentence !== told) log.error(sentence);
      told = isWell ? '' : sentence;
      await clock.sleep(STORES_MS, signal);
    }
  }

  async function answer(request: Request, address?: string): Promise<Response> {
    addresses.note(request, address);
    const response = await app.handle(request);
    if (cameByHttps(request, config.publicUrl)) response.headers.set(...STRICT_TRANSPORT);
    return response;
  }

  async function tend(signal: AbortSignal): Promise<void> {
    await Promise.all([
      watcher.run(signal),
      refreshKeys(signal),
      watchStores(signal),
      lookAfterUsage(deps, metrics, publication, signal),
      deliveries?.run(signal),
      pages?.tend(signal),
      publication?.run(signal),
    ]);
  }

  return { answer, answerMetrics: metrics.answer, tend };
}

/** RFC 6797: this host, for a year. */
const STRICT_TRANSPORT = ['strict-transport-security', 'max-age=31536000'] as const;

/** Whether the caller came by https, which ends at a proxy: the proxy says so, or the host is the one that is there by https. */
function cameByHttps({ headers, url }: Request, publicUrl: URL): boolean {
  if (publicUrl.protocol !== 'https:') return false;
  const said = headers.get('x-forwarded-proto')?.split(',').at(-1)?.trim();
  return said === undefined ? new URL(url).host === publicUrl.host : said === 'https';
}

function seenIn({ latest }: WatchState) {
  return {
    checkedAtMs: latest?.checkedAtMs,
    contextSlot: latest?.reading.contextSlot,
    programs: latest?.reading.programs.size ?? 0,
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

/** All that can be done with webhooks, for the API and the console alike. */
function webhooksOf(
  deps: DeploysDeps,
  registry: Registry,
  enqueue: Enqueue,
  wake: () => void,
): Webhooks | undefined {
  const { programs, store, clock, random } = deps;
  if (deps.webhooks === undefined) return undefined;
  gaugeSealedElsewhere(registry, store, deps.webhooks.seal);
  const watched = new Set<string>(programs.map(({ address }) => address));
  const isWatched = (address: string) => watched.has(address);
  return createWebhooks({ ...deps.webhooks, store, clock, enqueue, wake, isWatched, random });
}

/** The routes of webhooks, with a rate of their own beside that of the programs. */
function webhookRoutesOf(deps: DeploysDeps, webhooks: Webhooks, identify: Identify) {
  const { clock } = deps;
  const bySession = deps.consoleUsers && bySessionOf(deps.consoleUsers.auth, deps);
  const enter = enterOf('webhooks', deps);
  const admit = createAdmit({ identify, enter, clock, ...(bySession && { bySession }) });
  return { admit, webhooks };
}

/** The rate of each key at one of the two APIs, which a restart does not begin anew. */
function enterOf(api: string, { ledger: store, clock, log }: DeploysDeps) {
  const noteBroken = (error: unknown) => log.error({ err: error }, 'a request was not written down');
  return createRequestLog(undefined, keptRequests(api, { store, clock, noteBroken }));
}

function bySessionOf(auth: AuthService, { config, clock }: DeploysDeps) {
  const [viewerOf, enter] = [createViewerOf(auth), createRequestLog<string>()];
  return createAdmitBySession({ viewerOf, origin: config.publicUrl.origin, enter, clock });
}

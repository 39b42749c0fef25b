import type { Clock } from '../shared/clock.ts';
import type { DeploysConfig } from '../shared/config/config.ts';
import type { Plan } from '../shared/config/plans.ts';
import { createIdentify, type Identify } from '../shared/keys/identify.ts';
import { spentOf } from '../shared/ledger/schema.ts';
import type { Log } from '../shared/log.ts';
import type { Store } from '../shared/store/open.ts';
import { createAccounts } from './accounts/accounts.ts';
import { createAudit } from './accounts/audit.ts';
import { createKeys } from './accounts/keys.ts';
import type { Ownership } from './accounts/ownership.ts';
import { createPublication, type Publication, type PublicationDeps } from './accounts/publication.ts';
import { createProgramsAnswer } from './api/programs.ts';
import { createRequestLog, keptRequests } from './api/request-log.ts';
import { createAdmit } from './api/webhook-requests.ts';
import { type AddressOf, createAttempts, createClientAddresses, type Pace } from './auth/attempts.ts';
import type { AuthService } from './auth/auth-service.ts';
import { createOneTimeSecrets } from './console/one-time-secrets.ts';
import type {
  OperatorServices,
  PageServices,
  WatcherSeen,
  WebhookServices,
} from './console/page-services.ts';
import { PAGES } from './console/pages.ts';
import { createConsole } from './console/router.ts';
import { createDeliveries } from './delivery/deliveries.ts';
import type { Sending } from './delivery/send.ts';
import type { NetworkPolicy } from './delivery/policy.ts';
import { bothHealths, createStoresHealth, type Health, type StoreSize } from './health/health.ts';
import { createReadGateways, type ReadRedis } from './health/neighbours.ts';
import { createMetrics, type Metrics } from './metrics.ts';
import { createEnqueue, type Enqueue } from './outbox/enqueue.ts';
import { createAccountDeliveries, createReadQueue } from './outbox/list.ts';
import { createOutbox, type Outbox } from './outbox/outbox.ts';
import { createRecord } from './outbox/record.ts';
import { createApp, withStrictTransport } from './server.ts';
import { createLiveMinutes } from './usage/minutes.ts';
import { readUsage } from './usage/read-usage.ts';
import { openRedisCells } from './usage/redis-cells.ts';
import { createUsageReport } from './usage/report.ts';
import { maintainUsage } from './usage/maintenance.ts';
import { createReadTraffic } from './usage/traffic.ts';
import { createReadingTurns, createReadUsageView } from './usage/usage-view.ts';
import { createBlockTimes, createBlockTimeStore } from './watch/block-time.ts';
import { createRead } from './watch/read.ts';
import { createHistory, createProgramList, createReadings } from './watch/readings.ts';
import { createRpcBackend, type Fetch } from './watch/rpc.ts';
import type { WatchedProgram } from '../shared/watched.ts';
import { createNotes, createWatcher, healthOf } from './watch/watcher.ts';
import { gaugeSealedElsewhere, type Seal } from './webhooks/seal.ts';
import { createFailing, createWebhookHealth } from './webhooks/webhook-health.ts';
import { createWebhookRows } from './webhooks/webhook.ts';
import { createWebhooks, type Webhooks } from './webhooks/webhooks.ts';

export type Installation = Readonly<{
  gatewayUrls: readonly URL[];
  storeSizes(): readonly StoreSize[];
  /** Absent: no Redis is configured. */
  readRedis?: ReadRedis | undefined;
}>;

type ConsoleUsers = Readonly<{
  auth: AuthService;
  clientAddressHeader: string | undefined;
  plans: ReadonlyMap<string, Plan>;
  /** The gateway's RPC endpoint as its callers reach it. */
  rpcUrl: URL;
  installation: Installation;
}>;

export type Running = Readonly<{
  watcher(): Pick<WatcherSeen, 'health' | 'checkedAtMs' | 'contextSlot' | 'programs'>;
  deliveries(): Health;
  /** `undefined`: no Redis is configured, and there are no other hosts. */
  publication(): Ownership | undefined;
  /** Why changes are refused, as a sentence. Absent, they never are. */
  whyReadOnly?: (() => string | undefined) | undefined;
  webhooks: Webhooks;
}>;

export type DeploysInputs = Readonly<{
  config: Pick<DeploysConfig, 'publicUrl' | 'rpcUrls' | 'rpcKey' | 'pollMs'>;
  programs: readonly WatchedProgram[];
  /** Accounts, keys, webhooks and what the watcher knows. */
  store: Store;
  /** Charges and usage of gateways, and the requests of keys; on a connection that writes, and on another that reads. */
  ledger: Store;
  ledgerReader: Store;
  clock: Clock;
  fetch: Fetch;
  log: Log;
  random(bytes: number): Uint8Array;
  /** How deliveries are sent and secrets are sealed, and where webhooks may lead. */
  delivery: Sending & Readonly<{ seal: Seal; policy: NetworkPolicy }>;
  /** Absent, there is no console. */
  consoleUsers?: ConsoleUsers | undefined;
  /** Absent, there are no gateways on other hosts. */
  redis?: Pick<PublicationDeps, 'url' | 'readTerms'>;
}>;

/** How long a revoked key may go on working. */
const REFRESH_MS = 250;
/** Between two checks of the databases. */
const STORES_MS = 1_000;

/**
 * The whole app without sockets and signals. `maintain` watches the chain and usage until its signal aborts, and looks after keys
 * until the last call, which may have changed one, has left.
 */
export function composeDeploys(inputs: DeploysInputs) {
  const { config, programs, store, clock, log, random, delivery } = inputs;
  const labels = new Map<string, string>(programs.map(({ address, label }) => [address, label]));
  const enqueue = createEnqueue(store, (program) => labels.get(program) ?? program, random);
  const outbox = createOutbox(store, random);
  const keys = createIdentify(store, clock);
  const metrics = createMetrics(() => {
    const { latest } = watcher.state();
    return latest === undefined ? undefined : clock.now() - latest.checkedAtMs;
  });
  const { registry } = metrics;
  const publication = inputs.redis && createPublication({ ...inputs, ...inputs.redis, registry });
  const permit = publication?.permit;
  const deliveries = createDeliveries({ ...delivery, store, outbox, registry, clock, log, permit });
  const { wake } = deliveries;
  const whyReadOnly = () => publication?.whyReadOnly();
  // Keys that were revoked in the newer database still work in an older copy.
  const identify: Identify = (carried) =>
    publication?.state().kind === 'behind' && carried.kind !== 'none'
      ? { kind: 'check-unavailable' }
      : keys.identify(carried);
  const { watcher, timeOf } = composeWatcher(inputs, { enqueue, outbox, metrics, wake, publication });
  gaugeSealedElsewhere(registry, store, delivery.seal);
  const isWatched = (address: string) => labels.has(address);
  const webhooks = createWebhooks({ ...delivery, store, clock, enqueue, wake, isWatched, random });
  const addresses = createClientAddresses(inputs.consoleUsers?.clientAddressHeader);
  const storesHealth = createStoresHealth([store, inputs.ledger]);
  const watcherHealth = () => healthOf(watcher.state(), config.pollMs, clock.now());
  const pages =
    inputs.consoleUsers &&
    composeConsole(inputs, inputs.consoleUsers, addresses.of, {
      watcher: () => {
        const { latest } = watcher.state();
        return {
          health: watcherHealth(),
          checkedAtMs: latest?.checkedAtMs,
          contextSlot: latest?.reading.contextSlot,
          programs: latest?.reading.programs.size ?? 0,
        };
      },
      deliveries: deliveries.health,
      publication: () => publication?.state(),
      whyReadOnly,
      webhooks,
    });
  const app = createApp({
    webhooks: { ...webhookRoutesOf(inputs, webhooks, identify), whyReadOnly },
    answerPrograms: createProgramsAnswer({
      identify,
      enter: enterOf('programs', inputs),
      latest: () => watcher.state().latest,
      watched: programs,
      timeOf,
      clock,
    }),
    health: () =>
      [deliveries.health(), publication?.health(), storesHealth()].reduce(bothHealths, watcherHealth()),
    noteAnswer: metrics.noteAnswer,
    noteBroken: (error) => log.error({ err: error }, 'a request failed'),
    publicUrl: config.publicUrl,
    console: pages?.console,
  });

  async function repeat(everyMs: number, act: () => void, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      act();
      await clock.sleep(everyMs, signal);
    }
  }

  let reported = '';
  function reportStores(): void {
    const { isWell, sentence } = storesHealth();
    if (!isWell && sentence !== reported) log.error(sentence);
    reported = isWell ? '' : sentence;
  }

  async function answer(request: Request, address?: string): Promise<Response> {
    addresses.note(request, address);
    const response = await app.handle(request);
    return withStrictTransport(response, request, config.publicUrl);
  }

  async function maintain(signal: AbortSignal, lastCallLeft = signal): Promise<void> {
    await Promise.all([
      watcher.run(signal),
      repeat(REFRESH_MS, keys.refresh, lastCallLeft),
      repeat(STORES_MS, reportStores, signal),
      lookAfterUsage(inputs, metrics, publication, signal),
      deliveries.run(signal),
      pages?.maintain(signal),
      publication?.run(lastCallLeft),
    ]);
  }

  return { answer, answerMetrics: metrics.answer, maintain };
}

function lookAfterUsage(
  inputs: DeploysInputs,
  { noteMismatch }: Metrics,
  publication: Publication | undefined,
  signal: AbortSignal,
): Promise<void> {
  const { store, ledger, ledgerReader: reader, clock, log, redis, random } = inputs;
  const accountName = store.prepare<{ name: string }, [number]>('SELECT name FROM accounts WHERE id = ?');
  const nameOf = (accountId: number) => accountName.get(accountId)?.name;
  const source =
    redis &&
    publication &&
    openRedisCells({
      url: redis.url,
      clock,
      random: () => Buffer.from(random(4)).readUInt32BE() / 2 ** 32,
      isOwn: publication.isOwn,
      onWarning: () => undefined, // the publication warns of the same server
    });
  return maintainUsage({ ledger, reader, nameOf, noteMismatch, clock, log, source }, signal);
}

/** The routes of webhooks, with a rate of their own beside that of the programs. */
function webhookRoutesOf(inputs: DeploysInputs, webhooks: Webhooks, identify: Identify) {
  const { clock, consoleUsers, config } = inputs;
  const session = consoleUsers && {
    viewerOf: consoleUsers.auth.viewerOf,
    origin: config.publicUrl.origin,
    enter: createRequestLog<string>(),
  };
  return { admit: createAdmit({ identify, enter: enterOf('webhooks', inputs), clock, session }), webhooks };
}

/** The rate of each key at one of the two APIs, which a restart does not begin anew. */
function enterOf(api: string, { ledger: store, clock, log }: DeploysInputs) {
  const noteBroken = (error: unknown) => log.error({ err: error }, 'a request could not be stored');
  return createRequestLog(undefined, keptRequests(api, { store, clock, noteBroken }));
}

/** The watcher with what it reads through and writes to. `wake` is called when a block time has become known. */
function composeWatcher(
  { config, programs, store, clock, fetch, log }: DeploysInputs,
  parts: Readonly<{
    enqueue: Enqueue;
    outbox: Outbox;
    metrics: Metrics;
    wake(): void;
    publication: Publication | undefined;
  }>,
) {
  const { enqueue, outbox, metrics, wake, publication } = parts;
  const backends = config.rpcUrls.map((url, i) =>
    createRpcBackend({ name: `rpc_urls[${i}]`, url, key: config.rpcKey }, { fetch, clock }),
  );
  const addresses = programs.map(({ address }) => address);
  const record = createRecord(store, enqueue);
  const times = createBlockTimeStore(store);
  const save = (slot: bigint, unixSeconds: number) => {
    times.save(slot, unixSeconds);
    wake();
  };
  const { awaited } = outbox;
  const blockTimes = createBlockTimes({ backends, store: { ...times, save }, awaited, clock });
  const notes = createNotes(log, programs, createReadings(store).deploySlots());
  const watcher = createWatcher({
    read: createRead(backends, addresses),
    save: (latest, deploys, genesisHash) => {
      const now = publication?.events() ?? 'made';
      if (record(latest, now === 'made' ? deploys : [], genesisHash, clock.now()) === 'other-chain') {
        blockTimes.forgetWaits();
        notes.noteOtherChain();
      }
      publication?.noteReading();
      return now === 'held-back' ? now : 'saved';
    },
    fillBlockTimes: blockTimes.fill,
    noteRead: (latest, deploys, reasons) => {
      metrics.noteRead(latest, deploys.length);
      notes.noteRead(latest, deploys, reasons);
    },
    noteUnread: (unread) => {
      metrics.noteUnread(unread.kind);
      notes.noteUnread(unread);
    },
    noteBroken: (error) => log.error({ err: error }, 'looking up block times failed'),
    clock,
    pollMs: config.pollMs,
  });
  return { watcher, timeOf: times.find };
}

/** The console only reads the ledger. */
type ConsoleInputs = Omit<DeploysInputs, 'ledger' | 'delivery'>;

/** Changes of one user: more than anyone makes by hand, and far fewer than would fill the audit log. */
const CHANGES: Pace = { burst: 120, refillMs: 1_000 };

export function composeConsole(
  inputs: ConsoleInputs,
  { auth, plans, rpcUrl, installation }: ConsoleUsers,
  addressOf: AddressOf,
  running: Running,
) {
  const { store, ledgerReader: ledger, clock, random, log, config } = inputs;
  const { origin } = config.publicUrl;
  const over = new AbortController();
  const { note } = createAudit(store);
  const minutes = createLiveMinutes({
    ledger,
    clock,
    noteBroken: (error) => log.error({ err: error }, 'reading the last minutes failed'),
  });
  const usage = createUsageReport(ledger);
  const turns = createReadingTurns(clock);
  const webhookRows = createWebhookRows(store);
  const accounts = createAccounts({ store, plans, spentOf: (id) => spentOf(ledger, id), clock, note });
  const services: PageServices = {
    origin,
    auth,
    addressOf,
    noteUnavailable: (reason) => log.error({ reason }, 'the identity provider is unavailable'),
    accounts,
    keys: createKeys({ store, clock, random, note }),
    plans,
    usage,
    turns,
    readUsageView: createReadUsageView({ usage, turns, clock }),
    webhooksOf: (accountId) => webhookRows.list(accountId, clock.now()),
    readUsed: (hours, accountId) => readUsage(ledger, hours, accountId),
    minutes,
    ...webhookServices(inputs, running.webhooks),
    rpcUrl,
    oneTimeSecrets: createOneTimeSecrets(clock, random),
    operator: operatorServices(inputs, installation, running, over.signal),
  };
  const changes = createAttempts(CHANGES, random);
  const console = createConsole(
    {
      viewerOf: auth.viewerOf,
      accountOf: accounts.findById,
      clock,
      origin,
      takeChange: (userId, nowMs) => changes.take(userId, nowMs),
      whyReadOnly: running.whyReadOnly,
      noteBroken: (error) => log.error({ err: error }, 'a page of the console failed'),
    },
    services,
    PAGES,
  );
  return {
    console,
    maintain: async (signal: AbortSignal) => {
      signal.addEventListener('abort', () => over.abort(), { once: true });
      await minutes.run(signal);
    },
  };
}

/** Services of the pages of programs, webhooks and deliveries. Looking a host up for a form has the rate of a key. */
function webhookServices(
  { store, programs, clock, random }: ConsoleInputs,
  webhooks: Webhooks,
): WebhookServices {
  const lookUps = createRequestLog<string>();
  return {
    webhooks,
    ...createWebhookHealth(store),
    deliveries: createAccountDeliveries(store),
    programs: createProgramList(store, programs),
    history: createHistory(store),
    enter: (userId: string) => lookUps(userId, clock.monotonic()),
    random,
  };
}

/** Services of the operators' pages. `signal` aborts when the app stops. */
function operatorServices(
  { store, ledgerReader: ledger, clock, fetch, config }: ConsoleInputs,
  { gatewayUrls, storeSizes, readRedis }: Installation,
  { watcher, deliveries, publication }: Running,
  signal: AbortSignal,
): OperatorServices {
  const plan = store.prepare<{ plan: string | null }, [number]>('SELECT plan FROM accounts WHERE id = ?');
  const planOf = (accountId: number) => plan.get(accountId)?.plan ?? undefined;
  return {
    audit: createAudit(store),
    readGateways: createReadGateways({
      urls: gatewayUrls,
      fetch: (url, init) => fetch(url.href, init),
      clock,
    }),
    readTraffic: createReadTraffic({ ledger, clock, planOf, signal }),
    queue: createReadQueue(store),
    failing: createFailing(store),
    watcher: () => ({
      ...watcher(),
      pollMs: config.pollMs,
      rpcHosts: config.rpcUrls.map(({ host }) => host),
    }),
    deliveries,
    publication,
    storeSizes,
    readRedis,
  };
}

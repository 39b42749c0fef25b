import type { Clock } from '../shared/clock.ts';
import type { DeploysConfig } from '../shared/config/config.ts';
import type { Plan } from '../shared/config/plans.ts';
import { spentOf } from '../shared/ledger/spent.ts';
import type { Log } from '../shared/log.ts';
import type { Store } from '../shared/store/open.ts';
import { createAccounts } from './accounts/accounts.ts';
import { createKeys } from './accounts/keys.ts';
import { createRequestLog } from './api/request-log.ts';
import { createAudit } from './audit/audit.ts';
import { createOneTimeSecrets } from './console/one-time-secrets.ts';
import type { OperatorServices, WatcherSeen, WebhookServices } from './console/page-services.ts';
import { type Console, createConsole } from './console/router.ts';
import { routesOf } from './console/routes.ts';
import { createReadGateways } from './gateway-status/read-gateways.ts';
import type { Health } from './health.ts';
import { createAccountDeliveries } from './outbox/account-deliveries.ts';
import { createReadQueue } from './outbox/queue-state.ts';
import { createHistory } from './programs/history.ts';
import { createProgramList } from './programs/list.ts';
import type { PublicationState } from './publish/publication-state.ts';
import type { ReadRedis } from './store/redis-seen.ts';
import type { StoreSize } from './store/size.ts';
import { readUsage } from './usage/read-usage.ts';
import { createReadingTurns } from './usage/reading-turns.ts';
import { createUsageReport } from './usage/report.ts';
import { createReadTraffic } from './usage/traffic.ts';
import { createUsageGrid } from './usage/usage-grid.ts';
import { createReadUsageView } from './usage/usage-view.ts';
import { createLiveMinutes } from './usage/watch-minutes.ts';
import { createAttempts, type Pace } from './users/attempts.ts';
import type { AddressOf } from './users/client-address.ts';
import type { AuthService } from './users/auth-service.ts';
import { resetSecondFactor } from './users/second-factor.ts';
import { createViewerOf } from './users/viewer.ts';
import type { Fetch } from './watch/rpc.ts';
import type { WatchedProgram } from './watch/watched.ts';
import { createFailing } from './webhooks/failing.ts';
import { createWebhookRows } from './webhooks/webhook.ts';
import { createWebhookDay, createWebhookHealth } from './webhooks/webhook-health.ts';
import type { Webhooks } from './webhooks/webhooks.ts';

/** What operators are told of the installation, which only whoever starts the app knows. */
export type Installation = Readonly<{
  gatewayUrls: readonly URL[];
  storeSizes(): readonly StoreSize[];
  /** Absent: no Redis is configured. */
  readRedis?: ReadRedis | undefined;
}>;

/** Who may log in, and what the console tells them. */
export type ConsoleUsers = Readonly<{
  auth: AuthService;
  clientAddressHeader: string | undefined;
  plans: ReadonlyMap<string, Plan>;
  /** The gateway's RPC endpoint as its callers reach it. */
  rpcUrl: URL;
  installation: Installation;
}>;

/** What runs in this process, as operators see it. */
export type Running = Readonly<{
  watcher(): Pick<WatcherSeen, 'health' | 'checkedAtMs' | 'contextSlot' | 'programs'>;
  deliveries(): Health | undefined;
  /** `undefined`: no Redis is configured, and there are no other hosts. */
  publication(): PublicationState | undefined;
  /** Absent where none are kept. */
  webhooks: Webhooks | undefined;
}>;

/** Parts of the app that the console needs. */
type Parts = Readonly<{
  config: Pick<DeploysConfig, 'publicUrl' | 'rpcUrls' | 'pollMs'>;
  programs: readonly WatchedProgram[];
  store: Store;
  ledgerReader: Store;
  clock: Clock;
  fetch: Fetch;
  log: Log;
  random(bytes: number): Uint8Array;
}>;

/** The console, and what must run beside it until its signal aborts. */
type TendedConsole = Readonly<{ console: Console; tend(signal: AbortSignal): Promise<void> }>;

/** Changes of one user: more than anybody makes by hand, and far fewer than would fill the audit log. */
const CHANGES: Pace = { burst: 120, refillMs: 1_000 };

/** The console with the services of its pages. */
export function composeConsole(
  parts: Parts,
  { auth, plans, rpcUrl, installation }: ConsoleUsers,
  addressOf: AddressOf,
  running: Running,
): TendedConsole {
  const { store, ledgerReader: ledger, clock, random, log, config } = parts;
  const { origin } = config.publicUrl;
  const over = new AbortController();
  const { note } = createAudit(store);
  const minutes = createLiveMinutes({
    ledger,
    clock,
    noteBroken: (error) => log.error({ err: error }, 'looking at the last minutes broke'),
  });
  const usage = createUsageReport(ledger);
  const turns = createReadingTurns(clock);
  const webhookRows = createWebhookRows(store);
  const accounts = createAccounts({ store, plans, spentOf: (id) => spentOf(ledger, id), clock, note });
  const routes = routesOf({
    origin,
    auth,
    addressOf,
    noteUnavailable: (reason) => log.error({ reason }, 'the identity provider could not be used'),
    accounts,
    keys: createKeys({ store, clock, random, note }),
    plans,
    usage,
    turns,
    readUsageView: createReadUsageView({ usage, grid: createUsageGrid(ledger), turns, clock }),
    webhooksOf: (accountId) => webhookRows.list(accountId, clock.now()),
    readUsed: (hours, accountId) => readUsage(ledger, hours, accountId),
    minutes,
    webhookPages: running.webhooks && webhookServices(parts, running.webhooks),
    rpcUrl,
    oneTimeSecrets: createOneTimeSecrets(clock, random),
    clock,
    random,
    operator: operatorServices(parts, installation, running, over.signal),
  });
  const changes = createAttempts(CHANGES, random);
  const console = createConsole(
    {
      viewerOf: createViewerOf(auth),
      accountOf: accounts.findById,
      clock,
      origin,
      takeChange: (userId, nowMs) => changes.take([userId], nowMs),
      noteBroken: (error) => log.error({ err: error }, 'a page of the console broke'),
    },
    routes,
  );
  return {
    console,
    tend: async (signal) => {
      signal.addEventListener('abort', () => over.abort(), { once: true });
      await minutes.run(signal);
    },
  };
}

/** Services of the pages of programs, webhooks and deliveries. Looking a host up for a form has the rate of a key. */
function webhookServices({ store, programs, clock, random }: Parts, webhooks: Webhooks): WebhookServices {
  const lookUps = createRequestLog<string>();
  return {
    webhooks,
    healthOf: createWebhookHealth(store),
    dayOf: createWebhookDay(store),
    deliveries: createAccountDeliveries(store),
    programs: createProgramList(store, programs),
    history: createHistory(store),
    enter: (userId: string) => lookUps(userId, clock.monotonic()),
    random,
  };
}

/** Services of the operators' pages. `signal` aborts when the app stops. */
function operatorServices(
  { store, ledgerReader: ledger, clock, fetch, config }: Parts,
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
    resetSecondFactor: (user, by) => resetSecondFactor(store, user, by, clock.now()),
  };
}

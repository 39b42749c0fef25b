import { createAudit } from './audit/audit.ts';
import type { OperatorDeps, WatcherSeen } from './console/page-services.ts';
import type { DeploysDeps } from './deploys.ts';
import { createReadGateways } from './gateway-status/read-gateways.ts';
import { createReadQueue } from './outbox/queue-state.ts';
import type { PublicationState } from './publish/publication-state.ts';
import type { ReadRedis } from './store/redis-seen.ts';
import type { StoreSize } from './store/size.ts';
import { createReadTraffic } from './usage/traffic.ts';
import { resetSecondFactor } from './users/reset-second-factor.ts';
import { createFailing } from './webhooks/failing.ts';
import type { Webhooks } from './webhooks/webhooks.ts';
import type { Health } from './health.ts';

/** What operators are told of the installation, which only whoever starts the app knows. */
export type Installation = Readonly<{
  gatewayUrls: readonly URL[];
  storeSizes(): readonly StoreSize[];
  /** Absent: no Redis is configured. */
  readRedis?: ReadRedis | undefined;
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

/** The services of the operators' pages. `signal` aborts when the app stops. */
export function operatorOf(
  { store, ledgerReader: ledger, clock, fetch, config }: DeploysDeps,
  { gatewayUrls, storeSizes, readRedis }: Installation,
  { watcher, deliveries, publication }: Omit<Running, 'webhooks'>,
  signal: AbortSignal,
): OperatorDeps {
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

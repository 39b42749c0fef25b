import type { Audit } from '../../../audit/audit.ts';
import type { Health } from '../../../health.ts';
import type { ReadGateways } from '../../../gateway-status/read-gateways.ts';
import type { ReadQueue } from '../../../outbox/queue-state.ts';
import type { PublicationState } from '../../../publish/publication-state.ts';
import type { ReadRedis } from '../../../store/redis-seen.ts';
import type { StoreSize } from '../../../store/size.ts';
import type { ReadTraffic } from '../../../usage/traffic.ts';
import type { UserActor } from '../../../users/note.ts';
import type { User } from '../../../users/users.ts';
import type { createFailing } from '../../../webhooks/failing.ts';

/** What the watcher knows, for the operator. Instants are Unix milliseconds. */
export type WatcherSeen = Readonly<{
  health: Health;
  checkedAtMs: number | undefined;
  contextSlot: bigint | undefined;
  programs: number;
  pollMs: number;
  /** What it reads through, in order of preference; hosts alone, because the rest of a provider's address may be a key. */
  rpcHosts: readonly string[];
}>;

/** What the pages of operators read beside what all pages do. */
export type OperatorDeps = Readonly<{
  audit: Pick<Audit, 'list' | 'actions'>;
  readGateways: ReadGateways;
  readTraffic: ReadTraffic;
  queue: ReadQueue;
  failing: ReturnType<typeof createFailing>;
  watcher(): WatcherSeen;
  /** Whether deliveries are sent; `undefined`: this process sends none. */
  deliveries(): Health | undefined;
  /** How accounts and keys come to gateways on other hosts; `undefined`: there are none. */
  publication(): PublicationState | undefined;
  storeSizes(): readonly StoreSize[];
  /** `undefined`: no Redis is configured. */
  readRedis: ReadRedis | undefined;
  resetSecondFactor(user: User, by: UserActor): void;
}>;

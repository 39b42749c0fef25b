import type { Plan } from '../../shared/config/plans.ts';
import type { Accounts } from '../accounts/accounts.ts';
import type { Audit } from '../accounts/audit.ts';
import type { Keys } from '../accounts/keys.ts';
import type { Ownership } from '../accounts/ownership.ts';
import type { Enter } from '../api/request-log.ts';
import type { AddressOf } from '../auth/attempts.ts';
import type { AuthService } from '../auth/auth-service.ts';
import type { Health, StoreSize } from '../health/health.ts';
import type { ReadGateways, ReadRedis } from '../health/neighbours.ts';
import type { AccountDeliveries, ReadQueue } from '../outbox/list.ts';
import type { Hours } from '../usage/calendar.ts';
import type { LiveMinutes } from '../usage/minutes.ts';
import type { Used } from '../usage/read-usage.ts';
import type { UsageReport } from '../usage/report.ts';
import type { ReadTraffic } from '../usage/traffic.ts';
import type { ReadingTurns, ReadUsageView } from '../usage/usage-view.ts';
import type { History, ProgramShown, ProgramWish } from '../watch/readings.ts';
import type { createFailing, createWebhookHealth } from '../webhooks/webhook-health.ts';
import type { Webhook } from '../webhooks/webhook.ts';
import type { Webhooks } from '../webhooks/webhooks.ts';
import type { OneTimeSecrets } from './one-time-secrets.ts';

/** Services of the pages of the login and the settings. */
export type LoginServices = Readonly<{
  /** The console's own, such as `https://console.example.com`. */
  origin: string;
  auth: AuthService;
  addressOf: AddressOf;
  /** Hears why an identity provider could not be used. */
  noteUnavailable(reason: string): void;
}>;

/** Services of the pages of programs, webhooks and deliveries. */
export type WebhookServices = Readonly<{
  webhooks: Webhooks;
  deliveries: AccountDeliveries;
  programs(wish: ProgramWish, nowMs: number): readonly ProgramShown[];
  history: Pick<History, 'of'>;
  /** The rate of looking hosts up: a user has that of a key. */
  enter(userId: string): ReturnType<Enter<string>>;
  random(bytes: number): Uint8Array;
}> &
  ReturnType<typeof createWebhookHealth>;

/** The watcher as the operator sees it. Instants are Unix milliseconds. */
export type WatcherSeen = Readonly<{
  health: Health;
  checkedAtMs: number | undefined;
  contextSlot: bigint | undefined;
  programs: number;
  pollMs: number;
  /** Its sources, in order of preference; hosts alone, because the rest of a provider's address may be a key. */
  rpcHosts: readonly string[];
}>;

/** Services of the pages of operators, beside those of all pages. */
export type OperatorServices = Readonly<{
  audit: Pick<Audit, 'list' | 'actions'>;
  readGateways: ReadGateways;
  readTraffic: ReadTraffic;
  queue: ReadQueue;
  failing: ReturnType<typeof createFailing>;
  watcher(): WatcherSeen;
  /** Whether deliveries are sent. */
  deliveries(): Health;
  /** How accounts and keys come to gateways on other hosts; `undefined`: there are none. */
  publication(): Ownership | undefined;
  storeSizes(): readonly StoreSize[];
  /** `undefined`: no Redis is configured. */
  readRedis: ReadRedis | undefined;
}>;

/** Services of all pages, shared with the command line and the API. */
export type PageServices = LoginServices &
  WebhookServices &
  Readonly<{
    accounts: Accounts;
    keys: Keys;
    plans: ReadonlyMap<string, Plan>;
    usage: UsageReport;
    /** Every row of an account's usage, a page at a time. */
    readUsed(hours: Hours, accountId: number): Generator<readonly Used[]>;
    /** Long reads of it take turns. */
    turns: ReadingTurns;
    readUsageView: ReadUsageView;
    /** The webhooks of an account, the oldest first. */
    webhooksOf(accountId: number): readonly Webhook[];
    minutes: Pick<LiveMinutes, 'recentMinutes' | 'recentTotals' | 'sinceMs'>;
    /** The gateway's RPC endpoint as its callers reach it. */
    rpcUrl: URL;
    oneTimeSecrets: OneTimeSecrets;
    operator: OperatorServices;
  }>;

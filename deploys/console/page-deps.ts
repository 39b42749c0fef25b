import type { Clock } from '../../shared/clock.ts';
import type { Plan } from '../../shared/config/plans.ts';
import type { Accounts } from '../accounts/accounts.ts';
import type { Keys } from '../accounts/keys.ts';
import type { Hours, Used } from '../usage/read-usage.ts';
import type { ReadingTurns } from '../usage/reading-turns.ts';
import type { UsageReport } from '../usage/report.ts';
import type { ReadUsageView } from '../usage/usage-view.ts';
import type { LiveMinutes } from '../usage/watch-minutes.ts';
import type { PersonPagesDeps } from '../users/person-pages.ts';
import type { OperatorDeps } from './pages/operator/operator-deps.ts';
import type { WebhookPageDeps } from './pages/webhook-page-deps.ts';
import type { Webhook } from '../webhooks/webhook.ts';
import type { Reveals } from './reveals.ts';

/** What the console's pages read and change: the services that the command line and the API stand on too. */
export type PageDeps = PersonPagesDeps &
  Readonly<{
    /** The console's own, such as `https://console.example.com`. */
    origin: string;
    accounts: Accounts;
    keys: Keys;
    plans: ReadonlyMap<string, Plan>;
    usage: UsageReport;
    /** Every row of an account's usage, a page at a time. */
    readUsed(hours: Hours, accountId: number): Generator<readonly Used[]>;
    /** Whoever reads much of it takes turns. */
    turns: ReadingTurns;
    /** What the page of usage shows. */
    readUsageView: ReadUsageView;
    /** The webhooks of an account, the oldest first. */
    webhooksOf(accountId: number): readonly Webhook[];
    minutes: Pick<LiveMinutes, 'recentMinutes' | 'recentTotals' | 'sinceMs'>;
    /** The gateway's RPC endpoint as its callers reach it. */
    rpcUrl: URL;
    reveals: Reveals;
    operator: OperatorDeps;
    clock: Clock;
    /** Gives n uniform bytes. */
    random(bytes: number): Uint8Array;
    /** Absent where no webhooks are kept. */
    webhookPages?: WebhookPageDeps | undefined;
  }>;

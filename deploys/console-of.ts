import { createRequestLog } from './api/request-log.ts';
import { createAccounts } from './accounts/accounts.ts';
import { createKeys } from './accounts/keys.ts';
import { createAudit } from './audit/audit.ts';
import { createAccountOf } from './console/account-of.ts';
import { type Console, createConsole } from './console/router.ts';
import type { PageDeps } from './console/page-services.ts';
import { createReveals } from './console/one-time-secrets.ts';
import { routesOf } from './console/routes.ts';
import type { DeploysDeps } from './deploys.ts';
import { operatorOf, type Running } from './operator-of.ts';
import { createAccountDeliveries } from './outbox/account-deliveries.ts';
import { createHistory } from './programs/history.ts';
import { createProgramList } from './programs/list.ts';
import { readUsage } from './usage/read-usage.ts';
import { createReadingTurns } from './usage/reading-turns.ts';
import { createUsageReport } from './usage/report.ts';
import { createUsageGrid } from './usage/usage-grid.ts';
import { createReadUsageView } from './usage/usage-view.ts';
import { createLiveMinutes } from './usage/watch-minutes.ts';
import { createAttempts, type Pace } from './users/attempts.ts';
import type { AddressOf } from './users/client-address.ts';
import { createViewerOf } from './users/viewer.ts';
import { createWebhookRows } from './webhooks/webhook.ts';
import { createWebhookDay, createWebhookHealth } from './webhooks/webhook-health.ts';
import type { Webhooks } from './webhooks/webhooks.ts';
import { spentOf } from '../shared/ledger/spent.ts';

/** The console, and what must run beside it until its signal aborts. */
export type TendedConsole = Readonly<{ console: Console; tend(signal: AbortSignal): Promise<void> }>;

/** Changes of one user: more than anybody makes by hand, and far fewer than would fill the audit log. */
const CHANGES: Pace = { burst: 120, refillMs: 1_000 };

/** The console with the services that its pages stand on, where there is somebody who may log in. */
export function consoleOf(
  deps: DeploysDeps,
  addressOf: AddressOf,
  running: Running,
): TendedConsole | undefined {
  const { people: login, store, ledgerReader: ledger, clock, random, log, config } = deps;
  if (login === undefined) return undefined;
  const { origin } = config.publicUrl;
  const { people, plans, rpcUrl, installation } = login;
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
  const pageDeps: PageDeps = {
    origin,
    people,
    addressOf,
    noteUnavailable: (reason) => log.error({ reason }, 'the identity provider could not be used'),
    accounts: createAccounts({ store, plans, spentOf: (id) => spentOf(ledger, id), clock, note }),
    keys: createKeys({ store, clock, random, note }),
    plans,
    usage,
    turns,
    readUsageView: createReadUsageView({ usage, grid: createUsageGrid(ledger), turns, clock }),
    webhooksOf: (accountId) => webhookRows.list(accountId, clock.now()),
    readUsed: (hours, accountId) => readUsage(ledger, hours, accountId),
    minutes,
    webhookPages: webhookPagesOf(deps, running.webhooks),
    rpcUrl,
    reveals: createReveals(clock, random),
    clock,
    random,
    operator: operatorOf(deps, installation, running, over.signal),
  };
  const changes = createAttempts(CHANGES, random);
  const console = createConsole(
    {
      viewerOf: createViewerOf(people),
      accountOf: createAccountOf(store),
      clock,
      origin,
      takeChange: (userId, nowMs) => changes.take([userId], nowMs),
      noteBroken: (error) => log.error({ err: error }, 'a page of the console broke'),
    },
    routesOf(pageDeps),
  );
  return {
    console,
    tend: async (signal) => {
      signal.addEventListener('abort', () => over.abort(), { once: true });
      await minutes.run(signal);
    },
  };
}

/** What the pages of programs, webhooks and deliveries stand on. Looking a host up for a form has the rate of a key. */
function webhookPagesOf({ store, programs, clock }: DeploysDeps, webhooks: Webhooks | undefined) {
  if (webhooks === undefined) return undefined;
  const lookUps = createRequestLog<string>();
  return {
    webhooks,
    healthOf: createWebhookHealth(store),
    dayOf: createWebhookDay(store),
    deliveries: createAccountDeliveries(store),
    programs: createProgramList(store, programs),
    history: createHistory(store),
    enter: (userId: string) => lookUps(userId, clock.monotonic()),
  };
}

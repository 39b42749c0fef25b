import { PLANS_BY_DEFAULT } from '../../../shared/config/plans.ts';
import { ACCOUNTS_MIGRATIONS } from '../../../shared/keys/schema.ts';
import { spentOf, USAGE_MIGRATIONS } from '../../../shared/ledger/schema.ts';
import { createAccounts } from '../../../deploys/accounts/accounts.ts';
import { createKeys } from '../../../deploys/accounts/keys.ts';
import { createAudit } from '../../../deploys/accounts/audit.ts';
import type { Viewer } from '../../../deploys/auth/auth-service.ts';
import { DEPLOYS_MIGRATIONS } from '../../../deploys/schema.ts';
import { createTakeDrained, type HourCell } from '../../../deploys/usage/redis-cells.ts';
import { createUsageReport } from '../../../deploys/usage/report.ts';
import { createReadingTurns, createReadUsageView } from '../../../deploys/usage/usage-view.ts';
import { accountRoutes } from '../../../deploys/console/routes.ts';
import { createOneTimeSecrets } from '../../../deploys/console/one-time-secrets.ts';
import { createMinutes } from '../../../deploys/usage/minutes.ts';
import { readUsage } from '../../../deploys/usage/read-usage.ts';
import { createWebhookRows } from '../../../deploys/webhooks/webhook.ts';
import { CUSTOMER, ORIGIN, startConsole } from './started.tsx';
import { createVirtualClock } from '../../fakes/chain-clock.ts';
import { opened } from '../../started/gateway.ts';

export const HOUR_MS = 3_600_000;
const BY = { kind: 'command-line' } as const;

/** The gateway's endpoint as the pages show it. */
export const RPC_URL = new URL('https://rpc.example.com');

/** The accounts of these tests, by their ids: a trial, one without an RPC plan, a paid one. */
const ACCOUNTS = [
  [7, 'acme', 'trial'],
  [8, 'other', null],
  [9, 'big', 'pro'],
] as const;

/** An account's pages over real services on databases in memory and a clock that stands still. */
export function startAccountWorld(viewer: Viewer = CUSTOMER) {
  const clock = createVirtualClock();
  const store = opened(':memory:', { ...ACCOUNTS_MIGRATIONS, ...DEPLOYS_MIGRATIONS });
  const ledger = opened(':memory:', USAGE_MIGRATIONS);
  const createdAtMs = clock.now() - 40 * 24 * HOUR_MS;
  for (const [id, name, plan] of ACCOUNTS)
    store.run('INSERT INTO accounts (id, name, plan, created_at_ms) VALUES (?, ?, ?, ?)', [
      id,
      name,
      plan,
      createdAtMs,
    ]);
  const audit = createAudit(store);
  const random = (bytes: number) => crypto.getRandomValues(new Uint8Array(bytes));
  const plans = new Map(Object.entries(PLANS_BY_DEFAULT));
  const accounts = createAccounts({
    store,
    plans,
    spentOf: (id) => spentOf(ledger, id),
    clock,
    note: audit.note,
  });
  const keys = createKeys({ store, clock, random, note: audit.note });
  const usage = createUsageReport(ledger);
  // Pauses are of a clock that stands still here.
  const turns = createReadingTurns({ sleep: () => Promise.resolve() });
  const webhooks = createWebhookRows(store);
  const minutes = createMinutes();
  const take = createTakeDrained(ledger);
  const since = { ms: clock.now() - 3 * HOUR_MS };

  const routes = accountRoutes({
    origin: ORIGIN,
    accounts,
    keys,
    plans,
    usage,
    turns,
    readUsageView: createReadUsageView({ usage, turns, clock }),
    readUsed: (hours, accountId) => readUsage(ledger, hours, accountId),
    webhooksOf: (accountId) => webhooks.list(accountId, clock.now()),
    minutes: { recentMinutes: minutes.of, recentTotals: minutes.totals, sinceMs: () => since.ms },
    rpcUrl: RPC_URL,
    oneTimeSecrets: createOneTimeSecrets(clock, random),
    clock: { ...clock, sleep: () => Promise.resolve() },
    random,
  });

  /** A key that must be made; gives it with its text. */
  function addKey(account: string, name: string) {
    const result = keys.create(account, name, BY);
    if (result.kind !== 'created') throw new Error(result.kind);
    return result.made;
  }

  /** Counts usage in the ledger: `hoursAgo` before now, of account 7 unless told otherwise. */
  function count(cells: readonly (Partial<HourCell> & { hoursAgo?: number })[]) {
    const hour = Math.floor(clock.now() / HOUR_MS);
    take({
      cells: cells.map(({ hoursAgo = 0, ...given }) => ({ ...NOTHING, hour: hour - hoursAgo, ...given })),
      spent: [],
    });
  }

  /** Charges an account's allowance. */
  function spend(accountId: number, charged: number) {
    take({ cells: [], spent: [{ accountId, node: 'n1', charged, refunded: 0 }] });
  }

  /** A webhook of an account that fails since then. */
  function addFailingWebhook(accountId: number, url: string, failingSinceMs: number) {
    const id = crypto.randomUUID();
    store.run(
      `INSERT INTO webhooks (id, account_id, url, host, secret_ct, secret_kid, created_at_ms, updated_at_ms,
         failing_since_ms) VALUES (?, ?, ?, ?, x'00', 1, 0, 0, ?)`,
      [id, accountId, url, new URL(url).hostname, failingSinceMs],
    );
    return id;
  }

  const started = startConsole(viewer, routes, { clock, accountOf: accounts.findById });
  return {
    ...started,
    routes,
    store,
    ledger,
    clock,
    accounts,
    keys,
    minutes,
    turns,
    since,
    addKey,
    count,
    spend,
    addFailingWebhook,
    entries: (accountId: number) => audit.list({ accountId, limit: 100 }),
    /** The text of a page that must be there. */
    async page(path: string) {
      const response = await started.ask(path);
      if (response.status !== 200) throw new Error(`${path}: ${response.status}`);
      return response.text();
    },
    [Symbol.dispose]() {
      store.close();
      ledger.close();
    },
  };
}

export type AccountWorld = ReturnType<typeof startAccountWorld>;

const NOTHING: HourCell = {
  hour: 0,
  accountId: 7,
  keyId: 'k1',
  method: 'getSlot',
  node: 'n1',
  calls: 0,
  credits: 0,
  refunded: 0,
  errors: 0,
  bytesOut: 0,
  refused: 0,
  within10Ms: 0,
  within50Ms: 0,
  within250Ms: 0,
  within1S: 0,
  slower: 0,
  charged: 0,
  returned: 0,
};

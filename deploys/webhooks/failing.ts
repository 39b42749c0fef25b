import type { Store } from '../../shared/store/open.ts';

/** A webhook whose automatic attempts fail, for the operator. Of its URL only the host is told: the rest may be a secret. */
export type FailingWebhook = Readonly<{
  id: string;
  accountId: number;
  host: string;
  failingSinceMs: number;
  consecutiveFailures: number;
  lastSuccessAtMs: number | null;
  isPaused: boolean;
}>;

/** Where one stands in the list. */
export type FailingPlace = Pick<FailingWebhook, 'failingSinceMs' | 'id'>;

const LIMIT_MAX = 200;

type Row = Omit<FailingWebhook, 'isPaused'> & Readonly<{ isPaused: number }>;

/** Lists the webhooks of all accounts that fail, the longest first, behind `after`. */
export function createFailing(
  store: Store,
): (limit: number, after?: FailingPlace) => readonly FailingWebhook[] {
  const page = store.prepare<Row, [number, string, number]>(`
    SELECT id, account_id AS accountId, host, failing_since_ms AS failingSinceMs,
      consecutive_failures AS consecutiveFailures, last_success_at_ms AS lastSuccessAtMs,
      paused_at_ms IS NOT NULL AS isPaused
    FROM webhooks WHERE failing_since_ms IS NOT NULL AND deleted_at_ms IS NULL AND (failing_since_ms, id) > (?, ?)
    ORDER BY failing_since_ms, id LIMIT ?`);

  return function failing(limit, after = { failingSinceMs: -1, id: '' }) {
    const rows = page.all(after.failingSinceMs, after.id, Math.max(1, Math.min(limit, LIMIT_MAX)));
    return rows.map((row) => ({ ...row, isPaused: row.isPaused === 1 }));
  };
}

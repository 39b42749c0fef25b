import type { Clock } from '../../shared/clock.ts';
import type { Store } from '../../shared/store/open.ts';
import type { Audit, By, Detail } from '../accounts/audit.ts';

/** A webhook as its account sees it; times are Unix ms. `programs` null: all. Failures are counted of automatic attempts alone. */
export type Webhook = Readonly<{
  id: string;
  accountId: number;
  url: string;
  description: string;
  programs: readonly string[] | null;
  createdAtMs: number;
  updatedAtMs: number;
  pausedAtMs: number | null;
  failingSinceMs: number | null;
  consecutiveFailures: number;
  lastSuccessAtMs: number | null;
  nextSecretAtMs: number | null;
}>;

/** There is none, or it is another account's; callers cannot tell which. */
export type NoWebhook = Readonly<{ kind: 'no-webhook' }>;
export const NO_WEBHOOK: NoWebhook = { kind: 'no-webhook' };

type WebhookRow = Omit<Webhook, 'programs'> & Readonly<{ programsJson: string | null }>;

const SELECT = `
  SELECT id, account_id AS accountId, url, description, programs_json AS programsJson, created_at_ms AS createdAtMs,
    updated_at_ms AS updatedAtMs, paused_at_ms AS pausedAtMs, failing_since_ms AS failingSinceMs,
    consecutive_failures AS consecutiveFailures, last_success_at_ms AS lastSuccessAtMs,
    next_secret_at_ms AS nextSecretAtMs
  FROM webhooks WHERE deleted_at_ms IS NULL AND account_id = ?`;

/** Webhooks of an account: no statement here finds another's. */
export function createWebhookRows(store: Store) {
  const one = store.prepare<WebhookRow, [number, string]>(`${SELECT} AND id = ?`);
  const all = store.prepare<WebhookRow, [number]>(`${SELECT} ORDER BY created_at_ms, id`);
  const count = store.prepare<{ n: number }, [number]>(`
    SELECT count(*) AS n FROM webhooks WHERE deleted_at_ms IS NULL AND account_id = ?`);
  const gone = store.prepare<{ n: number }, [number]>(`
    SELECT count(*) AS n FROM webhooks WHERE deleted_at_ms IS NOT NULL AND account_id = ?`);
  return {
    find: (accountId: number, id: string, nowMs: number): Webhook | undefined => {
      const row = one.get(accountId, id);
      return row === null ? undefined : webhookFrom(row, nowMs);
    },
    list: (accountId: number, nowMs: number): Webhook[] =>
      all.all(accountId).map((row) => webhookFrom(row, nowMs)),
    count: (accountId: number): number => count.get(accountId)?.n ?? 0,
    /** Deleted ones whose deliveries are still kept. */
    countDeleted: (accountId: number): number => gone.get(accountId)?.n ?? 0,
  };
}

type WebhookRows = ReturnType<typeof createWebhookRows>;

function webhookFrom({ programsJson, ...row }: WebhookRow, nowMs: number): Webhook {
  const { nextSecretAtMs } = row;
  return {
    ...row,
    programs: programsJson === null ? null : JSON.parse(programsJson),
    // One that is due has taken over.
    nextSecretAtMs: nextSecretAtMs === null || nextSecretAtMs <= nowMs ? null : nextSecretAtMs,
  };
}

export type WebhookDeps = Readonly<{
  store: Store;
  rows: WebhookRows;
  clock: Clock;
  audit: Pick<Audit, 'note'>;
}>;

type Changing = Readonly<{
  webhook: Webhook;
  nowMs: number;
  note(action: `webhook.${string}`, detail?: Detail): void;
  again(): Webhook;
}>;

/** A change of one webhook of an account, in one IMMEDIATE transaction; `NO_WEBHOOK` if there is none. */
export function changing<Args extends unknown[], Outcome>(
  { store, rows, clock, audit }: WebhookDeps,
  act: (changing: Changing, ...args: Args) => Outcome,
) {
  const change = store.transaction(
    ({ accountId, actor }: By, id: string, ...args: Args): Outcome | NoWebhook => {
      const nowMs = clock.now();
      const webhook = rows.find(accountId, id, nowMs);
      if (webhook === undefined) return NO_WEBHOOK;
      const note: Changing['note'] = (action, detail = {}) =>
        audit.note({ atMs: nowMs, actor, action, accountId, subject: id, detail });
      return act({ webhook, nowMs, note, again: () => rows.find(accountId, id, nowMs) ?? webhook }, ...args);
    },
  );
  return (by: By, id: string, ...args: Args): Outcome | NoWebhook => change.immediate(by, id, ...args);
}

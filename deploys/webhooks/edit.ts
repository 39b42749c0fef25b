import type { By } from '../audit/actor.ts';
import type { Check, Checked, CheckSettings, Settings } from './settings.ts';
import type { WebhookDeps } from './webhook-deps.ts';
import { NO_WEBHOOK, type NoWebhook, type Webhook } from './webhook.ts';

export type Edited =
  Readonly<{ kind: 'edited'; webhook: Webhook }> | NoWebhook | Exclude<Check, { kind: 'checked' }>;

type Deps = WebhookDeps & Readonly<{ check: CheckSettings }>;

/** Changes what was given and leaves the rest. Attempts of open deliveries go to the new URL from then on. */
export function createEdit({ store, rows, clock, audit, check }: Deps) {
  const change = store.prepare<
    unknown,
    [string | null, string | null, string | null, number, string | null, number, string]
  >(`
    UPDATE webhooks SET url = coalesce(?1, url), host = coalesce(?2, host), description = coalesce(?3, description),
      programs_json = iif(?4, ?5, programs_json), updated_at_ms = ?6 WHERE id = ?7`);

  const update = store.transaction(({ accountId, actor }: By, id: string, checked: Checked): Edited => {
    const nowMs = clock.now();
    if (rows.find(accountId, id, nowMs) === undefined) return NO_WEBHOOK;
    const { url, description, programs } = checked;
    const programsJson = programs ? JSON.stringify(programs) : null;
    change.run(
      url?.href ?? null,
      url?.hostname ?? null,
      description ?? null,
      Number(programs !== undefined),
      programsJson,
      nowMs,
      id,
    );
    const changed = Object.keys(checked);
    const detail = { changed, ...(url && { host: url.hostname }) };
    if (changed.length > 0)
      audit.note({ atMs: nowMs, actor, action: 'webhook.edit', accountId, subject: id, detail });
    const webhook = rows.find(accountId, id, nowMs);
    return webhook === undefined ? NO_WEBHOOK : { kind: 'edited', webhook };
  });

  return async function edit(
    by: By,
    id: string,
    given: Partial<Settings>,
    signal: AbortSignal,
  ): Promise<Edited> {
    // First, so that nobody has a host looked up for a webhook that is not theirs.
    if (rows.find(by.accountId, id, clock.now()) === undefined) return NO_WEBHOOK;
    const result = await check(given, signal);
    return result.kind === 'checked' ? update.immediate(by, id, result.checked) : result;
  };
}

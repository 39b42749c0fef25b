import type { Secret } from '../../shared/secret.ts';
import type { Store } from '../../shared/store/open.ts';
import type { By } from '../accounts/audit.ts';
import type { StoppedState } from '../outbox/delivery-state.ts';
import { makeWebhookSecret, type Seal } from './seal.ts';
import type { Check, Checked, CheckSettings, Settings } from './settings.ts';
import { changing, NO_WEBHOOK, type NoWebhook, type Webhook, type WebhookDeps } from './webhook.ts';

type Edited =
  Readonly<{ kind: 'edited'; webhook: Webhook }> | NoWebhook | Exclude<Check, { kind: 'checked' }>;

/** Changes the given settings only. Attempts of open deliveries go to the new URL from then on. */
export function createEdit(deps: WebhookDeps, check: CheckSettings) {
  const { store, rows, clock } = deps;
  const change = store.prepare(`
    UPDATE webhooks SET url = coalesce(?1, url), host = coalesce(?2, host), description = coalesce(?3, description),
      programs_json = iif(?4, ?5, programs_json), updated_at_ms = ?6 WHERE id = ?7`);

  const update = changing(deps, ({ webhook: { id }, nowMs, note, again }, checked: Checked): Edited => {
    const { url, description, programs } = checked;
    const programsJson = programs ? JSON.stringify(programs) : null;
    const isForPrograms = Number(programs !== undefined);
    const [href, host] = [url?.href ?? null, url?.hostname ?? null];
    change.run(href, host, description ?? null, isForPrograms, programsJson, nowMs, id);
    const changed = Object.keys(checked);
    if (changed.length > 0) note('webhook.edit', { changed, ...(url && { host: url.hostname }) });
    return { kind: 'edited', webhook: again() };
  });

  return async (by: By, id: string, given: Partial<Settings>, signal: AbortSignal): Promise<Edited> => {
    // Before the check, which looks up a host.
    if (rows.find(by.accountId, id, clock.now()) === undefined) return NO_WEBHOOK;
    const result = await check(given, signal);
    return result.kind === 'checked' ? update(by, id, result.checked) : result;
  };
}

type Toggled = Readonly<{ kind: 'paused' | 'resumed'; webhook: Webhook }> | NoWebhook;

/** Pausing and resuming; both are idempotent. */
export function createPause(deps: WebhookDeps) {
  const { store } = deps;
  const cancelPending = createCancelPending(store);
  const update = store.prepare('UPDATE webhooks SET paused_at_ms = ?, updated_at_ms = ? WHERE id = ?');

  const toggle = changing(deps, ({ webhook, nowMs, note, again }, isPause: boolean): Toggled => {
    if ((webhook.pausedAtMs !== null) !== isPause) {
      update.run(isPause ? nowMs : null, nowMs, webhook.id);
      if (isPause) cancelPending(webhook.id, 'skipped', nowMs);
      note(isPause ? 'webhook.pause' : 'webhook.resume');
    }
    return { kind: isPause ? 'paused' : 'resumed', webhook: again() };
  });

  return {
    /** Open deliveries become `skipped`, as do all new ones until it is resumed; an attempt in progress ends. */
    pause: (by: By, id: string): Toggled => toggle(by, id, true),
    /** Skipped deliveries stay so, and can be resent one by one. */
    resume: (by: By, id: string): Toggled => toggle(by, id, false),
  };
}

type Removed = Readonly<{ kind: 'removed' }> | NoWebhook;

export function createRemove(deps: WebhookDeps): (by: By, id: string) => Removed {
  const { store } = deps;
  const cancelPending = createCancelPending(store);
  // Without deliveries no row is kept, or creating and deleting webhooks would fill the table.
  const drop = store.prepare(`
    DELETE FROM webhooks WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM deliveries WHERE webhook_id = ?1)`);
  const bury = store.prepare(`
    UPDATE webhooks SET deleted_at_ms = ?1, updated_at_ms = ?1, secret_ct = x'', next_secret_ct = NULL,
      next_secret_kid = NULL, next_secret_at_ms = NULL WHERE id = ?2`);

  return changing(deps, ({ webhook: { id }, nowMs, note }): Removed => {
    cancelPending(id, 'cancelled', nowMs);
    note('webhook.delete');
    if (drop.run(id).changes === 0) bury.run(nowMs, id);
    return { kind: 'removed' };
  });
}

/** Ends open deliveries of a deleted (`cancelled`) or paused (`skipped`) webhook, in the caller's transaction; not attempts under way. */
export function createCancelPending(store: Store) {
  const close = store.prepare(`
    UPDATE deliveries SET state = ?1, last_error = ?2, next_attempt_at_ms = NULL, finished_at_ms = ?3
    WHERE webhook_id = ?4 AND finished_at_ms IS NULL AND state != 'attempting'`);
  const forget = store.prepare(`
    UPDATE deliveries SET resend_at_ms = NULL WHERE webhook_id = ? AND resend_at_ms IS NOT NULL`);
  return function cancelPending(webhookId: string, to: StoppedState, nowMs: number) {
    close.run(to, to === 'cancelled' ? 'deleted' : 'paused', nowMs, webhookId);
    forget.run(webhookId);
  };
}

/** When a new secret takes over, in milliseconds from the rotation. */
export const TAKEOVERS = { now: 0, '1h': 3_600_000, '24h': 86_400_000 } as const;
export type Takeover = keyof typeof TAKEOVERS;

export type Rotated =
  /** The only time that the secret can be read. */
  | Readonly<{ kind: 'rotated'; webhook: Webhook; secret: Secret }>
  /** A rotation is pending; it must be completed or cancelled first. */
  | Readonly<{ kind: 'rotation-pending' }>
  /** The webhook is no longer as the caller saw it. */
  | Readonly<{ kind: 'changed-meanwhile' }>
  | NoWebhook;

type Settled = Readonly<{ kind: 'settled'; webhook: Webhook } | { kind: 'no-rotation' }> | NoWebhook;

/** Staged rotation: until it takes over, the new secret signs in a header of its own beside the current one. */
export function createRotate(deps: WebhookDeps, seal: Seal, random: (bytes: number) => Uint8Array) {
  const { store } = deps;
  const NO_NEXT = 'next_secret_ct = NULL, next_secret_kid = NULL, next_secret_at_ms = NULL';
  const takeOver = store.prepare(`
    UPDATE webhooks SET secret_ct = next_secret_ct, secret_kid = next_secret_kid, ${NO_NEXT}
    WHERE id = ? AND next_secret_at_ms <= ?`);
  const stage = store.prepare(`
    UPDATE webhooks SET next_secret_ct = ?, next_secret_kid = ?, next_secret_at_ms = ?, updated_at_ms = ? WHERE id = ?`);
  const forget = store.prepare(`UPDATE webhooks SET ${NO_NEXT}, updated_at_ms = ? WHERE id = ?`);

  const rotate = changing(
    deps,
    ({ webhook, nowMs, note, again }, takeover: Takeover, seenAtMs?: number): Rotated => {
      const { id, accountId } = webhook;
      takeOver.run(id, nowMs);
      if (seenAtMs !== undefined && seenAtMs !== webhook.updatedAtMs) return { kind: 'changed-meanwhile' };
      if (webhook.nextSecretAtMs !== null) return { kind: 'rotation-pending' };
      const secret = makeWebhookSecret(random);
      const { ciphertext, keyId } = seal.seal(secret, { accountId, webhookId: id });
      stage.run(ciphertext, keyId, nowMs + TAKEOVERS[takeover], nowMs, id);
      takeOver.run(id, nowMs);
      note('webhook.rotate', { takeover });
      return { kind: 'rotated', webhook: again(), secret };
    },
  );

  const settle = changing(deps, ({ webhook, nowMs, note, again }, to: 'switch' | 'cancel'): Settled => {
    const { id, nextSecretAtMs } = webhook;
    takeOver.run(id, nowMs);
    if (nextSecretAtMs === null) return { kind: 'no-rotation' };
    if (to === 'switch') takeOver.run(id, nextSecretAtMs);
    forget.run(nowMs, id);
    note(to === 'switch' ? 'webhook.switch-secret' : 'webhook.cancel-rotation');
    return { kind: 'settled', webhook: again() };
  });

  return {
    /** With `seenAtMs`, only if the webhook was last changed then: a form sent twice must not replace the secret twice. */
    rotate,
    switchNow: (by: By, id: string): Settled => settle(by, id, 'switch'),
    cancelRotation: (by: By, id: string): Settled => settle(by, id, 'cancel'),
  };
}

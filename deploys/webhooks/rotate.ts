import type { Secret } from '../../shared/secret.ts';
import type { By } from '../accounts/audit.ts';
import { makeWebhookSecret, type Seal } from './seal.ts';
import { NO_WEBHOOK, type NoWebhook, type Webhook, type WebhookDeps } from './webhook.ts';

/** When a new secret takes over, in milliseconds from now. */
export const TAKEOVERS = { now: 0, '1h': 3_600_000, '24h': 86_400_000 } as const;
export type Takeover = keyof typeof TAKEOVERS;

export type Rotated =
  /** The only time that the secret can be read. */
  | Readonly<{ kind: 'rotated'; webhook: Webhook; secret: Secret }>
  /** A new one waits already; it must take over or be cancelled first. */
  | Readonly<{ kind: 'rotation-pending' }>
  /** It is no longer as whoever asks saw it. */
  | Readonly<{ kind: 'changed-meanwhile' }>
  | NoWebhook;

export type Settled = Readonly<{ kind: 'settled'; webhook: Webhook } | { kind: 'no-rotation' }> | NoWebhook;

type Deps = WebhookDeps & Readonly<{ seal: Seal; random: (bytes: number) => Uint8Array }>;

/** Staged rotation: a new secret waits beside the current one, and signs in a header of its own until it takes over. */
export function createRotate({ store, rows, clock, audit, seal, random }: Deps) {
  const NO_NEXT = 'next_secret_ct = NULL, next_secret_kid = NULL, next_secret_at_ms = NULL';
  const takeOver = store.prepare(`
    UPDATE webhooks SET secret_ct = next_secret_ct, secret_kid = next_secret_kid, ${NO_NEXT}
    WHERE id = ? AND next_secret_at_ms <= ?`);
  const stage = store.prepare(`
    UPDATE webhooks SET next_secret_ct = ?, next_secret_kid = ?, next_secret_at_ms = ?, updated_at_ms = ? WHERE id = ?`);
  const forget = store.prepare(`UPDATE webhooks SET ${NO_NEXT}, updated_at_ms = ? WHERE id = ?`);

  /** The webhook after a secret that is due has taken over, so that what is staged is what waits. */
  function findSettled(accountId: number, id: string, nowMs: number): Webhook | undefined {
    const webhook = rows.find(accountId, id, nowMs);
    if (webhook !== undefined) takeOver.run(id, nowMs);
    return webhook;
  }

  const rotate = store.transaction((by: By, id: string, takeover: Takeover, seenAtMs?: number): Rotated => {
    const [{ accountId, actor }, nowMs] = [by, clock.now()];
    const before = findSettled(accountId, id, nowMs);
    if (before === undefined) return NO_WEBHOOK;
    if (seenAtMs !== undefined && seenAtMs !== before.updatedAtMs) return { kind: 'changed-meanwhile' };
    if (before.nextSecretAtMs !== null) return { kind: 'rotation-pending' };
    const secret = makeWebhookSecret(random);
    const { ciphertext, keyId } = seal.seal(secret, { accountId, webhookId: id });
    stage.run(ciphertext, keyId, nowMs + TAKEOVERS[takeover], nowMs, id);
    takeOver.run(id, nowMs);
    const detail = { takeover };
    audit.note({ atMs: nowMs, actor, action: 'webhook.rotate', accountId, subject: id, detail });
    return { kind: 'rotated', webhook: rows.find(accountId, id, nowMs) ?? before, secret };
  });

  const settle = store.transaction(
    ({ accountId, actor }: By, id: string, to: 'switch' | 'cancel'): Settled => {
      const nowMs = clock.now();
      const before = findSettled(accountId, id, nowMs);
      if (before === undefined) return NO_WEBHOOK;
      if (before.nextSecretAtMs === null) return { kind: 'no-rotation' };
      if (to === 'switch') takeOver.run(id, before.nextSecretAtMs);
      forget.run(nowMs, id);
      const action = to === 'switch' ? 'webhook.switch-secret' : 'webhook.cancel-rotation';
      audit.note({ atMs: nowMs, actor, action, accountId, subject: id });
      return { kind: 'settled', webhook: rows.find(accountId, id, nowMs) ?? before };
    },
  );

  return {
    /**
     * With `seenAtMs`, only while the webhook was last changed then: a form that is sent twice must not make a second
     * secret, which would put the first out of force.
     */
    rotate: (by: By, id: string, takeover: Takeover, seenAtMs?: number): Rotated =>
      rotate.immediate(by, id, takeover, seenAtMs),
    /** The waiting secret takes over at once. */
    switchNow: (by: By, id: string): Settled => settle.immediate(by, id, 'switch'),
    /** The waiting secret is forgotten. */
    cancelRotation: (by: By, id: string): Settled => settle.immediate(by, id, 'cancel'),
  };
}

import type { Secret } from '../../shared/secret.ts';
import type { By } from '../accounts/audit.ts';
import { makeWebhookSecret, type Seal } from './seal.ts';
import { changing, type NoWebhook, type Webhook, type WebhookDeps } from './webhook.ts';

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

/** Staged rotation: a new secret waits beside the current one, and signs in a header of its own until it takes over. */
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
      // So that what is staged is what waits.
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
    /**
     * With `seenAtMs`, only while the webhook was last changed then: a form that is sent twice must not make a second
     * secret, which would put the first out of force.
     */
    rotate: (by: By, id: string, takeover: Takeover, seenAtMs?: number): Rotated =>
      rotate(by, id, takeover, seenAtMs),
    /** The waiting secret takes over at once. */
    switchNow: (by: By, id: string): Settled => settle(by, id, 'switch'),
    /** The waiting secret is forgotten. */
    cancelRotation: (by: By, id: string): Settled => settle(by, id, 'cancel'),
  };
}

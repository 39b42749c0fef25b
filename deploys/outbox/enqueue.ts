import type { Address } from '@solana/kit';
import type { Store } from '../../shared/store/open.ts';
import { pingBody } from '../delivery/event.ts';
import type { Deploy } from '../watch/change.ts';
import { uuidFrom } from './uuid.ts';

export type Pinged =
  | { readonly kind: 'queued'; readonly deliveryId: string }
  /** The webhook is paused: the delivery is recorded and not sent. */
  | { readonly kind: 'skipped'; readonly deliveryId: string }
  | { readonly kind: 'no-webhook' };

export type Enqueue = Readonly<{
  /**
   * Writes an event of each deploy that a webhook wants, and a delivery for every such webhook. To be called inside the transaction
   * that stores the reading, and only there: otherwise a crash could lose or double an event.
   */
  deploys(deploys: readonly Deploy[], nowMs: number): void;
  ping(webhookId: string, nowMs: number): Pinged;
}>;

type WebhookRow = { id: string; is_paused: number };
type NewDelivery = Readonly<{
  eventId: number | null;
  kind: 'program.upgraded' | 'ping';
  dedupeKey: string;
  body: (deliveryId: string) => Uint8Array | null;
  nowMs: number;
}>;

/** Makes deliveries in `store`. Those of an event have no body and are not sent until its block time is known. */
export function createEnqueue(
  store: Store,
  labelOf: (program: Address) => string,
  random: (bytes: number) => Uint8Array,
): Enqueue {
  const chain = store.prepare<{ genesis_hash: string }, []>('SELECT genesis_hash FROM chain');
  const addEvent = store.prepare<{ id: number }, [string, string, string, bigint, bigint, number]>(`
    INSERT INTO events (dedupe_key, program_id, label, previous_slot, deploy_slot, created_at_ms)
    VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING id`);
  const wanting = store.prepare<WebhookRow, [string]>(`
    SELECT id, paused_at_ms IS NOT NULL AS is_paused FROM webhooks
    WHERE deleted_at_ms IS NULL
      AND (programs_json IS NULL OR EXISTS (SELECT 1 FROM json_each(programs_json) WHERE value = ?))`);
  const one = store.prepare<WebhookRow, [string]>(
    'SELECT id, paused_at_ms IS NOT NULL AS is_paused FROM webhooks WHERE id = ? AND deleted_at_ms IS NULL',
  );
  const add = store.prepare(`
    INSERT INTO deliveries
      (id, webhook_id, event_id, event_kind, dedupe_key, body, state, last_error, next_attempt_at_ms, finished_at_ms,
       created_at_ms, account_id)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, (SELECT account_id FROM webhooks WHERE id = ?2)) ON CONFLICT (webhook_id, dedupe_key) DO NOTHING`);

  function deliver(webhook: WebhookRow, delivery: NewDelivery): string {
    const id = uuidFrom(random);
    const { eventId, kind, dedupeKey, nowMs } = delivery;
    const place =
      webhook.is_paused === 1
        ? (['skipped', 'paused', null, nowMs] as const)
        : (['queued', null, nowMs, null] as const);
    add.run(id, webhook.id, eventId, kind, dedupeKey, delivery.body(id), ...place, nowMs);
    return id;
  }

  function deploys(found: readonly Deploy[], nowMs: number) {
    // A chain begun anew may deploy the same program in the same slot.
    const genesisHash = chain.get()?.genesis_hash ?? 'unknown';
    for (const { program, previousSlot, deploySlot } of found) {
      const webhooks = wanting.all(program);
      if (webhooks.length === 0) continue;
      const dedupeKey = `up:${genesisHash.slice(0, 8)}:${program}:${deploySlot}`;
      const event = addEvent.get(dedupeKey, program, labelOf(program), previousSlot, deploySlot, nowMs);
      if (!event) continue;
      const delivery = {
        eventId: event.id,
        kind: 'program.upgraded',
        dedupeKey,
        body: () => null,
        nowMs,
      } as const;
      for (const webhook of webhooks) deliver(webhook, delivery);
    }
  }

  const ping = store.transaction((webhookId: string, nowMs: number): Pinged => {
    const webhook = one.get(webhookId);
    if (!webhook) return { kind: 'no-webhook' };
    const deliveryId = deliver(webhook, {
      eventId: null,
      kind: 'ping',
      dedupeKey: `ping:${uuidFrom(random)}`,
      body: (id) => pingBody(id, nowMs),
      nowMs,
    });
    return { kind: webhook.is_paused === 1 ? 'skipped' : 'queued', deliveryId };
  });

  return { deploys, ping: (webhookId, nowMs) => ping.immediate(webhookId, nowMs) };
}

import { createHash } from 'node:crypto';
import type { Address, Slot } from '@solana/kit';
import type { Store } from '../../shared/store/open.ts';
import type { Deploy } from '../watch/change.ts';

/** A deploy. Slots are safe integers; `deployedAt` is a block time, in Unix seconds. */
type UpgradeEvent = Readonly<{
  programId: string;
  label: string;
  previousSlot: number;
  deploySlot: number;
  deployedAt: number;
  detectedAtMs: number;
}>;

/** Kinds of events, as bodies, filters and pages name them (docs/spec.md 4.1). */
export const EVENT_KINDS = ['program.upgraded', 'ping'] as const;
export type EventKind = (typeof EVENT_KINDS)[number];

const PING_MESSAGE = 'This is a test delivery. No program was deployed.';

/** The body of a `program.upgraded` delivery (docs/spec.md 4.1): the bytes of every attempt. */
export function upgradeBody(deliveryId: string, event: UpgradeEvent): Uint8Array {
  return bodyOf(deliveryId, 'program.upgraded', event.detectedAtMs, {
    program_id: event.programId,
    label: event.label,
    previous_slot: event.previousSlot,
    deploy_slot: event.deploySlot,
    deployed_at: secondsIso(event.deployedAt),
    detected_at: new Date(event.detectedAtMs).toISOString(),
  });
}

/** A block time has no milliseconds, so none are shown. */
export function secondsIso(unixSeconds: number): string {
  return new Date(unixSeconds * 1_000).toISOString().replace('.000Z', 'Z');
}

export function pingBody(deliveryId: string, createdAtMs: number): Uint8Array {
  return bodyOf(deliveryId, 'ping', createdAtMs, { message: PING_MESSAGE });
}

function bodyOf(id: string, event: EventKind, createdAtMs: number, data: object): Uint8Array {
  return Buffer.from(JSON.stringify({ id, event, created_at: new Date(createdAtMs).toISOString(), data }));
}

/** Makes deliveries: `skipped` ones of a paused webhook, and ones without a body, not sent yet, of an event without block time. */
export function createEnqueue(
  store: Store,
  labelOf: (program: Address) => string,
  random: (bytes: number) => Uint8Array,
) {
  const chain = store.prepare<{ genesis_hash: string }, []>('SELECT genesis_hash FROM chain');
  const addEvent = store.prepare<{ id: number }, [string, string, string, bigint, bigint, number]>(`
    INSERT INTO events (dedupe_key, program_id, label, previous_slot, deploy_slot, created_at_ms)
    VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING id`);
  const wanting = store.prepare<{ id: string }, [string]>(`
    SELECT id FROM webhooks WHERE deleted_at_ms IS NULL
      AND (programs_json IS NULL OR EXISTS (SELECT 1 FROM json_each(programs_json) WHERE value = ?))`);
  const add = store.prepare(`
    INSERT INTO deliveries
      (id, webhook_id, account_id, event_id, event_kind, dedupe_key, body, created_at_ms,
       state, last_error, next_attempt_at_ms, finished_at_ms)
    SELECT ?1, id, account_id, ?3, ?4, ?5, ?6, ?7, iif(paused_at_ms IS NULL, 'queued', 'skipped'),
      iif(paused_at_ms IS NULL, NULL, 'paused'), iif(paused_at_ms IS NULL, ?7, NULL), iif(paused_at_ms IS NULL, NULL, ?7)
    FROM webhooks WHERE id = ?2 ON CONFLICT DO NOTHING`);

  function deploys(found: readonly Deploy[], nowMs: number) {
    // After a reset of the chain the same program may be deployed in the same slot.
    const genesisHash = chain.get()?.genesis_hash ?? 'unknown';
    for (const { program, previousSlot, deploySlot } of found) {
      const webhooks = wanting.all(program);
      if (webhooks.length === 0) continue;
      const dedupeKey = `up:${genesisHash.slice(0, 8)}:${program}:${deploySlot}`;
      const event = addEvent.get(dedupeKey, program, labelOf(program), previousSlot, deploySlot, nowMs);
      if (!event) continue;
      for (const { id } of webhooks)
        add.run(deployIdOf(id, dedupeKey), id, event.id, 'program.upgraded', dedupeKey, null, nowMs);
    }
  }

  return {
    /** Writes events and their deliveries. To be called in the transaction of `record.ts`. */
    deploys,
    /** Adds a test delivery of an existing webhook; returns its id. To be called in a transaction. */
    ping(webhookId: string, nowMs: number): string {
      const id = uuidFrom(random);
      add.run(id, webhookId, null, 'ping', `ping:${id}`, pingBody(id, nowMs), nowMs);
      return id;
    },
  };
}

export type Enqueue = ReturnType<typeof createEnqueue>;

/** The id of a deploy's delivery, the same in each copy of the database that finds it: a receiver knows it if two send it. */
function deployIdOf(webhookId: string, dedupeKey: string): string {
  const digest = createHash('sha256').update(`${dedupeKey} for ${webhookId}`).digest();
  return uuidFrom((bytes) => digest.subarray(0, bytes));
}

/** A random UUID (RFC 9562, version 4) in its usual spelling. `random` gives n uniform bytes. */
export function uuidFrom(random: (bytes: number) => Uint8Array): string {
  const bytes = Buffer.from(random(16));
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40; // the version
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80; // the variant
  const hex = bytes.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

/** Bodies in one transaction: some milliseconds that block everything else. */
const BODIES_MAX = 500;

type EventRow = UpgradeEvent & Readonly<{ id: number }>;

/** Events wait in `store` for their block time (docs/spec.md 4.1), so a restart loses none. */
export function createRelease(store: Store) {
  const known = store.prepare<EventRow, []>(`
    SELECT e.id, e.program_id AS programId, e.label, e.previous_slot AS previousSlot, e.deploy_slot AS deploySlot,
      e.created_at_ms AS detectedAtMs, b.unix_seconds AS deployedAt
    FROM events e JOIN block_times b ON b.slot = e.deploy_slot
    WHERE e.released_at_ms IS NULL LIMIT 1`);
  const bodiless = store.prepare<{ id: string }, [number, number]>(`
    SELECT id FROM deliveries WHERE event_id = ? AND body IS NULL LIMIT ?`);
  const give = store.prepare(`
    UPDATE deliveries SET body = ?1, next_attempt_at_ms = iif(state = 'queued', ?2, NULL) WHERE id = ?3`);
  const close = store.prepare('UPDATE events SET released_at_ms = ? WHERE id = ?');
  const awaited = store.prepare<{ slot: number; sinceMs: number }, []>(`
    SELECT deploy_slot AS slot, min(created_at_ms) AS sinceMs FROM events WHERE released_at_ms IS NULL
    GROUP BY deploy_slot ORDER BY deploy_slot DESC`);

  const releaseSome = store.transaction((event: EventRow, nowMs: number) => {
    const rows = bodiless.all(event.id, BODIES_MAX);
    for (const { id } of rows) give.run(upgradeBody(id, event), nowMs, id);
    if (rows.length < BODIES_MAX) close.run(nowMs, event.id);
  });

  return {
    /** Writes the bodies of deliveries whose event's block time is known, at most 500 at a time, which makes them due. */
    release: (nowMs: number): 'all' | 'more' => {
      const event = known.get();
      if (!event) return 'all';
      releaseSome.immediate(event, nowMs);
      return 'more';
    },
    /** The slots whose block times events wait for, newest first, and since when. */
    awaited: (): readonly Readonly<{ slot: Slot; sinceMs: number }>[] =>
      awaited.all().map(({ slot, sinceMs }) => ({ slot: BigInt(slot), sinceMs })),
  };
}

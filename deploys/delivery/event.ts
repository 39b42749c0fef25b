/** A deploy as an event tells it. Slots are safe integers; instants are Unix milliseconds, a block time Unix seconds. */
export type UpgradeEvent = Readonly<{
  programId: string;
  label: string;
  previousSlot: number;
  deploySlot: number;
  deployedAt: number;
  detectedAtMs: number;
}>;

export type EventKind = 'program.upgraded' | 'ping';

const PING_MESSAGE = 'This is a test delivery. No program was deployed.';

/** The body of a `program.upgraded` delivery (spec 2.3, 2.4): the bytes of every attempt. */
export function upgradeBody(deliveryId: string, event: UpgradeEvent): Uint8Array {
  return bodyOf(deliveryId, 'program.upgraded', event.detectedAtMs, {
    program_id: event.programId,
    label: event.label,
    previous_slot: event.previousSlot,
    deploy_slot: event.deploySlot,
    // A block time has no milliseconds, so none are shown.
    deployed_at: new Date(event.deployedAt * 1_000).toISOString().replace('.000Z', 'Z'),
    detected_at: new Date(event.detectedAtMs).toISOString(),
  });
}

/** The body of a `ping` delivery (spec 2.3, 2.5). */
export function pingBody(deliveryId: string, createdAtMs: number): Uint8Array {
  return bodyOf(deliveryId, 'ping', createdAtMs, { message: PING_MESSAGE });
}

function bodyOf(id: string, event: EventKind, createdAtMs: number, data: object): Uint8Array {
  return Buffer.from(JSON.stringify({ id, event, created_at: new Date(createdAtMs).toISOString(), data }));
}

import type { DeliveryState } from '../../../outbox/after-attempt.ts';
import type { DeliveryWish, Place } from '../../../outbox/account-deliveries.ts';
import { STATE_WORDS } from './outcome.tsx';

/** Deliveries on one page. */
export const PAGE_ROWS = 50;

const DAY_MS = 86_400_000;
/** The spans of time that a list can be narrowed to. */
export const SPANS = [
  { value: '24h', label: 'Last 24 hours', ms: DAY_MS },
  { value: '7d', label: 'Last 7 days', ms: 7 * DAY_MS },
  { value: '30d', label: 'Last 30 days', ms: 30 * DAY_MS },
] as const;

/** Every state of a delivery. */
export const STATES = Object.keys(STATE_WORDS) as readonly DeliveryState[]; // Object.keys forgets the keys' type
/** Every kind of event. */
export const EVENTS = ['program.upgraded', 'ping'] as const;

/** What a list's address asks for. What cannot be read is left out, as if it had not been said. */
export function wishFrom(query: URLSearchParams, nowMs: number): DeliveryWish {
  const state = STATES.find((known) => known === query.get('state'));
  const eventKind = EVENTS.find((known) => known === query.get('event'));
  const span = SPANS.find(({ value }) => value === query.get('time'));
  const [webhookId, programId] = [query.get('webhook') || undefined, query.get('program') || undefined];
  const after = placeFrom(query.get('after'));
  return {
    limit: PAGE_ROWS,
    ...(state && { state }),
    ...(eventKind && { eventKind }),
    ...(webhookId && { webhookId }),
    ...(programId && { programId }),
    ...(span && { sinceMs: nowMs - span.ms }),
    ...(after && { after }),
  };
}

/** Whether a wish narrows the list. */
export function isNarrow({ state, eventKind, webhookId, programId, sinceMs }: DeliveryWish): boolean {
  return [state, eventKind, webhookId, programId, sinceMs].some((member) => member !== undefined);
}

/** A place as it stands in an address. */
export function cursorOf({ createdAtMs, id }: Place): string {
  return `${createdAtMs}_${id}`;
}

function placeFrom(cursor: string | null): Place | undefined {
  const [, atMs, id] = /^(\d{1,15})_([0-9a-f-]{36})$/.exec(cursor ?? '') ?? [];
  return atMs === undefined || id === undefined ? undefined : { createdAtMs: Number(atMs), id };
}

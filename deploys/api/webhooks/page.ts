import type { DeliveryState } from '../../outbox/after-attempt.ts';
import type { Page } from '../../outbox/list.ts';

export type PageRead = Readonly<{ kind: 'page'; page: Page } | { kind: 'malformed-body'; text: string }>;

const LIMIT = 50;
const LIMIT_MAX = 100;
const STATES: readonly DeliveryState[] = [
  'queued',
  'attempting',
  'retry_scheduled',
  'delivered',
  'failed',
  'skipped',
  'cancelled',
];

/** The page of deliveries that a query asks for: `state`, `limit` from 1 to 100, and the `cursor` of the page before. */
export function pageFrom(webhookId: string, query: URLSearchParams): PageRead {
  const [limitText, stateText, cursor] = ['limit', 'state', 'cursor'].map((name) => query.get(name));
  const limit = limitText ? Number(limitText) : LIMIT;
  if (!Number.isInteger(limit) || limit < 1 || limit > LIMIT_MAX)
    return { kind: 'malformed-body', text: `limit must be from 1 to ${LIMIT_MAX}` };
  const state = STATES.find((known) => known === stateText);
  if (stateText && state === undefined)
    return { kind: 'malformed-body', text: `state must be one of ${STATES.join(', ')}` };
  const [, atMs, id] = /^(\d{1,15})_([0-9a-f-]{36})$/.exec(cursor ?? '') ?? [];
  if (cursor && id === undefined) return { kind: 'malformed-body', text: 'cursor is of no page' };
  const after = id === undefined ? undefined : { createdAtMs: Number(atMs), id };
  return { kind: 'page', page: { webhookId, limit, ...(state && { state }), ...(after && { after }) } };
}

/** The cursor of the page that follows `rows`; null when they are fewer than were asked for. */
export function nextCursor(
  rows: readonly { createdAtMs: number; id: string }[],
  limit: number,
): string | null {
  const last = rows.at(-1);
  return last === undefined || rows.length < limit ? null : `${last.createdAtMs}_${last.id}`;
}

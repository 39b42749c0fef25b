import { HOUR_MS, type Hours } from '../deploys/usage/calendar.ts';

/** What `--from` and `--to` say, or the first of them that cannot be read. */
export type Period =
  | ({ readonly kind: 'hours' } & Hours)
  | { readonly kind: 'unreadable'; readonly option: 'from' | 'to' }
  | { readonly kind: 'backwards' };

/** Without `--from`, so many hours up to the end. */
const HOURS_BY_DEFAULT = 24;

/**
 * The hours from `--from` to `--to`, both included and both in UTC: `2026-11-21T19` is an hour, `2026-11-21` a day.
 * Without `--to` it ends with the present hour; without `--from` it begins 24 hours before its end.
 */
export function periodFrom(from: string | undefined, to: string | undefined, nowMs: number): Period {
  const first = from === undefined ? undefined : hoursOf(from);
  if (from !== undefined && first === undefined) return { kind: 'unreadable', option: 'from' };
  const last = to === undefined ? undefined : hoursOf(to);
  if (to !== undefined && last === undefined) return { kind: 'unreadable', option: 'to' };
  const toHour = last?.toHour ?? Math.floor(nowMs / HOUR_MS) + 1;
  const fromHour = first?.fromHour ?? toHour - HOURS_BY_DEFAULT;
  return fromHour < toHour ? { kind: 'hours', fromHour, toHour } : { kind: 'backwards' };
}

/** The day, or with `T19` the hour; as the table prints it, `T19:00Z`, it is read too. */
const SHAPE = /^(\d{4}-\d\d-\d\d)(?:T(\d\d)(?::00Z?)?)?$/;

function hoursOf(text: string): Hours | undefined {
  const [, day, hour] = SHAPE.exec(text) ?? [];
  const dayMs = Date.parse(`${day}T00:00Z`);
  // A day that does not exist is read as one of the next month.
  if (day === undefined || Number.isNaN(dayMs) || !new Date(dayMs).toISOString().startsWith(day))
    return undefined;
  const fromHour = dayMs / HOUR_MS + Number(hour ?? 0);
  if (Number(hour ?? 0) > 23) return undefined;
  return { fromHour, toHour: fromHour + (hour === undefined ? 24 : 1) };
}

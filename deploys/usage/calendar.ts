/** Usage counts hours, days and months since 1970, in UTC. */
export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;

/** The day in which an hour lies. */
export function dayOfHour(hour: number): number {
  return Math.floor(hour / 24);
}

/** The month in which an instant lies, in Unix milliseconds, and the first of its days. */
export function monthOf(atMs: number): Readonly<{ month: number; firstDay: number }> {
  const at = new Date(atMs);
  const [year, month] = [at.getUTCFullYear(), at.getUTCMonth()];
  return { month: (year - 1970) * 12 + month, firstDay: Date.UTC(year, month) / DAY_MS };
}

/** The month in which a day lies. */
export function monthOfDay(day: number): number {
  return monthOf(day * DAY_MS).month;
}

/** The month in which an hour lies. */
export function monthOfHour(hour: number): number {
  return monthOf(hour * HOUR_MS).month;
}

/** When a month since 1970 begins, in Unix milliseconds. */
export function monthStartMs(month: number): number {
  return Date.UTC(1970, month);
}

/** `2026-11-21T19:00Z`. */
export function hourText(hour: number): string {
  return `${new Date(hour * HOUR_MS).toISOString().slice(0, 13)}:00Z`;
}

/** `2026-11-21`. */
export function dayText(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10);
}

/** `2026-11`. */
export function monthText(month: number): string {
  return new Date(monthStartMs(month)).toISOString().slice(0, 7);
}

/** Hours since 1970 (UTC), from the first up to and without the second. */
export type Hours = Readonly<{ fromHour: number; toHour: number }>;

/** Periods of one kind, from the first up to and without the second. */
export type Range = Readonly<{ from: number; to: number }>;

/** The periods that the hours touch; `periodOf` gives the period in which an hour lies. */
export function touched({ fromHour, toHour }: Hours, periodOf: (hour: number) => number): Range {
  return { from: periodOf(fromHour), to: periodOf(toHour - 1) + 1 };
}

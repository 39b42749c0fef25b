/** Usage counts hours, days and months since 1970, in UTC. */
export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;

/** The month in which an instant lies, in Unix milliseconds, and the first of its days. */
export function monthOf(atMs: number): Readonly<{ month: number; firstDay: number }> {
  const at = new Date(atMs);
  const [year, month] = [at.getUTCFullYear(), at.getUTCMonth()];
  return { month: (year - 1970) * 12 + month, firstDay: Date.UTC(year, month) / DAY_MS };
}

const iso = (ms: number, characters: number) => new Date(ms).toISOString().slice(0, characters);

/** Of each period: the one in which an hour lies, when one begins in Unix milliseconds, and its text. */
export const UNITS = {
  /** `2026-11-21T19:00Z`. */
  hour: {
    of: (hour: number) => hour,
    startMs: (hour: number) => hour * HOUR_MS,
    text: (hour: number) => `${iso(hour * HOUR_MS, 13)}:00Z`,
  },
  /** `2026-11-21`. */
  day: {
    of: (hour: number) => Math.floor(hour / 24),
    startMs: (day: number) => day * DAY_MS,
    text: (day: number) => iso(day * DAY_MS, 10),
  },
  /** `2026-11`. */
  month: {
    of: (hour: number) => monthOf(hour * HOUR_MS).month,
    startMs: (month: number) => Date.UTC(1970, month),
    text: (month: number) => iso(Date.UTC(1970, month), 7),
  },
};
export type Unit = keyof typeof UNITS;

/** Hours since 1970 (UTC), from the first up to and without the second. */
export type Hours = Readonly<{ fromHour: number; toHour: number }>;

/** The last so many hours, the one that is now included. */
export function lastHours(count: number, nowMs: number): Hours {
  const toHour = Math.floor(nowMs / HOUR_MS) + 1;
  return { fromHour: toHour - count, toHour };
}

/** The periods that the hours touch, from the first up to and without the second. */
export function touched({ fromHour, toHour }: Hours, unit: Unit) {
  const { of } = UNITS[unit];
  return { from: of(fromHour), to: of(toHour - 1) + 1 };
}

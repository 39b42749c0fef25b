const UNITS_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
/** Ten years: beyond it a rotation is no rotation. */
const GRACE_MS_MAX = 3_650 * 86_400_000;

/** `0s`, `15m`, `24h`, `7d` in milliseconds, at most ten years; `undefined` for anything else. */
export function graceMsFrom(text: string): number | undefined {
  const [, digits, unit] = /^(\d{1,10})([smhd])$/.exec(text) ?? [];
  const unitMs = unit === undefined ? undefined : UNITS_MS[unit];
  if (digits === undefined || unitMs === undefined) return undefined;
  const ms = Number(digits) * unitMs;
  return ms <= GRACE_MS_MAX ? ms : undefined;
}

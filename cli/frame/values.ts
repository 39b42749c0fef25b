import { CREDITS_MAX } from '../../deploys/accounts/accounts.ts';

/** What an option or operand of credits must be; the end of a sentence. */
export const CREDITS_FORMAT = 'must be a whole number, for example 250_000';

/** A number of credits, its digits grouped by underscores if wanted, as in the config; `undefined` for anything else. */
export function creditsFrom(text: string): number | undefined {
  if (!/^\d+(_\d+)*$/.test(text)) return undefined;
  const credits = Number(text.replaceAll('_', ''));
  return credits <= CREDITS_MAX ? credits : undefined;
}

const UNITS_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
/** Ten years: beyond it a rotation is no rotation. */
const DURATION_MS_MAX = 3_650 * 86_400_000;

/** `0s`, `15m`, `24h`, `7d` in milliseconds, at most ten years; `undefined` for anything else. */
export function durationMsFrom(text: string): number | undefined {
  const [, digits, unit = ''] = /^(\d{1,10})([smhd])$/.exec(text) ?? [];
  const ms = Number(digits) * (UNITS_MS[unit] ?? NaN);
  return ms <= DURATION_MS_MAX ? ms : undefined;
}

/** Rows under a head, in columns two spaces apart; `empty` stands for a table without rows. */
export function tableOf(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  empty: string,
): string {
  if (rows.length === 0) return `${empty}\n`;
  const widths = head.map((title, i) => Math.max(title.length, ...rows.map((row) => row[i]?.length ?? 0)));
  const line = (cells: readonly string[]) => cells.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('  ');
  return [head, ...rows].map((cells) => `${line(cells).trimEnd()}\n`).join('');
}

/** An instant in Unix milliseconds as ISO 8601 in UTC with milliseconds. */
export function isoOf(atMs: number): string {
  return new Date(atMs).toISOString();
}

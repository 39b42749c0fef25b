import { CREDITS_MAX } from '../../deploys/accounts/accounts.ts';
import type { Outcome } from './command.ts';

/** The form of an option or operand of credits, as the end of a sentence. */
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

/** An outcome of a list: an object for each item, or a table of their cells by column; `empty` stands for no items. */
export function listed<Item>(
  items: readonly Item[],
  recordOf: (item: Item) => object,
  cellsOf: (item: Item) => Readonly<Record<string, string>>,
  empty: string,
): Outcome {
  return { kind: 'done', objects: items.map(recordOf), text: tableOf(items.map(cellsOf)) || `${empty}\n` };
}

/** Rows under a head of their names, in columns two spaces apart; nothing without rows. */
function tableOf(rows: readonly Readonly<Record<string, string>>[]): string {
  const lines = [Object.keys(rows[0] ?? {}), ...rows.map((row) => Object.values(row))];
  const widthOf = (column: number) => Math.max(...lines.map((cells) => cells[column]?.length ?? 0));
  const widths = lines[0]?.map((_, column) => widthOf(column)) ?? [];
  const lineOf = (cells: readonly string[]) => cells.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('  ');
  return rows.length === 0 ? '' : lines.map((cells) => `${lineOf(cells).trimEnd()}\n`).join('');
}

/** An instant in Unix milliseconds as ISO 8601 in UTC with milliseconds. */
export function isoOf(atMs: number): string {
  return new Date(atMs).toISOString();
}

import {
  CSV_HEAD,
  csvLine,
  USAGE_COLUMNS,
  usageCells,
  usageRecord,
  type Used,
} from '../deploys/usage/read-usage.ts';
import { unreachable } from '../shared/brand.ts';

/** How usage is printed: a line for the top, if any, and one for each row, each with its line feed. */
export type UsageLines = Readonly<{ head: string; lineOf(used: Used, account: string): string }>;

export const FORMATS = ['table', 'csv', 'ndjson'] as const;
export type Format = (typeof FORMATS)[number];

/** Columns of texts, which stand on the left. */
const TEXTS = 4;
/** Wide enough for what they mostly hold; the account's width is that of the longest name. */
const WIDTHS = [17, 7, 16, 30, 10, 12, 8, 16, 9] as const;

/** The lines of a format. They need no row but their own, so that any number of them can be printed. */
export function usageLines(format: Format, accountWidth: number): UsageLines {
  switch (format) {
    case 'ndjson':
      return {
        head: '',
        lineOf: (used, account) => `${JSON.stringify(usageRecord(used, account))}\n`,
      };
    case 'csv':
      return { head: CSV_HEAD, lineOf: csvLine };
    case 'table': {
      const widths = WIDTHS.map((width, i) => (i === 1 ? Math.max(width, accountWidth) : width));
      const row = (cells: readonly string[]) =>
        `${cells
          .map((cell, i) => (i < TEXTS ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0)))
          .join('  ')}\n`;
      const head = row(USAGE_COLUMNS.map((name) => name.replace('_', ' ').toUpperCase()));
      return { head, lineOf: (used, account) => row(usageCells(used, account)) };
    }
    default:
      return unreachable(format);
  }
}

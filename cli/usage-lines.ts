import type { Used } from '../deploys/usage/read-usage.ts';
import { unreachable } from '../shared/brand.ts';

/** How usage is printed: a line for the top, if any, and one for each row, each with its line feed. */
export type UsageLines = Readonly<{ head: string; lineOf(used: Used, account: string): string }>;

export const FORMATS = ['table', 'csv', 'ndjson'] as const;
export type Format = (typeof FORMATS)[number];

const COLUMNS = [
  'hour',
  'account',
  'key_id',
  'method',
  'calls',
  'credits',
  'errors',
  'bytes_out',
  'refused',
] as const;
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
        lineOf: (used, account) => `${JSON.stringify(recordOf(used, account))}\n`,
      };
    case 'csv':
      return {
        head: `${COLUMNS.join(',')}\n`,
        lineOf: (used, account) => `${cellsOf(used, account).map(quoted).join(',')}\n`,
      };
    case 'table': {
      const widths = WIDTHS.map((width, i) => (i === 1 ? Math.max(width, accountWidth) : width));
      const row = (cells: readonly string[]) =>
        `${cells
          .map((cell, i) => (i < TEXTS ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0)))
          .join('  ')}\n`;
      const head = row(COLUMNS.map((name) => name.replace('_', ' ').toUpperCase()));
      return { head, lineOf: (used, account) => row(cellsOf(used, account)) };
    }
    default:
      return unreachable(format);
  }
}

/** DESIGN 2. */
function recordOf(used: Used, account: string) {
  const { period, keyId, method, calls, credits, errors, bytesOut, refused } = used;
  return {
    hour: period,
    account,
    key_id: keyId,
    method,
    calls,
    credits,
    errors,
    bytes_out: bytesOut,
    refused,
  };
}

function cellsOf(used: Used, account: string): string[] {
  return Object.values(recordOf(used, account)).map(String);
}

/** RFC 4180. */
function quoted(cell: string): string {
  return /[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}

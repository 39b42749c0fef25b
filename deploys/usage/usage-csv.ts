import type { Used } from './read-usage.ts';

/** The columns of usage wherever it is given as rows. */
export const USAGE_COLUMNS = [
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

/** The first line of a CSV file of usage. */
export const CSV_HEAD = `${USAGE_COLUMNS.join(',')}\n`;

/** A row by its columns. */
export function usageRecord(used: Used, account: string) {
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

/** A row's texts, in the order of the columns. */
export function usageCells(used: Used, account: string): string[] {
  return Object.values(usageRecord(used, account)).map(String);
}

/** A row as a line of CSV. */
export function csvLine(used: Used, account: string): string {
  return `${usageCells(used, harmless(account)).map(quoted).join(',')}\n`;
}

/** Customers name their accounts: a spreadsheet would take a name that begins like this for a formula. */
function harmless(name: string): string {
  return /^[=+\-@]/.test(name) ? `'${name}` : name;
}

/** RFC 4180. */
function quoted(cell: string): string {
  return /[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}

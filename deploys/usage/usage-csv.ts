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

/** What begins a formula, also in full width, behind spaces and quotes; at a cell's beginning or behind what may part cells. */
const FORMULA = /(^|[;|\t\r\n])(?=[\s"]*[=+\-@\uff1d\uff0b\uff0d\uff20])/g;

/** Customers name their accounts: a spreadsheet takes a text behind an apostrophe for no formula. */
function harmless(name: string): string {
  return name.replaceAll(FORMULA, "$1'");
}

/** RFC 4180, and for spreadsheets that part cells by something else than commas. */
function quoted(cell: string): string {
  return /[",;|\t\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}

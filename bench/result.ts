import { tableOf } from './table.ts';
import type { Second, Timing } from './recorder.ts';

/** What a run gave: all that `--json` writes, and what every other form is made of. */
export type Result = Readonly<{
  format: typeof FORMAT;
  command: string;
  /** Without what could be a key. */
  endpoint: string;
  /** ISO 8601. */
  at: string;
  /** What decides whether two results may be compared. */
  settings: Readonly<Record<string, string | number | boolean>>;
  machine: string;
  /** Whether it was ended before its bound. */
  stopped: boolean;
  /** Of the run, without the warm-up. */
  seconds: number;
  figures: readonly Figure[];
  timings: readonly Timing[];
  /** How often each outcome came, the most frequent first. */
  outcomes: Readonly<Record<string, number>>;
  run: readonly Second[];
  /** What is counted by the second. */
  counted: 'requests' | 'accounts' | 'transfers';
  /** Sentences about what the figures do not show. */
  notes: readonly string[];
  /** A sentence for each thing that makes the run a failure. */
  failures: readonly string[];
  scans?: readonly Scanned[];
}>;

/** One figure; `better` is absent where it is neither. */
export type Figure = Readonly<{ name: string; value: number; unit: string; better?: 'more' | 'less' }>;

/** One scan of a program. */
export type Scanned = Readonly<{
  program: string;
  /** `complete`: whole and right; `wrong`: whole, and some accounts are not; `cut`: it broke off; `refused`: it did not begin. */
  outcome: 'complete' | 'wrong' | 'cut' | 'refused' | 'stopped';
  /** Why, when it is not complete. */
  reason: string;
  accounts: number;
  wrongAccounts: number;
  bytes: number;
  seconds: number;
  firstByteMs: number;
  /** The `space` of all its accounts: the data they have, whatever the slice. */
  dataBytes: number;
  slot: number | null;
  sha256?: string;
}>;

export const FORMAT = 'sluice-bench 1';

/** Reads what `--json` wrote; a sentence when it is something else. */
export function resultFrom(text: string): Result | string {
  try {
    const value: unknown = JSON.parse(text);
    const { format, figures, timings } = Object(value);
    // The format names its own version, and nothing else writes it.
    if (format === FORMAT && Array.isArray(figures) && Array.isArray(timings)) return value as Result;
  } catch {
    // Said below.
  }
  return `is no result of this bench (${FORMAT})`;
}

/** A figure with as many digits as it needs. */
export function shown(value: number): string {
  if (Number.isInteger(value)) return value.toLocaleString('en-US');
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : Math.abs(value) >= 1 ? 2 : 3;
  return value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** The columns of a timing. */
const PERCENTILES = ['p50', 'p90', 'p99', 'p999', 'max', 'mean'] as const;

/** The result for people. */
export function textOf(result: Result): string {
  const { command, endpoint, seconds, stopped, figures, timings, outcomes, notes, failures, scans } = result;
  const settings = Object.entries(result.settings).map(([name, value]) => `${name} ${value}`);
  const parts = [
    `${command} ${endpoint}, ${shown(seconds)} s${stopped ? ', stopped before its end' : ''}\n${settings.join(', ')}\n${result.machine}`,
    tableOf(figures.map(({ name, value, unit }) => [name, shown(value), unit])),
    tableOf(timingRows(timings)),
  ];
  if (scans !== undefined) parts.push(tableOf(scanRows(scans)));
  if (Object.keys(outcomes).length > 0) parts.push(tableOf(outcomeRows(outcomes)));
  if (notes.length > 0) parts.push(notes.map((note) => `- ${note}`).join('\n'));
  if (failures.length > 0) parts.push(failures.map((failure) => `FAILED: ${failure}`).join('\n'));
  return `${parts.join('\n\n')}\n`;
}

/** A table of times, its head first. */
export function timingRows(timings: Result['timings']): string[][] {
  const rows = timings
    .filter(({ count }) => count > 0)
    .map((timing) => [timing.name, shown(timing.count), ...PERCENTILES.map((each) => shown(timing[each]))]);
  return [['ms', 'count', 'p50', 'p90', 'p99', 'p99.9', 'max', 'mean'], ...rows];
}

export function outcomeRows(outcomes: Result['outcomes']): string[][] {
  return [['outcome', 'count'], ...Object.entries(outcomes).map(([name, n]) => [name, shown(n)])];
}

/** The last scans; `--json` has more. */
export const SCANS_SHOWN = 20;

/** A table of scans without columns that say nothing. */
export function scanRows(scans: readonly Scanned[]): string[][] {
  const head = [
    'program',
    'outcome',
    'accounts',
    'wrong',
    'MB',
    'MB/s',
    'first byte ms',
    'seconds',
    'reason',
  ];
  const rows = scans.slice(-SCANS_SHOWN).map((scan) => {
    const { program, outcome, accounts, wrongAccounts, bytes, firstByteMs, seconds, reason } = scan;
    const megabytes = bytes / 1e6;
    const perSecond = megabytes / Math.max(seconds, 1e-9);
    const figures = [accounts, wrongAccounts, megabytes, perSecond, firstByteMs, seconds].map(shown);
    return [program, outcome, ...figures, reason, scan.sha256 ?? ''];
  });
  const all = [[...head, 'SHA-256'], ...rows];
  return all.map((row) => row.filter((_, i) => rows.some((each) => each[i] !== '')));
}

/** The result as rows of `kind,name,figure,value` (RFC 4180): the same four columns whatever was measured. */
export function csvOf(result: Result): string {
  const rows: (string | number)[][] = [['kind', 'name', 'figure', 'value']];
  rows.push(['run', result.command, 'at', result.at], ['run', result.command, 'seconds', result.seconds]);
  for (const { name, value, unit } of result.figures) rows.push(['figure', name, unit, value]);
  for (const timing of result.timings)
    for (const each of ['count', ...PERCENTILES] as const)
      rows.push(['timing', timing.name, each, timing[each]]);
  for (const [name, count] of Object.entries(result.outcomes)) rows.push(['outcome', name, 'count', count]);
  for (const { program, ...scan } of result.scans ?? [])
    for (const [name, value] of Object.entries(scan)) rows.push(['scan', program, name, value ?? '']);
  for (const { second, ...row } of result.run)
    for (const [name, value] of Object.entries(row)) rows.push(['second', second, name, value ?? '']);
  return rows.map((row) => `${row.map(cellOf).join(',')}\r\n`).join('');
}

function cellOf(value: string | number): string {
  const text = String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

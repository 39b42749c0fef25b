import { createAudit, type AuditEntry } from '../../deploys/accounts/audit.ts';
import { HOUR_MS, type Hours } from '../../deploys/usage/calendar.ts';
import {
  CSV_HEAD,
  csvLine,
  readUsage,
  USAGE_COLUMNS,
  usageCells,
  usageRecord,
  type Used,
} from '../../deploys/usage/read-usage.ts';
import { unreachable } from '../../shared/brand.ts';
import { type Books, onBooks, unknownAccount } from '../frame/books.ts';
import { failed, type Invocation, type Outcome } from '../frame/command.ts';
import { isoOf, listed } from '../frame/values.ts';

export const usage = onBooks(
  'usage --account --from --to --format',
  'Print usage by hour, account, key and method (default: the last 24 hours).',
  printUsage,
);

async function printUsage(books: Books, { options, world }: Invocation): Promise<Outcome> {
  const { json, account } = options;
  if (json !== undefined && options.format !== undefined && options.format !== 'ndjson')
    return failed('--json means --format ndjson. Use only one of them.');
  const wanted = options.format ?? (json === undefined ? 'table' : 'ndjson');
  const format = FORMATS.find((each) => each === wanted);
  if (format === undefined) return failed(`--format must be one of ${FORMATS.join(', ')}, not "${wanted}".`);
  const period = periodFrom(options.from, options.to, world.clock.now());
  if (typeof period === 'string') return failed(period);
  const only = account === undefined ? undefined : books.accounts.find(account)?.id;
  if (account !== undefined && only === undefined) return failed(unknownAccount(account));

  const { head, lineOf } = usageLines(format, account?.length ?? longestName(books));
  const nameOf = createNameOf(books);
  let isEmpty = true;
  if (format === 'csv') world.out(head);
  for (const page of readUsage(books.ledger, period, only)) {
    if (isEmpty && format !== 'csv') world.out(head);
    isEmpty = false;
    world.out(page.map((used) => lineOf(used, account ?? nameOf(used.accountId))).join(''));
    if (!(await world.hasRoom())) break;
  }
  if (isEmpty && format === 'table') world.out('No usage in this period.\n');
  return { kind: 'ended', code: 0 };
}

function longestName({ store }: Books): number {
  const longest = store.query<{ length: number | null }, []>(
    'SELECT max(length(name)) AS length FROM accounts',
  );
  return longest.get()?.length ?? 0;
}

/** Names by id; rows of one account come together, so the last one is remembered. */
function createNameOf({ store }: Books): (accountId: number) => string {
  const find = store.prepare<{ name: string }, [number]>('SELECT name FROM accounts WHERE id = ?');
  let last: { id: number; name: string } | undefined;
  return function nameOf(id) {
    if (last?.id !== id) last = { id, name: find.get(id)?.name ?? `#${id}` };
    return last.name;
  };
}

/** Without `--from`, so many hours up to the end. */
const HOURS_BY_DEFAULT = 24;

/**
 * The hours from `--from` to `--to`, both included and both in UTC: `2026-11-21T19` is an hour, `2026-11-21` a day.
 * Without `--to` it ends with the present hour; without `--from` it begins 24 hours before its end. What is wrong with
 * them is a sentence.
 */
export function periodFrom(from: string | undefined, to: string | undefined, nowMs: number): Hours | string {
  const [first, last] = [from, to].map((text) => (text === undefined ? undefined : hoursOf(text)));
  if (from !== undefined && first === undefined) return unreadable('from', from);
  if (to !== undefined && last === undefined) return unreadable('to', to);
  const toHour = last?.toHour ?? Math.floor(nowMs / HOUR_MS) + 1;
  const fromHour = first?.fromHour ?? toHour - HOURS_BY_DEFAULT;
  return fromHour < toHour ? { fromHour, toHour } : '--from is later than --to.';
}

function unreadable(option: string, text: string): string {
  return `--${option} must be a UTC day or hour such as 2026-11-21 or 2026-11-21T19, not "${text}".`;
}

/** The day, or with `T19` the hour; as the table prints it, `T19:00Z`, it is read too. */
const SHAPE = /^(\d{4}-\d\d-\d\d)(?:T(\d\d)(?::00Z?)?)?$/;

function hoursOf(text: string): Hours | undefined {
  const [, day, hour] = SHAPE.exec(text) ?? [];
  const dayMs = Date.parse(`${day}T00:00Z`);
  // A day that does not exist is read as one of the next month.
  if (day === undefined || Number.isNaN(dayMs) || !new Date(dayMs).toISOString().startsWith(day))
    return undefined;
  const fromHour = dayMs / HOUR_MS + Number(hour ?? 0);
  if (Number(hour ?? 0) > 23) return undefined;
  return { fromHour, toHour: fromHour + (hour === undefined ? 24 : 1) };
}

/** How usage is printed: a line for the top, if any, and one for each row, each with its line feed. */
type UsageLines = Readonly<{ head: string; lineOf(used: Used, account: string): string }>;

const FORMATS = ['table', 'csv', 'ndjson'] as const;
type Format = (typeof FORMATS)[number];

/** Columns of texts, which stand on the left. */
const TEXTS = 4;
/** Wide enough for what they mostly hold; the account's width is that of the longest name. */
const WIDTHS = [17, 7, 16, 30, 10, 12, 8, 16, 9] as const;

/** The lines of a format. They need no row but their own, so that any number of them can be printed. */
function usageLines(format: Format, accountWidth: number): UsageLines {
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

/** Entries that are printed; the console goes on where this ends. */
const LIMIT = 100;

export const audit = onBooks(
  'audit --account',
  `Print the latest ${LIMIT} changes with who made them, newest first; of one account with --account.`,
  (books, { options: { account: of } }) => {
    const accountId = of === undefined ? undefined : books.accounts.find(of)?.id;
    if (of !== undefined && accountId === undefined) return failed(unknownAccount(of));
    const entries = createAudit(books.store).list({ accountId, limit: LIMIT });
    return listed(
      entries.map((entry) => recordOf(entry, books)),
      (record) => record,
      ({ at, by, action, account, detail }) => ({
        AT: at,
        BY: by,
        ACTION: action,
        ACCOUNT: account ?? '-',
        DETAIL: JSON.stringify(detail),
      }),
      'No changes yet.',
    );
  },
);

function recordOf(
  { atMs, actorKind, actorId, action, accountId, subject, detail }: AuditEntry,
  books: Books,
) {
  const account = accountId === null ? null : (books.accounts.findById(accountId)?.name ?? null);
  return { at: isoOf(atMs), by: byOf(actorKind, actorId, books), action, account, subject, detail };
}

/** A user by email, a key by its name; by id once they are gone. */
function byOf(kind: AuditEntry['actorKind'], id: string | null, { users, keys }: Books): string {
  if (id === null) return 'command line';
  const name = kind === 'key' ? keys.find(id)?.name : users.byId(id)?.email;
  return `${kind} ${name ?? id}`;
}

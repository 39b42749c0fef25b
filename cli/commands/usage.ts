import { readUsage } from '../../deploys/usage/read-usage.ts';
import { type Books, withUsage } from '../books.ts';
import { type Command, failed, type Invocation, type Outcome } from '../command.ts';
import { periodFrom } from '../period.ts';
import { type Format, FORMATS, usageLines } from '../usage-lines.ts';
import { unknownAccount } from '../account-lines.ts';

export const usage: Command = {
  words: 'usage',
  operands: [],
  options: ['account', 'from', 'to', 'format', 'config', 'json'],
  summary: 'Print what was used by hour, account, key and method; of the last 24 hours unless told.',
  act: (invocation) => withUsage(invocation, (books) => printUsage(books, invocation)),
};

async function printUsage(books: Books, { values, json, world }: Invocation): Promise<Outcome> {
  const format = formatFrom(values.format, json);
  if (format === undefined)
    return failed(
      json
        ? '--json is --format ndjson; give one of the two.'
        : `--format wants ${FORMATS.join(', ')}, not "${values.format}".`,
    );
  const period = periodFrom(values.from, values.to, world.clock.now());
  if (period.kind === 'unreadable')
    return failed(
      `--${period.option} wants a day or an hour in UTC such as 2026-11-21 or 2026-11-21T19, not "${values[period.option]}".`,
    );
  if (period.kind === 'backwards') return failed('--from is later than --to.');
  const { account } = values;
  const only = account === undefined ? undefined : idOf(books, account);
  if (account !== undefined && only === undefined) return failed(unknownAccount(account));

  const { head, lineOf } = usageLines(format, account?.length ?? longestName(books));
  const nameOf = createNameOf(books);
  let begun = format === 'csv';
  if (begun) world.out(head);
  for (const page of readUsage(books.ledger, period, only)) {
    if (!begun) world.out(head);
    begun = true;
    world.out(page.map((used) => lineOf(used, account ?? nameOf(used.accountId))).join(''));
    if (!(await world.taken())) break;
  }
  if (!begun && format === 'table') world.out('Nothing was used in that time.\n');
  return { kind: 'ended', code: 0 };
}

function formatFrom(text: string | undefined, json: boolean): Format | undefined {
  if (json) return text === undefined || text === 'ndjson' ? 'ndjson' : undefined;
  return FORMATS.find((format) => format === (text ?? 'table'));
}

function idOf({ accounts }: Books, name: string): number | undefined {
  return accounts.find(name)?.id;
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

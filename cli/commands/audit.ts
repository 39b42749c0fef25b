import { createAudit, type Entry } from '../../deploys/accounts/audit.ts';
import { unknownAccount } from '../account-lines.ts';
import { type Books, withAccounts } from '../books.ts';
import { type Command, failed } from '../command.ts';
import { isoOf, tableOf } from '../table.ts';

/** Entries that are printed; the console goes on where this ends. */
const LIMIT = 100;

export const audit: Command = {
  words: 'audit',
  operands: [],
  options: ['account', 'config', 'json'],
  summary: 'Print the last 100 changes, the newest first, with who made them; of one account with --account.',
  act: (invocation) =>
    withAccounts(invocation, (books) => {
      const { account } = invocation.values;
      const accountId = account === undefined ? undefined : books.accounts.find(account)?.id;
      if (account !== undefined && accountId === undefined) return failed(unknownAccount(account));
      const entries = createAudit(books.store).list({ accountId, limit: LIMIT });
      const records = entries.map((entry) => recordOf(entry, books));
      const rows = records.map(({ at, by, action, account: of, detail }) => [
        at,
        by,
        action,
        of ?? '-',
        JSON.stringify(detail),
      ]);
      const text = tableOf(['AT', 'BY', 'ACTION', 'ACCOUNT', 'DETAIL'], rows, 'Nothing was changed yet.');
      return { kind: 'done', objects: records, text };
    }),
};

function recordOf({ atMs, actorKind, actorId, action, accountId, subject, detail }: Entry, books: Books) {
  const account = accountId === null ? null : (books.accounts.findById(accountId)?.name ?? null);
  return { at: isoOf(atMs), by: byOf(actorKind, actorId, books), action, account, subject, detail };
}

/** A user by e-mail, a key by its name; by id once they are gone. */
function byOf(kind: Entry['actorKind'], id: string | null, { users, keys }: Books): string {
  if (id === null) return 'command line';
  const name = kind === 'key' ? keys.find(id)?.name : users.byId(id)?.email;
  return `${kind} ${name ?? id}`;
}

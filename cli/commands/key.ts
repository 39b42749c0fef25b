import { originOf } from '../../deploys/accounts/changes.ts';
import { type KeyRow, type NewKey, TOO_MANY_KEYS } from '../../deploys/accounts/keys.ts';
import { whyUnpublished } from '../../deploys/accounts/redis-head.ts';
import { unreachable } from '../../shared/brand.ts';
import { type Books, COMMAND_LINE, withAccounts, withAccountsAwaited } from '../books.ts';
import { type Command, failed, type World } from '../command.ts';
import { graceMsFrom } from '../grace.ts';
import { isoOf, tableOf } from '../table.ts';
import { unknownAccount } from '../account-lines.ts';

const BAD_NAME = 'A key name is 1 to 64 printable characters without a space at either end.';

export const keyCreate: Command = {
  words: 'key create',
  operands: ['ACCOUNT'],
  options: ['name', 'config', 'json'],
  summary: 'Create a key of an account; it is shown this once.',
  act: (invocation) =>
    withAccounts(invocation, ({ keys }) => {
      const account = invocation.operands[0] ?? '';
      const result = keys.create(account, invocation.values.name ?? 'default', COMMAND_LINE);
      switch (result.kind) {
        case 'created':
          return { kind: 'done', objects: [secretRecordOf(result.made)], text: shownOnce(result.made) };
        case 'unknown-account':
          return failed(unknownAccount(account));
        case 'bad-name':
          return failed(BAD_NAME);
        case 'made-before':
          return failed(madeBefore(result.id));
        case 'too-many':
          return failed(TOO_MANY_KEYS);
        default:
          return unreachable(result);
      }
    }),
};

export const keyRename: Command = {
  words: 'key rename',
  operands: ['KEY_ID', 'NAME'],
  options: ['config', 'json'],
  summary: 'Give a key another name.',
  act: (invocation) =>
    withAccounts(invocation, ({ keys }) => {
      const [id = '', name = ''] = invocation.operands;
      const result = keys.rename(id, name, COMMAND_LINE);
      switch (result.kind) {
        case 'renamed':
          return { kind: 'done', objects: [recordOf(result.row)], text: `Key ${id} is now named ${name}.\n` };
        case 'bad-name':
          return failed(BAD_NAME);
        case 'reserved-name':
          return failed('The keys of demo and sluice-watcher are known by their names.');
        case 'unknown-key':
          return failed(unknownKey(id));
        default:
          return unreachable(result);
      }
    }),
};

export const keyRotate: Command = {
  words: 'key rotate',
  operands: ['KEY_ID'],
  options: ['grace', 'config', 'json'],
  summary: 'Make a new key in place of one that goes on working for --grace (default 24h; 0s, 15m, 7d).',
  act: (invocation) =>
    withAccounts(invocation, ({ keys }) => {
      const id = invocation.operands[0] ?? '';
      const grace = invocation.values.grace ?? '24h';
      const graceMs = graceMsFrom(grace);
      if (graceMs === undefined)
        return failed(`--grace wants a time such as 0s, 15m, 24h or 7d, at most 3650d, not "${grace}".`);
      const result = keys.rotate(id, graceMs, COMMAND_LINE);
      switch (result.kind) {
        case 'rotated': {
          const until = `The old key ${id} works until ${isoOf(result.oldExpiresAtMs)}.\n`;
          const text = shownOnce(result.made) + until;
          return { kind: 'done', objects: [secretRecordOf(result.made)], text };
        }
        case 'unknown-key':
          return failed(unknownKey(id));
        case 'ended':
          return failed(`Key ${id} is ${result.state}; make a new one with key create.`);
        case 'made-before':
          return failed(madeBefore(result.id));
        case 'too-many':
          return failed(TOO_MANY_KEYS);
        default:
          return unreachable(result);
      }
    }),
};

export const keyRevoke: Command = {
  words: 'key revoke',
  operands: ['KEY_ID'],
  options: ['config', 'json'],
  summary: 'End a key at once; running apps refuse it within a second.',
  act: (invocation) =>
    withAccountsAwaited(invocation, async (books) => {
      const id = invocation.operands[0] ?? '';
      const result = books.keys.revoke(id, COMMAND_LINE);
      if (result.kind !== 'unknown-key') await reportUnpublished(books, invocation.world);
      switch (result.kind) {
        case 'revoked':
          return { kind: 'done', objects: [recordOf(result.row)], text: `Key ${id} is revoked.\n` };
        case 'already-revoked':
          return { kind: 'done', objects: [recordOf(result.row)], text: `Key ${id} was revoked already.\n` };
        case 'unknown-key':
          return failed(unknownKey(id));
        default:
          return unreachable(result);
      }
    }),
};

/** Says on standard error when gateways on other hosts go on taking a key that is revoked here. */
async function reportUnpublished({ config, store }: Books, { clock, random, err }: World): Promise<void> {
  const url = config.storage.redisUrl?.reveal();
  if (url === undefined) return;
  const chance = () => Buffer.from(random(4)).readUInt32BE() / 2 ** 32;
  const why = await whyUnpublished({ url, origin: originOf(store), clock, random: chance });
  if (why !== undefined)
    err(`Gateways on other hosts take the key until deploys can publish that it is revoked: ${why}.\n`);
}

export const keyList: Command = {
  words: 'key list',
  operands: ['[ACCOUNT]'],
  options: ['config', 'json'],
  summary: 'List the keys, of one account or of all.',
  act: (invocation) =>
    withAccounts(invocation, ({ accounts, keys }) => {
      const [account] = invocation.operands;
      if (account !== undefined && accounts.find(account) === undefined)
        return failed(unknownAccount(account));
      const list = keys.list(account);
      const head = ['KEY ID', 'ACCOUNT', 'NAME', 'KEY', 'STATE', 'CREATED', 'LAST USED'];
      const empty = 'No keys yet; key create ACCOUNT makes one.';
      return { kind: 'done', objects: list.map(recordOf), text: tableOf(head, list.map(cellsOf), empty) };
    }),
};

function madeBefore(id: string): string {
  return `The key was made before; it is ${id}.`;
}

function cellsOf({ id, account, name, prefix, last4, state, createdAtMs, lastUsedAtMs }: KeyRow): string[] {
  const lastUsed = lastUsedAtMs === undefined ? '-' : isoOf(lastUsedAtMs);
  return [id, account, name, `${prefix}…${last4}`, state, isoOf(createdAtMs), lastUsed];
}

function recordOf({ id, account, name, prefix, last4, state, createdAtMs, lastUsedAtMs }: KeyRow) {
  return {
    key_id: id,
    account,
    name,
    prefix,
    last4,
    state,
    created_at: isoOf(createdAtMs),
    last_used_at: lastUsedAtMs === undefined ? null : isoOf(lastUsedAtMs),
  };
}

function secretRecordOf({ id, key, account }: NewKey) {
  return { key_id: id, key, account };
}

function shownOnce({ id, key, account, name }: NewKey): string {
  return `Key ${id} (${name}) of account ${account}; it is not shown again:\n${key}\n`;
}

function unknownKey(id: string): string {
  return `There is no key with the id "${id}"; key list shows them.`;
}

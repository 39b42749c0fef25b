import { originOf } from '../../deploys/accounts/changes.ts';
import { type KeyRow, type NewKey, TOO_MANY_KEYS } from '../../deploys/accounts/keys.ts';
import { whyUnpublished } from '../../deploys/accounts/redis-head.ts';
import { unreachable } from '../../shared/brand.ts';
import { type Books, COMMAND_LINE, onBooks, unknownAccount } from '../frame/books.ts';
import { type Command, done, failed, type Outcome, type World } from '../frame/command.ts';
import { durationMsFrom, isoOf, tableOf } from '../frame/values.ts';

const BAD_NAME = 'A key name has 1 to 64 printable characters and no leading or trailing space.';

const keyCreate = onBooks(
  'key create ACCOUNT --name',
  'Create a key for an account; it is shown only once.',
  ({ keys }, invocation) => {
    const account = invocation.operands[0] ?? '';
    const result = keys.create(account, invocation.values.name ?? 'default', COMMAND_LINE);
    switch (result.kind) {
      case 'created':
        return shownOnce(result.made);
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
  },
);

const keyRename = onBooks('key rename KEY_ID NAME', 'Rename a key.', ({ keys }, invocation) => {
  const [id = '', name = ''] = invocation.operands;
  const result = keys.rename(id, name, COMMAND_LINE);
  switch (result.kind) {
    case 'renamed':
      return done(`Key ${id} is now named ${name}.`, recordOf(result.row));
    case 'bad-name':
      return failed(BAD_NAME);
    case 'reserved-name':
      return failed("The keys of demo and sluice-watcher can't be renamed.");
    case 'unknown-key':
      return failed(unknownKey(id));
    default:
      return unreachable(result);
  }
});

const keyRotate = onBooks(
  'key rotate KEY_ID --grace',
  'Replace a key; the old key keeps working for --grace (default 24h; for example 0s, 15m, 7d).',
  ({ keys }, invocation) => {
    const id = invocation.operands[0] ?? '';
    const grace = invocation.values.grace ?? '24h';
    const graceMs = durationMsFrom(grace);
    if (graceMs === undefined)
      return failed(`--grace must be a duration such as 0s, 15m, 24h or 7d, at most 3650d, not "${grace}".`);
    const result = keys.rotate(id, graceMs, COMMAND_LINE);
    switch (result.kind) {
      case 'rotated':
        return shownOnce(result.made, `\nThe old key ${id} expires at ${isoOf(result.oldExpiresAtMs)}.`);
      case 'unknown-key':
        return failed(unknownKey(id));
      case 'ended':
        return failed(`Key ${id} is ${result.state}. Create a new one with: key create`);
      case 'made-before':
        return failed(madeBefore(result.id));
      case 'too-many':
        return failed(TOO_MANY_KEYS);
      default:
        return unreachable(result);
    }
  },
);

const keyRevoke = onBooks(
  'key revoke KEY_ID',
  'Revoke a key immediately; running apps reject it within a second.',
  async (books, invocation) => {
    const id = invocation.operands[0] ?? '';
    const result = books.keys.revoke(id, COMMAND_LINE);
    if (result.kind !== 'unknown-key') await reportUnpublished(books, invocation.world);
    switch (result.kind) {
      case 'revoked':
        return done(`Key ${id} has been revoked.`, recordOf(result.row));
      case 'already-revoked':
        return done(`Key ${id} was already revoked.`, recordOf(result.row));
      case 'unknown-key':
        return failed(unknownKey(id));
      default:
        return unreachable(result);
    }
  },
);

/** Warns on standard error when gateways on other hosts still accept a key that is revoked here. */
async function reportUnpublished({ config, store }: Books, { clock, random, err }: World): Promise<void> {
  const url = config.storage.redisUrl?.reveal();
  if (url === undefined) return;
  const chance = () => Buffer.from(random(4)).readUInt32BE() / 2 ** 32;
  const why = await whyUnpublished({ url, origin: originOf(store), clock, random: chance });
  if (why !== undefined)
    err(`Gateways on other hosts accept the key until deploys can publish the revocation: ${why}.\n`);
}

const keyList = onBooks(
  'key list [ACCOUNT]',
  'List the keys of one account or of all.',
  ({ accounts, keys }, { operands: [account] }) => {
    if (account !== undefined && accounts.find(account) === undefined) return failed(unknownAccount(account));
    const list = keys.list(account);
    const head = ['KEY ID', 'ACCOUNT', 'NAME', 'KEY', 'STATE', 'CREATED', 'LAST USED'];
    const empty = 'No keys yet. Create one with: key create ACCOUNT';
    return { kind: 'done', objects: list.map(recordOf), text: tableOf(head, list.map(cellsOf), empty) };
  },
);

function madeBefore(id: string): string {
  return `This key was already created as ${id}.`;
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

function shownOnce({ id, key, account, name }: NewKey, more = ''): Outcome {
  const text = `Key ${id} (${name}) of account ${account}. It won't be shown again:\n${key}${more}`;
  return done(text, { key_id: id, key, account });
}

function unknownKey(id: string): string {
  return `No key with ID "${id}". List keys with: key list`;
}

export const keyCommands: readonly Command[] = [keyCreate, keyList, keyRename, keyRevoke, keyRotate];

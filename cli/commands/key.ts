import { type Keys, type NewKey, type KeyRow, TOO_MANY_KEYS } from '../../deploys/accounts/keys.ts';
import { whyUnpublished } from '../../deploys/accounts/redis-head.ts';
import { unreachable } from '../../shared/brand.ts';
import { type Books, COMMAND_LINE, onBooks, redisOf, unknownAccount } from '../frame/books.ts';
import { type Command, done, type Failed, failed, type Outcome, type World } from '../frame/command.ts';
import { durationMsFrom, isoOf, listed } from '../frame/values.ts';

/** Warns on standard error when gateways on other hosts still accept a key that is revoked here. */
async function reportUnpublished(books: Books, world: World): Promise<void> {
  const redis = redisOf(books, world);
  const why = redis && (await whyUnpublished(redis));
  if (why !== undefined)
    world.err(`Gateways on other hosts accept the key until deploys can publish the revocation: ${why}.\n`);
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

type KeyCommandResult = ReturnType<Keys['create' | 'rename' | 'rotate' | 'revoke']>;
type Made = Readonly<{ kind: 'created' | 'renamed' | 'rotated' | 'revoked' | 'already-revoked' }>;

/** Why nothing was changed; `subject` is the account or the key that the command named. */
function refused(result: Exclude<KeyCommandResult, Made>, subject: string): Failed {
  switch (result.kind) {
    case 'unknown-account':
      return failed(unknownAccount(subject));
    case 'unknown-key':
      return failed(`No key with ID "${subject}". List keys with: key list`);
    case 'bad-name':
      return failed('A key name has 1 to 64 printable characters and no leading or trailing space.');
    case 'reserved-name':
      return failed("The keys of demo and sluice-watcher can't be renamed.");
    case 'ended':
      return failed(`Key ${subject} is ${result.state}. Create a new one with: key create`);
    case 'made-before':
      return failed(`This key was already created as ${result.id}.`);
    case 'too-many':
      return failed(TOO_MANY_KEYS);
    default:
      return unreachable(result);
  }
}

export const keyCommands: readonly Command[] = [
  onBooks(
    'key create ACCOUNT --name',
    'Create a key for an account; it is shown only once.',
    ({ keys }, { operands: [account = ''], options }) => {
      const result = keys.create(account, options.name ?? 'default', COMMAND_LINE);
      return result.kind === 'created' ? shownOnce(result.made) : refused(result, account);
    },
  ),
  onBooks(
    'key list [ACCOUNT]',
    'List the keys of one account or of all.',
    ({ accounts, keys }, { operands: [of] }) => {
      if (of !== undefined && accounts.find(of) === undefined) return failed(unknownAccount(of));
      return listed(
        keys.list(of),
        recordOf,
        ({ id, account, name, prefix, last4, state, createdAtMs, lastUsedAtMs }) => ({
          'KEY ID': id,
          ACCOUNT: account,
          NAME: name,
          KEY: `${prefix}…${last4}`,
          STATE: state,
          CREATED: isoOf(createdAtMs),
          'LAST USED': lastUsedAtMs === undefined ? '-' : isoOf(lastUsedAtMs),
        }),
        'No keys yet. Create one with: key create ACCOUNT',
      );
    },
  ),
  onBooks('key rename KEY_ID NAME', 'Rename a key.', ({ keys }, { operands: [id = '', name = ''] }) => {
    const result = keys.rename(id, name, COMMAND_LINE);
    if (result.kind !== 'renamed') return refused(result, id);
    return done(`Key ${id} is now named ${name}.`, recordOf(result.row));
  }),
  onBooks(
    'key revoke KEY_ID',
    'Revoke a key immediately; running apps reject it within a second.',
    async (books, { operands: [id = ''], world }) => {
      const result = books.keys.revoke(id, COMMAND_LINE);
      if (result.kind === 'unknown-key') return refused(result, id);
      await reportUnpublished(books, world);
      const what = result.kind === 'revoked' ? 'has been revoked' : 'was already revoked';
      return done(`Key ${id} ${what}.`, recordOf(result.row));
    },
  ),
  onBooks(
    'key rotate KEY_ID --grace',
    'Replace a key; the old key keeps working for --grace (default 24h; for example 0s, 15m, 7d).',
    ({ keys }, { operands: [id = ''], options: { grace = '24h' } }) => {
      const graceMs = durationMsFrom(grace);
      if (graceMs === undefined)
        return failed(
          `--grace must be a duration such as 0s, 15m, 24h or 7d, at most 3650d, not "${grace}".`,
        );
      const result = keys.rotate(id, graceMs, COMMAND_LINE);
      if (result.kind !== 'rotated') return refused(result, id);
      return shownOnce(result.made, `\nThe old key ${id} expires at ${isoOf(result.oldExpiresAtMs)}.`);
    },
  ),
];

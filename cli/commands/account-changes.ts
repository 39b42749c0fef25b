import type { Accounts } from '../../deploys/accounts/accounts.ts';
import { accountOutcome, creditsFrom, CREDITS_WANTED, fullRecordOf } from '../account-lines.ts';
import { COMMAND_LINE, withAccounts } from '../books.ts';
import { type Command, failed } from '../command.ts';

export const accountAddCredits: Command = {
  words: 'account add-credits',
  operands: ['NAME', 'NUMBER'],
  options: ['reason', 'once', 'config', 'json'],
  summary: 'Add to the credits an account has left, and note why; the same --once adds only once.',
  act: (invocation) =>
    withAccounts(invocation, ({ config, accounts }) => {
      const { operands, values, world } = invocation;
      const [name = '', number = ''] = operands;
      const credits = creditsFrom(number);
      if (credits === undefined) return failed(`NUMBER ${CREDITS_WANTED}, not "${number}".`);
      if (values.reason === undefined) return failed('account add-credits needs --reason TEXT.');
      const once = values.once ?? Buffer.from(world.random(16)).toString('hex');
      const addition = { credits, reason: values.reason, once };
      const result = accounts.addCredits(name, addition, COMMAND_LINE);
      return accountOutcome(config, name, result, fullRecordOf);
    }),
};

export const accountSuspend = plain(
  'account suspend',
  'Refuse every key of an account, until it is resumed; running apps notice within a second.',
  'suspend',
);

export const accountResume = plain(
  'account resume',
  'Accept the keys of a suspended account again.',
  'resume',
);

export const accountRename: Command = {
  words: 'account rename',
  operands: ['NAME', 'NEW_NAME'],
  options: ['config', 'json'],
  summary: 'Give an account another name; its keys, credits and usage stay.',
  act: (invocation) =>
    withAccounts(invocation, ({ config, accounts }) => {
      const [name = '', to = ''] = invocation.operands;
      const result = accounts.rename(name, to, COMMAND_LINE);
      const meant = result.kind === 'name-taken' ? to : name;
      return accountOutcome(config, meant, result, fullRecordOf);
    }),
};

function plain(words: string, summary: string, verb: keyof Pick<Accounts, 'suspend' | 'resume'>): Command {
  return {
    words,
    operands: ['NAME'],
    options: ['config', 'json'],
    summary,
    act: (invocation) =>
      withAccounts(invocation, ({ config, accounts }) => {
        const name = invocation.operands[0] ?? '';
        return accountOutcome(config, name, accounts[verb](name, COMMAND_LINE), fullRecordOf);
      }),
  };
}

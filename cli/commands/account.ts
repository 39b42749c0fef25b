import { plansInUse, requestReload } from '../../shared/keys/reload.ts';
import { accountOutcome, CREDITS_WANTED, creditsFrom, fullRecordOf, rowOf } from '../account-lines.ts';
import { type Books, COMMAND_LINE, withAccounts } from '../books.ts';
import { type Command, failed } from '../command.ts';
import { tableOf } from '../table.ts';

/** The plan of an account that is created without one. */
const PLAN_BY_DEFAULT = 'trial';

export const accountCreate: Command = {
  words: 'account create',
  operands: ['NAME'],
  options: ['plan', 'config', 'json'],
  summary: 'Create an account, on plan trial unless told; --plan none is for the program API alone.',
  act: (invocation) =>
    withAccounts(
      invocation,
      (books) => {
        const { operands, values } = invocation;
        const plan = planFrom(values.plan ?? PLAN_BY_DEFAULT);
        const name = operands[0] ?? '';
        const change = () => books.accounts.create(name, plan, COMMAND_LINE);
        return accountOutcome(books.config, name, withPlanRead(books, change, plan));
      },
      'make',
    ),
};

export const accountSet: Command = {
  words: 'account set',
  operands: ['NAME'],
  options: ['plan', 'credits', 'config', 'json'],
  summary: 'Change the plan of an account, or set the credits it has left.',
  act: (invocation) =>
    withAccounts(invocation, (books) => {
      const { operands, values } = invocation;
      if (values.plan === undefined && values.credits === undefined)
        return failed('account set needs --plan P or --credits N.');
      const creditsLeft = values.credits === undefined ? undefined : creditsFrom(values.credits);
      if (values.credits !== undefined && creditsLeft === undefined)
        return failed(`--credits ${CREDITS_WANTED}, not "${values.credits}".`);
      const change = {
        ...(values.plan === undefined ? {} : { plan: { name: planFrom(values.plan) } }),
        ...(creditsLeft === undefined ? {} : { creditsLeft }),
      };
      const name = operands[0] ?? '';
      const set = () => books.accounts.set(name, change, COMMAND_LINE);
      return accountOutcome(books.config, name, withPlanRead(books, set, change.plan?.name));
    }),
};

export const accountList: Command = {
  words: 'account list',
  operands: [],
  options: ['config', 'json'],
  summary: 'List the accounts with their plan, the credits they have left and whether they are suspended.',
  act: (invocation) =>
    withAccounts(invocation, ({ accounts }) => {
      const list = accounts.list();
      const empty = 'No accounts yet; account create NAME makes one.';
      return {
        kind: 'done',
        objects: list.map(fullRecordOf),
        text: tableOf(['ACCOUNT', 'PLAN', 'CREDITS LEFT', 'STATE'], list.map(rowOf), empty),
      };
    }),
};

/**
 * Makes a change by which an account comes to a plan. Running apps may not have read a plan that nobody was on: they are
 * asked to read the config again, or they would refuse the account's keys.
 */
function withPlanRead<Result extends Readonly<{ kind: string }>>(
  { store }: Books,
  change: () => Result,
  plan: string | undefined,
): Result {
  const isNew = plan !== undefined && !plansInUse(store).has(plan);
  const result = change();
  if (isNew && result.kind === 'account') requestReload(store);
  return result;
}

function planFrom(text: string): string | undefined {
  return text === 'none' ? undefined : text;
}

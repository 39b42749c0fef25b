import type { Account, AccountResult } from '../../deploys/accounts/accounts.ts';
import { unreachable } from '../../shared/brand.ts';
import { type Books, withAccounts } from '../books.ts';
import { type Command, failed, type Outcome } from '../command.ts';
import { tableOf } from '../table.ts';

/** The plan of an account that is created without one. */
const PLAN_BY_DEFAULT = 'trial';

export const accountCreate: Command = {
  words: 'account create',
  operands: ['NAME'],
  options: ['plan', 'config', 'json'],
  summary: 'Create an account, on plan trial unless told; --plan none is for the program API alone.',
  act: (invocation) =>
    withAccounts(invocation, (books) => {
      const { operands, values } = invocation;
      const plan = planFrom(values.plan ?? PLAN_BY_DEFAULT);
      return outcomeOf(books, operands[0] ?? '', books.accounts.create(operands[0] ?? '', plan));
    }),
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
        return failed(`--credits wants a whole number of credits such as 250_000, not "${values.credits}".`);
      const result = books.accounts.set(operands[0] ?? '', {
        ...(values.plan === undefined ? {} : { plan: { name: planFrom(values.plan) } }),
        ...(creditsLeft === undefined ? {} : { creditsLeft }),
      });
      return outcomeOf(books, operands[0] ?? '', result);
    }),
};

export const accountList: Command = {
  words: 'account list',
  operands: [],
  options: ['config', 'json'],
  summary: 'List the accounts with their plan and the credits they have left.',
  act: (invocation) =>
    withAccounts(invocation, ({ accounts }) => {
      const list = accounts.list();
      const rows = list.map(({ name, plan, creditsLeft }) => [
        name,
        plan ?? 'none',
        shownCredits(creditsLeft),
      ]);
      const empty = 'No accounts yet; account create NAME makes one.';
      return {
        kind: 'done',
        objects: list.map(recordOf),
        text: tableOf(['ACCOUNT', 'PLAN', 'CREDITS LEFT'], rows, empty),
      };
    }),
};

function planFrom(text: string): string | undefined {
  return text === 'none' ? undefined : text;
}

/** Underscores may group the digits, as in the config. */
function creditsFrom(text: string): number | undefined {
  if (!/^\d+(_\d+)*$/.test(text)) return undefined;
  const credits = Number(text.replaceAll('_', ''));
  return credits <= CREDITS_MAX ? credits : undefined;
}

/** A quarter of the safe integers: granted is spent plus left and must stay exact. */
const CREDITS_MAX = Math.floor(Number.MAX_SAFE_INTEGER / 4);

function recordOf({ name, plan, creditsLeft }: Account) {
  return { account: name, plan: plan ?? null, credits_left: creditsLeft ?? null };
}

function shownCredits(creditsLeft: number | undefined): string {
  return creditsLeft === undefined ? '-' : String(creditsLeft);
}

function outcomeOf({ config }: Books, name: string, result: AccountResult): Outcome {
  switch (result.kind) {
    case 'account': {
      const { plan, creditsLeft } = result.account;
      const left = creditsLeft === undefined ? '' : `, ${creditsLeft} credits left`;
      const what = plan === undefined ? 'no RPC plan' : `plan ${plan}`;
      const text = `Account ${name}: ${what}${left}.\n`;
      return { kind: 'done', objects: [recordOf(result.account)], text };
    }
    case 'bad-name':
      return failed('An account name is 1 to 64 printable characters without a space at either end.');
    case 'name-taken':
      return failed(`An account named "${name}" exists already.`);
    case 'unknown-account':
      return failed(unknownAccount(name));
    case 'unknown-plan':
      return failed(
        `There is no plan "${result.plan}"; choose ${[...config.plans.keys(), 'none'].join(', ')}.`,
      );
    case 'no-credits':
      return failed(
        result.plan === undefined
          ? `Account "${name}" has no RPC plan, so it has no credits to set.`
          : `Account "${name}" is on plan ${result.plan}, which has no credit limit to set.`,
      );
    default:
      return unreachable(result);
  }
}

/** The sentence for an account that is not there. */
export function unknownAccount(name: string): string {
  return `There is no account named "${name}"; account list shows them.`;
}

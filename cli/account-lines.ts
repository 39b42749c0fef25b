import type { Account } from '../deploys/accounts/account-row.ts';
import { type AccountResult, type AdditionResult, CREDITS_MAX } from '../deploys/accounts/accounts.ts';
import { unreachable } from '../shared/brand.ts';
import type { Config } from '../shared/config/config.ts';
import { failed, type Outcome } from './command.ts';

/** What an option or operand of credits wants to be; says so in a sentence that goes on. */
export const CREDITS_WANTED = 'wants a whole number of credits such as 250_000';

/** A number of credits, its digits grouped by underscores if wanted, as in the config; `undefined` for anything else. */
export function creditsFrom(text: string): number | undefined {
  if (!/^\d+(_\d+)*$/.test(text)) return undefined;
  const credits = Number(text.replaceAll('_', ''));
  return credits <= CREDITS_MAX ? credits : undefined;
}

export function recordOf({ name, plan, creditsLeft }: Account) {
  return { account: name, plan: plan ?? null, credits_left: creditsLeft ?? null };
}

/** The record of lists, and of what does more than create and set. */
export function fullRecordOf(account: Account) {
  return { ...recordOf(account), suspended: account.isSuspended };
}

/** The cells of a list. */
export function rowOf({ name, plan, creditsLeft, isSuspended }: Account): readonly string[] {
  const left = creditsLeft === undefined ? '-' : String(creditsLeft);
  return [name, plan ?? 'none', left, isSuspended ? 'suspended' : 'active'];
}

/** What a change of the account `name` came to; `record` is what it prints with `--json`. */
export function accountOutcome(
  config: Config,
  name: string,
  result: AdditionResult,
  record: (account: Account) => object = recordOf,
): Outcome {
  switch (result.kind) {
    case 'account':
      return { kind: 'done', objects: [record(result.account)], text: `${sentenceOf(result.account)}\n` };
    case 'added-before': {
      const before = `${result.credits} credits were added under this name before; nothing was added.`;
      const text = `${before}\n${sentenceOf(result.account)}\n`;
      return { kind: 'done', objects: [record(result.account)], text };
    }
    case 'bad-credits':
      return failed(`NUMBER ${CREDITS_WANTED}, at least 1.`);
    case 'bad-reason':
      return failed('A reason is 1 to 200 printable characters without a space at either end.');
    default:
      return refusalOf(config, name, result);
  }
}

function refusalOf(config: Config, name: string, result: Exclude<AccountResult, { kind: 'account' }>) {
  switch (result.kind) {
    case 'bad-name':
      return failed('An account name is 1 to 64 printable characters without a space at either end.');
    case 'name-taken':
      return failed(`An account named "${name}" exists already.`);
    case 'reserved-name':
      return failed(
        'The accounts demo and sluice-watcher are known by their names, which no other can have.',
      );
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

function sentenceOf({ name, plan, creditsLeft, isSuspended }: Account): string {
  const left = creditsLeft === undefined ? '' : `, ${creditsLeft} credits left`;
  const what = plan === undefined ? 'no RPC plan' : `plan ${plan}`;
  return `Account ${name}: ${what}${left}${isSuspended ? ', suspended' : ''}.`;
}

/** The sentence for an account that is not there. */
export function unknownAccount(name: string): string {
  return `There is no account named "${name}"; account list shows them.`;
}

import type { Account } from '../../deploys/accounts/account-row.ts';
import type { Accounts, AdditionResult } from '../../deploys/accounts/accounts.ts';
import { unreachable } from '../../shared/brand.ts';
import { plansInUse, requestReload } from '../../shared/keys/schema.ts';
import { type Books, COMMAND_LINE, onBooks, unknownAccount } from '../frame/books.ts';
import { type Command, done, failed, type Outcome } from '../frame/command.ts';
import { CREDITS_FORMAT, creditsFrom, listed } from '../frame/values.ts';

/** The plan of an account that is created without one. */
const DEFAULT_PLAN = 'trial';

export const accountCommands: readonly Command[] = [
  onBooks(
    'account create NAME --plan',
    `Create an account (default plan: ${DEFAULT_PLAN}); --plan none gives access to the program API only.`,
    (books, { operands: [name = ''], options }) => {
      const plan = planFrom(options.plan ?? DEFAULT_PLAN);
      const change = () => books.accounts.create(name, plan, COMMAND_LINE);
      return accountOutcome(books, name, withPlanRead(books, change, plan));
    },
    'create',
  ),
  onBooks('account list', 'List the accounts with plan, remaining credits and state.', ({ accounts }) =>
    listed(
      accounts.list(),
      fullRecordOf,
      ({ name, plan, creditsLeft, isSuspended }) => ({
        ACCOUNT: name,
        PLAN: plan ?? 'none',
        'CREDITS LEFT': String(creditsLeft ?? '-'),
        STATE: isSuspended ? 'suspended' : 'active',
      }),
      'No accounts yet. Create one with: account create NAME',
    ),
  ),
  onBooks(
    'account set NAME --plan --credits',
    'Change the plan of an account, or set its remaining credits.',
    (books, { operands: [name = ''], options: { plan, credits } }) => {
      if (plan === undefined && credits === undefined)
        return failed('account set requires --plan P or --credits N.');
      const creditsLeft = credits === undefined ? undefined : creditsFrom(credits);
      if (credits !== undefined && creditsLeft === undefined)
        return failed(`--credits ${CREDITS_FORMAT}, not "${credits}".`);
      const change = {
        ...(plan === undefined ? {} : { plan: { name: planFrom(plan) } }),
        ...(creditsLeft === undefined ? {} : { creditsLeft }),
      };
      const set = () => books.accounts.set(name, change, COMMAND_LINE);
      return accountOutcome(books, name, withPlanRead(books, set, change.plan?.name));
    },
  ),
  onBooks(
    'account add-credits NAME NUMBER --reason --once',
    'Add credits to an account and record the reason; a repeated --once adds nothing.',
    (books, { operands: [name = '', number = ''], options, world }) => {
      const credits = creditsFrom(number);
      if (credits === undefined) return failed(`NUMBER ${CREDITS_FORMAT}, not "${number}".`);
      if (options.reason === undefined) return failed('account add-credits requires --reason TEXT.');
      const once = options.once ?? Buffer.from(world.random(16)).toString('hex');
      const addition = { credits, reason: options.reason, once };
      return accountOutcome(
        books,
        name,
        books.accounts.addCredits(name, addition, COMMAND_LINE),
        fullRecordOf,
      );
    },
  ),
  plain('suspend', 'Suspend an account: its keys are rejected within a second, until it is resumed.'),
  plain('resume', 'Resume a suspended account: its keys work again within a second.'),
  onBooks(
    'account rename NAME NEW_NAME',
    'Rename an account; its keys, credits and usage are kept.',
    (books, { operands: [name = '', to = ''] }) => {
      const result = books.accounts.rename(name, to, COMMAND_LINE);
      return accountOutcome(books, result.kind === 'name-taken' ? to : name, result, fullRecordOf);
    },
  ),
];

function plain(verb: keyof Pick<Accounts, 'suspend' | 'resume'>, summary: string): Command {
  return onBooks(`account ${verb} NAME`, summary, (books, { operands: [name = ''] }) =>
    accountOutcome(books, name, books.accounts[verb](name, COMMAND_LINE), fullRecordOf),
  );
}

/**
 * Makes a change by which an account comes to a plan. Running apps may not have read a plan that no account was on: they are
 * asked to read the config again, or they would reject the account's keys.
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

function recordOf({ name, plan, creditsLeft }: Account) {
  return { account: name, plan: plan ?? null, credits_left: creditsLeft ?? null };
}

/** The record of lists, and of what does more than create and set. */
function fullRecordOf(account: Account) {
  return { ...recordOf(account), suspended: account.isSuspended };
}

/** The outcome of a change of the account `name`; `record` is what it prints with `--json`. */
function accountOutcome(
  { config }: Books,
  name: string,
  result: AdditionResult,
  record: (account: Account) => object = recordOf,
): Outcome {
  switch (result.kind) {
    case 'account':
      return done(sentenceOf(result.account), record(result.account));
    case 'added-before': {
      const before = `${result.credits} credits were already added with this --once value; nothing was added.`;
      return done(`${before}\n${sentenceOf(result.account)}`, record(result.account));
    }
    case 'bad-credits':
      return failed(`NUMBER ${CREDITS_FORMAT}, and at least 1.`);
    case 'bad-reason':
      return failed('A reason has 1 to 200 printable characters and no leading or trailing space.');
    case 'bad-name':
      return failed('An account name has 1 to 64 printable characters and no leading or trailing space.');
    case 'name-taken':
      return failed(`An account named "${name}" already exists.`);
    case 'reserved-name':
      return failed('The account names demo and sluice-watcher are reserved.');
    case 'unknown-account':
      return failed(unknownAccount(name));
    case 'unknown-plan': {
      const plans = [...config.plans.keys(), 'none'].join(', ');
      return failed(`Unknown plan "${result.plan}". Available plans: ${plans}.`);
    }
    case 'no-credits':
      return failed(
        result.plan === undefined
          ? `Account "${name}" has no RPC plan, so it has no credits.`
          : `Account "${name}" is on plan ${result.plan}, which has no credit limit.`,
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

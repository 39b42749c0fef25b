import { unreachable } from '../shared/brand.ts';
import { fileComplaint } from '../shared/store/private.ts';
import { argumentsFrom } from './arguments.ts';
import { type Command, failed, type Invocation, type Outcome, type World } from './command.ts';
import { accountCreate, accountList, accountSet } from './commands/account.ts';
import {
  accountAddCredits,
  accountRename,
  accountResume,
  accountSuspend,
} from './commands/account-changes.ts';
import { audit } from './commands/audit.ts';
import { configCheck, configReload } from './commands/config.ts';
import { keyCreate, keyList, keyRename, keyRevoke, keyRotate } from './commands/key.ts';
import { localnetUpgrade } from './commands/localnet.ts';
import { programsCheck } from './commands/programs.ts';
import { start } from './commands/start.ts';
import { usage } from './commands/usage.ts';
import {
  userCreate,
  userList,
  userRemove,
  userResetSecondFactor,
  userSetPassword,
  userSignOut,
  userUnlink,
} from './commands/user.ts';
import { verify } from './commands/verify.ts';
import {
  webhookCreate,
  webhookDelete,
  webhookEdit,
  webhookList,
  webhookPause,
  webhookResume,
} from './commands/webhook.ts';
import { webhookCancelRotation, webhookRotate, webhookSwitchSecret } from './commands/webhook-secret.ts';
import {
  webhookDeliveries,
  webhookResend,
  webhookResendFailed,
  webhookTest,
} from './commands/webhook-send.ts';
import { usageOf, usageOfCommand } from './usage.ts';

const COMMANDS: readonly Command[] = [
  start,
  accountCreate,
  accountList,
  accountSet,
  accountAddCredits,
  accountSuspend,
  accountResume,
  accountRename,
  keyCreate,
  keyList,
  keyRename,
  keyRevoke,
  keyRotate,
  userCreate,
  userList,
  userSetPassword,
  userResetSecondFactor,
  userSignOut,
  userUnlink,
  userRemove,
  webhookList,
  webhookCreate,
  webhookEdit,
  webhookPause,
  webhookResume,
  webhookDelete,
  webhookRotate,
  webhookSwitchSecret,
  webhookCancelRotation,
  webhookTest,
  webhookDeliveries,
  webhookResendFailed,
  webhookResend,
  usage,
  audit,
  configCheck,
  configReload,
  programsCheck,
  localnetUpgrade,
  verify,
];

/** Runs one command line and gives its exit code: 0, or 1 for every kind of failure. */
export async function run(world: World): Promise<number> {
  const read = argumentsFrom(world.argv, COMMANDS);
  switch (read.kind) {
    case 'help':
      world.out(read.command === undefined ? usageOf(COMMANDS) : usageOfCommand(read.command));
      return 0;
    case 'mistake': {
      const more = read.command === undefined ? '' : `${read.command.words} `;
      world.err(`${read.sentence} Try: bun run sluice ${more}--help\n`);
      return 1;
    }
    case 'command':
      return printed(await outcomeOf(read.command, { ...read, world }), read.json, world);
    default:
      return unreachable(read);
  }
}

/** What the command gives; what files and databases refuse it half-way is a sentence. */
async function outcomeOf(command: Command, invocation: Invocation): Promise<Outcome> {
  try {
    return await command.act(invocation);
  } catch (error) {
    return failed(fileComplaint(error));
  }
}

function printed(outcome: Outcome, json: boolean, { out, err }: World): number {
  switch (outcome.kind) {
    case 'done':
      out(json ? linesOf(outcome.objects) : outcome.text);
      return 0;
    case 'failed':
      if (json) out(linesOf(outcome.objects ?? []));
      err(outcome.lines.map((line) => `${line}\n`).join(''));
      return 1;
    case 'ended':
      return outcome.code;
    default:
      return unreachable(outcome);
  }
}

function linesOf(objects: readonly object[]): string {
  return objects.map((object) => `${JSON.stringify(object)}\n`).join('');
}

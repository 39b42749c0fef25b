import { unreachable } from '../shared/brand.ts';
import { fileComplaint } from '../shared/store/private.ts';
import {
  argumentsFrom,
  type Command,
  failed,
  type Invocation,
  type Outcome,
  usageOf,
  usageOfCommand,
  type World,
} from './frame/command.ts';
import { accountCommands } from './commands/account.ts';
import { configCommands } from './commands/config.ts';
import { keyCommands } from './commands/key.ts';
import { restore, takeOver } from './commands/restore.ts';
import { localnetUpgrade, programsCheck } from './commands/programs.ts';
import { start } from './commands/start.ts';
import { audit, usage } from './commands/usage.ts';
import { userCommands } from './commands/user.ts';
import { verify } from './commands/verify.ts';
import { webhookCommands } from './commands/webhook.ts';

const COMMANDS: readonly Command[] = [
  start,
  ...accountCommands,
  ...keyCommands,
  ...userCommands,
  ...webhookCommands,
  usage,
  audit,
  ...configCommands,
  restore,
  takeOver,
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
      return printed(
        await outcomeOf(read.command, { ...read, world }),
        read.options.json !== undefined,
        world,
      );
    default:
      return unreachable(read);
  }
}

/** Runs the command; a refusal of files or databases half-way becomes a sentence. */
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

const linesOf = (objects: readonly object[]) =>
  objects.map((object) => `${JSON.stringify(object)}\n`).join('');

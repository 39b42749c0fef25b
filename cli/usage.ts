import { type Command, type FlagOption, type ValueOption, VALUES } from './command.ts';

const PROGRAM = 'bun run sluice';

/** One line per command. */
export function usageOf(commands: readonly Command[]): string {
  const width = Math.max(...commands.map((command) => synopsis(command).length));
  const rows = commands.map((command) => `  ${synopsis(command).padEnd(width)}  ${command.summary}`);
  return [
    `Usage: ${PROGRAM} COMMAND`,
    '',
    ...rows,
    '',
    'Every command that reads a config takes --config FILE (default: sluice.toml, else the embedded default).',
    'With --json the answer is one JSON object, or one per line for a list.',
    '',
  ].join('\n');
}

/** The usage of one command. */
export function usageOfCommand(command: Command): string {
  const options = command.options.map(shownOption).join(' ');
  return `Usage: ${PROGRAM} ${synopsis(command)}\n\n${command.summary}\nOptions: ${options}\n`;
}

function synopsis({ words, operands, options }: Command): string {
  const own = options.filter((option) => option !== 'config' && option !== 'json');
  return [words, ...operands, ...own.map((option) => `[${shownOption(option)}]`)].join(' ');
}

function shownOption(option: ValueOption | FlagOption): string {
  return option === 'json' || option === 'operator' ? `--${option}` : `--${option} ${VALUES[option]}`;
}

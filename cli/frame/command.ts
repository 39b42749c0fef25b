import { parseArgs } from 'node:util';
import type { Clock } from '../../shared/clock.ts';
import type { Environment } from '../../shared/config/table.ts';

/** What a command may touch beside its own arguments; `main.ts` gives the real ones. */
export type World = Readonly<{
  argv: readonly string[];
  env: Environment;
  /** The folder of package.json. */
  root: string;
  clock: Clock;
  /** n uniform bytes. */
  random: (bytes: number) => Uint8Array;
  /** The first line of standard input, without its end; for passwords, which a list of processes must not show. */
  line: () => Promise<string>;
  out: (text: string) => void;
  /** Resolves when `out` has room for more, so that long answers are not held: false when nobody reads any more. */
  hasRoom: () => Promise<boolean>;
  err: (text: string) => void;
}>;

/** Options that take a value, with the value's name in usage texts. */
const VALUES = {
  config: 'FILE',
  plan: 'P',
  credits: 'N',
  name: 'TEXT',
  reason: 'TEXT',
  once: 'TEXT',
  grace: 'TIME',
  account: 'NAME',
  from: 'D',
  to: 'D',
  format: 'table|csv|ndjson',
  url: 'URL',
  programs: 'A,B|all',
  description: 'TEXT',
  'takes-over': 'now|1h|24h',
  since: 'TIME',
} as const;
type ValueOption = keyof typeof VALUES;
const VALUE_OPTIONS = Object.keys(VALUES) as ValueOption[]; // Object.keys forgets the keys' type

/** Options that are there or not. */
const FLAGS = ['json', 'operator', 'all'] as const;
type FlagOption = (typeof FLAGS)[number];

/** One call of a command, its arguments checked against the command's own list. */
export type Invocation = Readonly<{
  operands: readonly string[];
  values: Readonly<Partial<Record<ValueOption, string>>>;
  flags: ReadonlySet<FlagOption>;
  world: World;
}>;

export type Outcome =
  /** `objects` are printed one per line with `--json`, `text` otherwise. */
  | { readonly kind: 'done'; readonly objects: readonly object[]; readonly text: string }
  /** `lines` are whole sentences for stderr; `objects` are printed too with `--json`. */
  | { readonly kind: 'failed'; readonly lines: readonly string[]; readonly objects?: readonly object[] }
  /** The command has printed for itself and ends with this exit code. */
  | { readonly kind: 'ended'; readonly code: number };

/** One command of `sluice`. */
export type Command = Readonly<{
  /** As typed: `account create`. */
  words: string;
  /** As shown: `NAME` is needed, `[FILE]` is not. */
  operands: readonly string[];
  options: readonly (ValueOption | FlagOption)[];
  summary: string;
  act(invocation: Invocation): Outcome | Promise<Outcome>;
}>;

/**
 * A command by its usage: what is typed in lower case, operands in capitals, the options that it takes beside `--config` and
 * `--json`: `key create ACCOUNT --name`.
 */
export function command(usage: string, summary: string, act: Command['act']): Command {
  const words = usage.split(' ');
  const own = [...VALUE_OPTIONS, ...FLAGS].filter((option) => words.includes(`--${option}`));
  return {
    words: words.filter((word) => /^[a-z]/.test(word)).join(' '),
    operands: words.filter((word) => /^\[?[A-Z]/.test(word)),
    options: [...own, 'config', 'json'],
    summary,
    act,
  };
}

/** An outcome of one or more sentences on stderr and exit code 1. */
export function failed(...lines: string[]): Extract<Outcome, { kind: 'failed' }> {
  return { kind: 'failed', lines };
}

/** An outcome of one line of text, and of one object. */
export function done(text: string, object: object): Outcome {
  return { kind: 'done', objects: [object], text: `${text}\n` };
}

/** The command line as read: a command with its arguments, a wish for help, or what is wrong with it. */
type Arguments =
  | ({ readonly kind: 'command'; readonly command: Command } & Omit<Invocation, 'world'>)
  /** `command` is absent when help was asked for as a whole. */
  | { readonly kind: 'help'; readonly command?: Command }
  | { readonly kind: 'mistake'; readonly sentence: string; readonly command?: Command };

/** The words and options of a command line, before they are held against a command. */
type Read = Omit<Invocation, 'world' | 'operands'> & Readonly<{ words: readonly string[]; help: boolean }>;

/** Reads `argv` against `commands`. Pure: the same table gives the usage texts. */
export function argumentsFrom(argv: readonly string[], commands: readonly Command[]): Arguments {
  const read = readTokens(argv);
  if (typeof read === 'string') return { kind: 'mistake', sentence: read };
  const words = read.words[0] === 'help' ? read.words.slice(1) : read.words;
  const command = commands.find((each) => each.words.split(' ').every((word, i) => words[i] === word));
  if (read.help || read.words[0] === 'help') return command ? { kind: 'help', command } : { kind: 'help' };
  if (command === undefined) return { kind: 'mistake', sentence: unknownCommand(words, commands) };
  const operands = words.slice(command.words.split(' ').length);
  const sentence = mistakeIn(command, operands, read);
  if (sentence !== undefined) return { kind: 'mistake', sentence, command };
  return { kind: 'command', command, operands, values: read.values, flags: read.flags };
}

function mistakeIn(command: Command, operands: readonly string[], { values, flags }: Read) {
  const unknown = [...Object.keys(values), ...flags].find((name) => !command.options.some((o) => o === name));
  if (unknown !== undefined) return `${command.words} has no option --${unknown}.`;
  const missing = command.operands[operands.length];
  if (missing !== undefined && !missing.startsWith('[')) return `${command.words} requires ${missing}.`;
  const extra = operands[command.operands.length];
  return extra === undefined ? undefined : `Unexpected argument "${extra}" for ${command.words}.`;
}

/** Words and options in any order, or one sentence about the first option that cannot be read. */
function readTokens(argv: readonly string[]): Read | string {
  const { tokens } = parseArgs({
    args: [...argv],
    strict: false,
    tokens: true,
    allowPositionals: true,
    options: {
      help: { type: 'boolean', short: 'h' },
      ...Object.fromEntries(FLAGS.map((name) => [name, { type: 'boolean' } as const])),
      ...Object.fromEntries(VALUE_OPTIONS.map((name) => [name, { type: 'string' } as const])),
    },
  });
  const words: string[] = [];
  const values: Partial<Record<ValueOption, string>> = {};
  const flags = new Set<FlagOption>();
  let help = false;
  for (const token of tokens) {
    if (token.kind === 'positional') words.push(token.value);
    if (token.kind !== 'option') continue;
    const { name, rawName, value, inlineValue } = token;
    const flag = FLAGS.find((each) => each === name);
    const option = VALUE_OPTIONS.find((each) => each === name);
    if (name === 'help') help = true;
    else if (flag !== undefined) {
      if (value !== undefined) return `Option ${rawName} takes no value.`;
      flags.add(flag);
    } else if (option !== undefined) {
      if (value === undefined || value === '' || (!inlineValue && value.startsWith('-')))
        return `Option ${rawName} requires a value.`;
      if (values[option] !== undefined) return `Option ${rawName} was given more than once.`;
      values[option] = value;
    } else return `Unknown option ${rawName}.`;
  }
  return { words, values, flags, help };
}

function unknownCommand([first]: readonly string[], commands: readonly Command[]): string {
  if (first === undefined) return 'No command given.';
  const near = commands.filter(({ words }) => words.startsWith(`${first} `));
  if (near.length === 0) return `Unknown command "${first}".`;
  const next = near.map(({ words }) => words.slice(first.length + 1));
  return `"${first}" must be followed by one of: ${next.join(', ')}.`;
}

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
    'Commands that read a config accept --config FILE (default: sluice.toml if it exists, else the embedded default).',
    'With --json, the output is one JSON object, or one per line for lists.',
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
  return option in VALUES ? `--${option} ${VALUES[option as ValueOption]}` : `--${option}`; // the test says which
}

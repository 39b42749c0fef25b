import { parseArgs } from 'node:util';
import type { Clock } from '../../shared/clock.ts';
import type { Environment } from '../../shared/config/table.ts';

/** All that a command may touch beside its own arguments; `main.ts` gives the real ones. */
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

/** The options, with the name that the value of each has in usage texts; those without a name take no value. */
const OPTIONS = {
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
  json: '',
  operator: '',
  all: '',
  overwrite: '',
} as const;
type Option = keyof typeof OPTIONS;
const OPTION_NAMES = Object.keys(OPTIONS) as Option[]; // Object.keys forgets the keys' type

type Pair = readonly [address: string, file: string];

/** The option of pairs as usage texts show it. It may be given more than once. */
const PAIRED = '--account ADDRESS FILE';

/** One call of a command, its arguments checked against the command's own list. */
export type Invocation = Readonly<{
  operands: readonly string[];
  /** An option without a value is an empty text. */
  options: Readonly<Partial<Record<Option, string>>>;
  /** Each `--account ADDRESS FILE`, of a command that takes such pairs. */
  pairs: readonly Pair[];
  world: World;
}>;

export type Outcome =
  /** `objects` are printed one per line with `--json`, `text` otherwise. */
  | { readonly kind: 'done'; readonly objects: readonly object[]; readonly text: string }
  /** `lines` are whole sentences for stderr; `objects` are printed too with `--json`. */
  | { readonly kind: 'failed'; readonly lines: readonly string[]; readonly objects?: readonly object[] }
  /** The command has printed for itself and ends with this exit code. */
  | { readonly kind: 'ended'; readonly code: number };

export type Failed = Extract<Outcome, { kind: 'failed' }>;

/** One command of `sluice`. */
export type Command = Readonly<{
  /** As typed: `account create`. */
  words: string;
  /** As shown: `NAME` is needed, `[FILE]` is not. */
  operands: readonly string[];
  options: readonly Option[];
  /** Whether `--account` is followed by an address and a file, instead of by a name. */
  takesPairs?: boolean;
  summary: string;
  act(invocation: Invocation): Outcome | Promise<Outcome>;
}>;

/**
 * A command by its usage, such as `key create ACCOUNT --name`: words in lower case, operands in capitals, options of its own;
 * `--account...` takes pairs.
 */
export function command(usage: string, summary: string, act: Command['act']): Command {
  const words = usage.split(' ');
  return {
    takesPairs: words.includes('--account...'),
    words: words.filter((word) => /^[a-z]/.test(word)).join(' '),
    operands: words.filter((word) => /^\[?[A-Z]/.test(word)),
    options: [...OPTION_NAMES.filter((option) => words.includes(`--${option}`)), 'config', 'json'],
    summary,
    act,
  };
}

/** An outcome of one or more sentences on stderr and exit code 1. */
export function failed(...lines: string[]): Failed {
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

/** The words and options of a command line, before they are compared with a command. */
type Read = Pick<Invocation, 'options' | 'pairs'> & Readonly<{ words: readonly string[]; help: boolean }>;

/** Reads `argv` against `commands`. Pure: the same table gives the usage texts. */
export function argumentsFrom(argv: readonly string[], commands: readonly Command[]): Arguments {
  const read = readTokens(
    argv,
    commands.filter(({ takesPairs }) => takesPairs === true),
  );
  if (typeof read === 'string') return { kind: 'mistake', sentence: read };
  const { options, pairs } = read;
  const help = read.help || read.words[0] === 'help';
  const words = read.words[0] === 'help' ? read.words.slice(1) : read.words;
  const command = commands.find((each) => each.words.split(' ').every((word, i) => words[i] === word));
  if (help) return command ? { kind: 'help', command } : { kind: 'help' };
  if (command === undefined) return { kind: 'mistake', sentence: unknownCommand(words, commands) };
  const operands = words.slice(command.words.split(' ').length);
  const sentence = mistakeIn(command, operands, options);
  if (sentence !== undefined) return { kind: 'mistake', sentence, command };
  return { kind: 'command', command, operands, options, pairs };
}

function mistakeIn(command: Command, operands: readonly string[], options: Invocation['options']) {
  const unknown = Object.keys(options).find((name) => !command.options.some((option) => option === name));
  if (unknown !== undefined) return `${command.words} has no option --${unknown}.`;
  const missing = command.operands[operands.length];
  if (missing !== undefined && !missing.startsWith('[')) return `${command.words} requires ${missing}.`;
  const extra = operands[command.operands.length];
  return extra === undefined ? undefined : `Unexpected argument "${extra}" for ${command.words}.`;
}

/** Words and options in any order, or one sentence about the first option that cannot be read. */
function readTokens(argv: readonly string[], paired: readonly Command[]): Read | string {
  const known = OPTION_NAMES.map(
    (name) => [name, { type: takesValue(name) ? 'string' : 'boolean' }] as const,
  );
  const { tokens } = parseArgs({
    args: [...argv],
    strict: false,
    tokens: true,
    allowPositionals: true,
    options: { help: { type: 'boolean', short: 'h' }, ...Object.fromEntries(known) },
  });
  const words: string[] = [];
  const options: Partial<Record<Option, string>> = {};
  const pairs: Pair[] = [];
  // The word behind `--account ADDRESS` is its file where the others call a command that takes pairs.
  const follows = (index: number) => isAccount(tokens[index - 1]) && tokens[index]?.kind === 'positional';
  const [first] = tokens.flatMap((token, index) =>
    token.kind === 'positional' && !follows(index) ? [token.value] : [],
  );
  const takesPairs = paired.some((each) => each.words === first);
  let help = false;
  for (const [index, token] of tokens.entries()) {
    if (token.kind === 'positional' && !(takesPairs && follows(index))) words.push(token.value);
    if (token.kind !== 'option') continue;
    const { rawName, value = '', inlineValue } = token;
    const name = OPTION_NAMES.find((each) => each === token.name);
    if (takesPairs && isAccount(token)) {
      const file = tokens[index + 1];
      if (value === '' || file?.kind !== 'positional')
        return `Option ${rawName} requires an address and a file.`;
      pairs.push([value, file.value]);
    } else if (token.name === 'help') help = true;
    else if (name === undefined) return `Unknown option ${rawName}.`;
    else if (!takesValue(name)) {
      if (token.value !== undefined) return `Option ${rawName} takes no value.`;
      options[name] = '';
    } else {
      if (value === '' || (!inlineValue && value.startsWith('-')))
        return `Option ${rawName} requires a value.`;
      if (options[name] !== undefined) return `Option ${rawName} was given more than once.`;
      options[name] = value;
    }
  }
  return { words, options, pairs, help };
}

function isAccount(token: Readonly<{ kind: string; name?: string }> | undefined): boolean {
  return token?.kind === 'option' && token.name === 'account';
}

function takesValue(option: Option): boolean {
  return OPTIONS[option] !== '';
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
  const paired = command.takesPairs === true ? [PAIRED] : [];
  const options = [...paired, ...command.options.map(shownOption)].join(' ');
  return `Usage: ${PROGRAM} ${synopsis(command)}\n\n${command.summary}\nOptions: ${options}\n`;
}

function synopsis({ words, operands, options, takesPairs }: Command): string {
  const own = options.filter((option) => option !== 'config' && option !== 'json').map(shownOption);
  const paired = takesPairs === true ? [`[${PAIRED}]...`] : [];
  return [words, ...operands, ...paired, ...own.map((option) => `[${option}]`)].join(' ');
}

function shownOption(option: Option): string {
  return `--${option} ${OPTIONS[option]}`.trimEnd();
}

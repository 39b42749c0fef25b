import { parseArgs } from 'node:util';
import { type Command, type FlagOption, type ValueOption, VALUES } from './command.ts';

/** The command line as read: a command with its arguments, a wish for help, or what is wrong with it. */
export type Arguments =
  | {
      readonly kind: 'command';
      readonly command: Command;
      readonly operands: readonly string[];
      readonly values: Readonly<Partial<Record<ValueOption, string>>>;
      readonly json: boolean;
      readonly operator: boolean;
    }
  /** `command` is absent when help was asked for as a whole. */
  | { readonly kind: 'help'; readonly command?: Command }
  | { readonly kind: 'mistake'; readonly sentence: string; readonly command?: Command };

type Read = Readonly<{ words: readonly string[]; given: ReadonlyMap<string, string>; help: boolean }>;

const FLAGS: readonly FlagOption[] = ['json', 'operator'];

/** Reads `argv` against `commands`. Pure: the same table gives the usage texts. */
export function argumentsFrom(argv: readonly string[], commands: readonly Command[]): Arguments {
  const read = readTokens(argv);
  if (typeof read === 'string') return { kind: 'mistake', sentence: read };
  const asked = read.words[0] === 'help' ? read.words.slice(1) : read.words;
  const command = commands.find(({ words }) => words.split(' ').every((word, i) => asked[i] === word));
  if (read.help || read.words[0] === 'help') return command ? { kind: 'help', command } : { kind: 'help' };
  if (command === undefined) return { kind: 'mistake', sentence: unknownCommand(asked, commands) };
  return matched(command, asked.slice(command.words.split(' ').length), read.given);
}

function matched(
  command: Command,
  operands: readonly string[],
  given: ReadonlyMap<string, string>,
): Arguments {
  const mistake = (sentence: string): Arguments => ({ kind: 'mistake', sentence, command });
  for (const name of given.keys()) {
    if (!command.options.some((option) => option === name))
      return mistake(`${command.words} has no option --${name}.`);
  }
  const missing = command.operands[operands.length];
  if (missing !== undefined && !missing.startsWith('[')) return mistake(`${command.words} needs ${missing}.`);
  const extra = operands[command.operands.length];
  if (extra !== undefined) return mistake(`${command.words} does not know what to do with "${extra}".`);
  const values: Partial<Record<ValueOption, string>> = {};
  for (const name of valueOptions) {
    const value = given.get(name);
    if (value !== undefined) values[name] = value;
  }
  const [json, operator] = [given.has('json'), given.has('operator')];
  return { kind: 'command', command, operands, values, json, operator };
}

const valueOptions = Object.keys(VALUES) as ValueOption[]; // Object.keys forgets the keys' type

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
      ...Object.fromEntries(valueOptions.map((name) => [name, { type: 'string' } as const])),
    },
  });
  const words: string[] = [];
  const given = new Map<string, string>();
  let help = false;
  for (const token of tokens) {
    if (token.kind === 'positional') words.push(token.value);
    if (token.kind !== 'option') continue;
    const { name, rawName, value, inlineValue } = token;
    if (name === 'help') help = true;
    else if (FLAGS.some((flag) => flag === name)) {
      if (value !== undefined) return `Option ${rawName} takes no value.`;
      given.set(name, '');
    } else if (valueOptions.some((option) => option === name)) {
      if (value === undefined || value === '' || (!inlineValue && value.startsWith('-')))
        return `Option ${rawName} needs a value.`;
      if (given.has(name)) return `Option ${rawName} is given twice.`;
      given.set(name, value);
    } else return `There is no option ${rawName}.`;
  }
  return { words, given, help };
}

function unknownCommand(asked: readonly string[], commands: readonly Command[]): string {
  const [first] = asked;
  if (first === undefined) return 'A command is missing.';
  const near = commands.filter(({ words }) => words.startsWith(`${first} `));
  if (near.length === 0) return `There is no command "${first}".`;
  return `"${first}" needs one of: ${near.map(({ words }) => words.slice(first.length + 1)).join(', ')}.`;
}

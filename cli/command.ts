import type { Clock } from '../shared/clock.ts';
import type { Environment } from '../shared/config/table.ts';

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
  /** Resolves when what went to `out` has been taken, so that long answers are not held: false when nobody reads any more. */
  taken: () => Promise<boolean>;
  err: (text: string) => void;
}>;

/** Options that take a value, with the value's name in usage texts. */
export const VALUES = {
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
export type ValueOption = keyof typeof VALUES;
/** Options that are there or not. */
export type FlagOption = 'json' | 'operator';

/** One call of a command, its arguments checked against the command's own list. */
export type Invocation = Readonly<{
  operands: readonly string[];
  values: Readonly<Partial<Record<ValueOption, string>>>;
  json: boolean;
  operator: boolean;
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

/** An outcome of one or more sentences on stderr and exit code 1. */
export function failed(...lines: string[]): Extract<Outcome, { kind: 'failed' }> {
  return { kind: 'failed', lines };
}

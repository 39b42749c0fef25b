import { writeFileSync } from 'node:fs';
import { cpus, loadavg, release, totalmem } from 'node:os';
import { relative } from 'node:path';
import { parseArgs } from 'node:util';
import { systemClock } from '../../shared/clock.ts';
import { ROOT } from '../../test/started/process.ts';
import { tableOf } from '../table.ts';

/** An option of a bench: a number in a range, one of some names or a list of them, or a text. `value` stands for it in the help. */
type OwnOption = Readonly<{ value: string; help: string }> &
  (
    | Readonly<{ least: number; most: number; preset: number }>
    | Readonly<{ known?: readonly string[]; isList?: boolean; preset: string }>
  );

/** A script that measures this project. */
export type OwnBench = Readonly<{
  path: string;
  /** What it measures, for its help. */
  about: string;
  options?: Readonly<Record<string, OwnOption>>;
  /** What stands in the help for words without an option; none may be given without it. */
  operands?: string;
  /** A file for `--json` when none is named; `-` then writes none. */
  keptIn?: () => string;
  /** It is stopped after so long. */
  limitMs: (values: OwnValues) => number;
  /** `false`: a bar of its own was not met. It puts away what it started also when its signal fires. */
  measure: (run: OwnRun) => Promise<boolean | void>;
}>;

/** What the options of a run are. */
type OwnValues = Readonly<{
  number(name: string): number;
  text(name: string): string;
  /** The names of a list, in the order in which they are known; all of them when none was given. */
  list(name: string): readonly string[];
  operands: readonly string[];
}>;

export type OwnRun = OwnValues &
  Readonly<{
    signal: AbortSignal;
    /** Says on a terminal what is under way. */
    progress(what: string): void;
    /** Prints a table, the first row of which is its head, and keeps it for `--json`. */
    table(rows: readonly (readonly string[])[]): void;
    /** Prints a sentence, and keeps it likewise. */
    say(sentence: string): void;
    /** Keeps more for `--json`. */
    keep(more: object): void;
  }>;

type Kept = { tables: (readonly (readonly string[])[])[]; sentences: string[] };

/** Runs a bench as its command line says: with `--help` it says what it is, with `--json FILE` it writes its tables too. Gives the exit code. */
export async function runOwn(bench: OwnBench, argv: readonly string[]): Promise<number> {
  const read = valuesFrom(bench, argv);
  if (read.kind === 'help') {
    console.log(helpOf(bench));
    return 0;
  }
  if (read.kind === 'wrong') {
    console.error(`${read.sentence}\n\n${helpOf(bench)}`);
    return 2;
  }
  const kept: Kept = { tables: [], sentences: [] };
  const more = {};
  let isMet = true;
  const path = read.json ?? bench.keptIn?.();
  const isPrinted = path === '-' && bench.keptIn === undefined;
  // Standard output is the JSON's alone.
  const print = isPrinted ? console.error : console.log;
  const measured = async (signal: AbortSignal, progress: (what: string) => void) => {
    const table = (rows: readonly (readonly string[])[]) => {
      const shown = withoutNothing(rows);
      kept.tables.push(shown);
      progress('');
      print(tableOf(shown));
    };
    const say = (sentence: string) => {
      kept.sentences.push(sentence);
      progress('');
      print(sentence);
    };
    const keep = (each: object) => void Object.assign(more, each);
    isMet = (await bench.measure({ ...read.values, signal, progress, table, say, keep })) ?? true;
  };
  const code = await runBench(bench.path, bench.limitMs(read.values), measured, print);
  if (path !== undefined && (isPrinted || path !== '-')) {
    const { name, heading } = titleOf(bench.path);
    const at = new Date(systemClock.now()).toISOString();
    const all = { bench: name, at, heading, arguments: argv, ...kept, ...more };
    // A row of figures stays on a line.
    const text = `${JSON.stringify(all, undefined, 1).replace(/\[[\s\d.,e+-]+\]/g, (list) => list.replace(/\s+/g, ''))}\n`;
    if (isPrinted) await Bun.write(Bun.stdout, text);
    else writeFileSync(path, text);
    if (bench.keptIn !== undefined) print(`All figures: ${path}`);
  }
  return isMet ? code : 1;
}

/** Rows of a table without figures that are none: a row that has no other says so. */
function withoutNothing(rows: readonly (readonly string[])[]): readonly (readonly string[])[] {
  return rows.map((row) => {
    const [name = '', ...cells] = row;
    const isNothing = (cell: string) => /\bNaN\b/.test(cell);
    const isEmpty = cells.some(isNothing) && cells.every((cell) => cell === '' || isNothing(cell));
    return isEmpty ? [name, 'not measured'] : row.map((cell) => (isNothing(cell) ? '-' : cell));
  });
}

type Read =
  | Readonly<{ kind: 'run'; values: OwnValues; json: string | undefined }>
  | Readonly<{ kind: 'help' }>
  | Readonly<{ kind: 'wrong'; sentence: string }>;

export function valuesFrom({ options = {}, operands }: OwnBench, argv: readonly string[]): Read {
  const texts = Object.keys(options).map((name) => [name, { type: 'string' }] as const);
  const spec = { ...Object.fromEntries(texts), json: { type: 'string' }, help: { type: 'boolean' } } as const; // parseArgs reads the literal types
  try {
    const allowPositionals = operands !== undefined;
    const { values: given, positionals } = parseArgs({ args: [...argv], options: spec, allowPositionals });
    if (given.help === true) return { kind: 'help' };
    const values = new Map<string, string | number>();
    for (const [name, option] of Object.entries(options)) {
      const text = Object.entries(given).find(([each]) => each === name)?.[1];
      values.set(name, typeof text === 'string' ? valueOf(name, text, option) : option.preset);
    }
    const number = (name: string) => Number(values.get(name));
    const text = (name: string) => String(values.get(name));
    const list = (name: string) => {
      const option = options[name];
      const known = option !== undefined && 'known' in option ? (option.known ?? []) : [];
      return known.filter((each) => text(name) === '' || text(name).split(',').includes(each));
    };
    return { kind: 'run', values: { number, text, list, operands: positionals }, json: given.json };
  } catch (error) {
    return { kind: 'wrong', sentence: error instanceof Error ? error.message : String(error) };
  }
}

function valueOf(name: string, text: string, option: OwnOption): string | number {
  if ('least' in option) {
    const value = Number(text);
    if (text.trim() !== '' && value >= option.least && value <= option.most) return value;
    throw new Error(`--${name}: ${text} is not from ${option.least} to ${option.most}`);
  }
  const { known, isList = false } = option;
  const names = isList ? text.split(',').map((each) => each.trim()) : [text];
  const strange = known === undefined ? undefined : names.find((each) => !known.includes(each));
  if (strange !== undefined) throw new Error(`--${name}: "${strange}" is none of ${known?.join(', ')}`);
  return names.join();
}

function helpOf({ path, about, options = {}, operands, keptIn }: OwnBench): string {
  const own = Object.entries(options).map(([name, { value, help, preset }]) => {
    const note = preset === '' ? '' : ` (${preset})`;
    return [`  --${name} ${value}`, `${help}${note}`] as const;
  });
  const json =
    keptIn === undefined
      ? 'its tables as JSON too; - for standard output'
      : 'its figures as JSON; - for nowhere';
  const all = [...own, ['  --json FILE', json] as const];
  return [
    `Usage: bun ${relative(ROOT, path)} [OPTIONS]${operands === undefined ? '' : ` [${operands}]`}\n\n${about}\n`,
    ...all.map(([option, help]) => `${option.padEnd(20)} ${help}`),
  ].join('\n');
}

/**
 * Runs a bench to its end, to `limitMs` or to Ctrl-C, under a heading that says what was measured on what. Gives the
 * exit code: 1 when it was stopped. `run` is told by its signal, and puts away what it started either way.
 */
async function runBench(
  path: string,
  limitMs: number,
  run: (signal: AbortSignal, progress: (what: string) => void) => Promise<void>,
  print: (line: string) => void,
): Promise<number> {
  const { name, heading } = titleOf(path);
  print(`${heading}\nbun ${name}\n`);
  const end = new AbortController();
  let stopped: string | undefined;
  const stop = (why: string) => {
    if (!end.signal.aborted) stopped = why;
    end.abort();
  };
  process.once('SIGINT', () => stop('stopped'));
  process.once('SIGTERM', () => stop('stopped'));
  void systemClock.sleep(limitMs, end.signal).then(() => stop(`not done after ${limitMs / 1_000} s`));
  const startMs = systemClock.monotonic();
  const seconds = () => ((systemClock.monotonic() - startMs) / 1_000).toFixed(0);
  const progress = (what: string) =>
    void (process.stderr.isTTY && process.stderr.write(`\r\x1b[K${what && `${seconds()} s: ${what}`}`));
  const failure = await run(end.signal, progress).then(
    () => undefined,
    (error: unknown) => error,
  );
  progress('');
  if (stopped === undefined && failure !== undefined) throw failure;
  end.abort();
  if (stopped !== undefined) console.error(stopped);
  return stopped === undefined ? 0 : 1;
}

function titleOf(path: string): Readonly<{ name: string; heading: string }> {
  const git = ['git', 'describe', '--always', '--dirty=, with changes of its own'];
  const commit = Bun.spawnSync(git, { cwd: ROOT, stderr: 'ignore' }).stdout.toString().trim();
  const [cpu] = cpus();
  const heading =
    `${cpus().length} x ${cpu?.model.trim()}, ${(totalmem() / 2 ** 30).toFixed(0)} GiB, Linux ${release()}, ` +
    `load ${loadavg()[0]?.toFixed(2)} at the start\n` +
    `Bun ${Bun.version}, commit ${commit || 'unknown'}`;
  return { name: relative(ROOT, path), heading };
}

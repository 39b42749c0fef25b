import { parseArgs } from 'node:util';
import { SCENARIOS } from './scenarios.ts';

/** What a run times, from its command line. */
export type Options = Readonly<{
  /** Commits or checkouts of ours to compare with each other, the base first; none: this checkout or `--sluice`. */
  refs: readonly string[];
  sluice: string | undefined;
  scenarios: readonly string[];
  subjects: readonly string[];
  rounds: number;
  seconds: number;
  /** How far everything that is started goes before other processes: the negative of its niceness. */
  priority: number;
  json: string | undefined;
}>;

type Parsed =
  | { readonly kind: 'run'; readonly options: Options }
  | { readonly kind: 'help' }
  | { readonly kind: 'wrong'; readonly sentence: string };

const SCENARIO_NAMES = SCENARIOS.map(({ name }) => name);
const SUBJECT_NAMES = ['direct', 'nginx', 'nginx-lua', 'haproxy', 'fastify', 'sluice'];

export const HELP = `Usage: bun bench/self/compare.ts [OPTIONS] [REF_A REF_B ...]

Times Sluice and its peers in turn, in front of one scripted backend: the subject on one core, load and
backend on another. With REFs (commits, or paths of checkouts) these are timed instead of peers.

  --only A,B        ${SCENARIO_NAMES.join(', ')} (all)
  --subjects A,B    ${SUBJECT_NAMES.join(', ')} (all)
  --sluice PATH     the checkout that is started as sluice (this one)
  --rounds N        measurements of each, 1 to 100 (7)
  --seconds S       seconds of each, 0.2 to 60 (2); twice as many beside streams
  --priority N      0 to 20 (0); above 0 all that is started goes before other processes of the machine
  --json FILE       where all figures are written (bench/self/results/TIME.json; - for nowhere)
  --help            this text

Missing peers are installed with apt and npm, which needs root. CPU time is that of the process with its
threads and children, from /proc. Nothing is timed that answers wrongly.`;

/** Reads the arguments of bench/self/compare.ts. */
export function optionsFrom(args: readonly string[]): Parsed {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        only: { type: 'string' },
        subjects: { type: 'string' },
        sluice: { type: 'string' },
        rounds: { type: 'string', default: '7' },
        seconds: { type: 'string', default: '2' },
        priority: { type: 'string', default: '0' },
        json: { type: 'string' },
        help: { type: 'boolean', default: false },
      },
    });
    if (values.help) return { kind: 'help' };
    if (positionals.length === 1) throw new Error('two commits are compared, or none');
    if (positionals.length > 0 && values.sluice !== undefined)
      throw new Error('--sluice does not go with commits');
    const subjects = positionals.length > 0 && values.subjects === undefined ? 'sluice' : values.subjects;
    return {
      kind: 'run',
      options: {
        refs: positionals,
        sluice: values.sluice,
        scenarios: namesFrom(values.only, SCENARIO_NAMES, '--only'),
        subjects: namesFrom(subjects, SUBJECT_NAMES, '--subjects'),
        rounds: Math.floor(numberFrom(values.rounds, 1, 100, '--rounds')),
        seconds: numberFrom(values.seconds, 0.2, 60, '--seconds'),
        priority: numberFrom(values.priority, 0, 20, '--priority'),
        json: values.json,
      },
    };
  } catch (error) {
    return { kind: 'wrong', sentence: error instanceof Error ? error.message : String(error) };
  }
}

/** Names of a list after commas, in the order of `known`; all when there is no list. */
function namesFrom(list: string | undefined, known: readonly string[], option: string): readonly string[] {
  if (list === undefined) return known;
  const names = list.split(',').map((name) => name.trim());
  const strange = names.find((name) => !known.includes(name));
  if (strange !== undefined) throw new Error(`${option}: "${strange}" is none of ${known.join(', ')}`);
  return known.filter((name) => names.includes(name));
}

function numberFrom(text: string, least: number, most: number, option: string): number {
  const value = Number(text);
  if (!(value >= least && value <= most))
    throw new Error(`${option}: ${text} is not from ${least} to ${most}`);
  return value;
}

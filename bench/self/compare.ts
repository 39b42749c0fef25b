import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../shared/clock.ts';
import { ROOT } from '../../test/started/process.ts';
import { PEERS, type Subject } from './compare/peers.ts';
import { keptOf, markdownOf } from './compare/results.ts';
import { createPool, prepareWorld, timeScenario } from './compare/rounds.ts';
import { needsOf, SCENARIOS } from './compare/scenarios.ts';
import { checkoutOf, sluiceSubject } from './compare/sluice.ts';
import { type OwnBench, type OwnRun, runOwn } from './report.ts';

const LIMIT_MS = 3_600_000;
const SCENARIO_NAMES = SCENARIOS.map(({ name }) => name);
const SUBJECT_NAMES = ['direct', ...Object.keys(PEERS), 'sluice'];

/** The backend without anything in front: what the machine, the load and the backend allow. */
const DIRECT: Subject = {
  name: 'direct',
  version: 'the backend itself',
  checks: 'nothing',
  lacks: '',
  start: async ({ backends }) => ({ port: backends[0] ?? 0, pid: 0, async [Symbol.asyncDispose]() {} }),
};

export const BENCH: OwnBench = {
  path: import.meta.path,
  about: `Times Sluice and its peers in turn, in front of one scripted backend: the subject on one core, load and backend on
another. With commits, or paths of checkouts, these are timed, the base first, and no peers but those of --subjects.
Scenarios: ${SCENARIO_NAMES.join(', ')}. Subjects: ${SUBJECT_NAMES.join(', ')}.

Missing peers are installed with apt and npm, which needs root. CPU time is that of the process with its threads
and children, from /proc. Nothing is timed that answers wrongly.`,
  options: {
    only: { value: 'A,B', help: 'scenarios; all', known: SCENARIO_NAMES, isList: true, preset: '' },
    subjects: { value: 'A,B', help: 'all', known: SUBJECT_NAMES, isList: true, preset: '' },
    rounds: { value: 'N', help: 'measurements of each, 1 to 100', least: 1, most: 100, preset: 7 },
    seconds: {
      value: 'S',
      help: 'of each, 0.2 to 60; twice as many beside streams',
      least: 0.2,
      most: 60,
      preset: 2,
    },
    priority: {
      value: 'N',
      help: 'above 0 all that is started goes before others, to 20',
      least: 0,
      most: 20,
      preset: 0,
    },
  },
  operands: 'REF ...',
  keptIn() {
    const folder = join(ROOT, 'bench/self/results');
    mkdirSync(folder, { recursive: true });
    return join(folder, `${new Date(systemClock.now()).toISOString().slice(0, 16).replace(':', '')}.json`);
  },
  limitMs: () => LIMIT_MS,
  measure,
};

if (import.meta.main) process.exit(await runOwn(BENCH, process.argv.slice(2)));

async function measure(run: OwnRun): Promise<boolean> {
  const { number, list, operands, signal, say, keep } = run;
  await using stack = new AsyncDisposableStack();
  const wanted = list('only');
  const scenarios = SCENARIOS.filter(({ name }) => wanted.includes(name));
  const world = await prepareWorld(needsOf(scenarios), number('priority'), stack);
  const subjects = await subjectsOf(run, world.folder, stack);
  const pool = stack.use(createPool(world));
  const timing = { world, rounds: Math.floor(number('rounds')), seconds: number('seconds'), signal };
  const kept: Record<string, unknown> = {};
  for (const scenario of scenarios) {
    const own = subjects.filter(({ name }) => scenario.subjects?.test(name) ?? true);
    const rows = await timeScenario(scenario, own, pool, timing);
    console.log(markdownOf(scenario, rows, operands.length > 0 ? 'sluice A' : scenario.base));
    kept[scenario.name] = keptOf(rows);
  }
  for (const { name, version, lacks } of subjects)
    say(`- ${name}: ${version}${lacks && `. Without: ${lacks}`}`);
  keep({ rounds: timing.rounds, seconds: timing.seconds, scenarios: kept });
  return true;
}

async function subjectsOf(
  { text, list, operands, signal }: OwnRun,
  folder: string,
  stack: AsyncDisposableStack,
) {
  const subjects: Subject[] = [];
  const isOwn = operands.length > 0 && text('subjects') === '';
  for (const name of isOwn ? ['sluice'] : list('subjects')) {
    if (name === 'direct') subjects.push(DIRECT);
    const peer = PEERS[name];
    if (peer !== undefined) subjects.push(await peer());
    if (name !== 'sluice') continue;
    const refs = operands.length > 0 ? operands : [ROOT];
    for (const [i, ref] of refs.entries()) {
      const checkout = stack.use(await checkoutOf(ref, folder, signal));
      const letter = refs.length > 1 ? ` ${String.fromCharCode(65 + i)}` : '';
      subjects.push(sluiceSubject(`sluice${letter}`, checkout));
    }
  }
  return subjects;
}

import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus, release } from 'node:os';
import { dirname, join } from 'node:path';
import { systemClock } from '../../shared/clock.ts';
import { ROOT } from '../../test/started/process.ts';
import { HELP, type Options, optionsFrom } from './compare/options.ts';
import { PEERS, type Subject } from './compare/peers.ts';
import { keptOf, markdownOf } from './compare/results.ts';
import { createPool, prepareWorld, timeScenario } from './compare/rounds.ts';
import { needsOf, SCENARIOS } from './compare/scenarios.ts';
import { type Checkout, checkoutOf, sluiceSubject } from './compare/sluice.ts';
import { runBench } from './report.ts';

const LIMIT_MS = 3_600_000;

async function compare(options: Options, signal: AbortSignal): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const scenarios = SCENARIOS.filter(({ name }) => options.scenarios.includes(name));
  const world = await prepareWorld(needsOf(scenarios), options.priority, stack);
  const subjects = await subjectsOf(options, world.folder, stack, signal);
  const pool = stack.use(createPool(world));
  const { rounds, seconds } = options;
  const kept: Record<string, unknown> = {};
  for (const scenario of scenarios) {
    const own = subjects.filter(({ name }) => scenario.subjects?.test(name) ?? true);
    const rows = await timeScenario(scenario, own, pool, { world, rounds, seconds, signal });
    console.log(markdownOf(scenario, rows, options.refs.length > 0 ? 'sluice A' : scenario.base));
    kept[scenario.name] = keptOf(rows);
  }
  for (const { name, version, lacks } of subjects)
    console.log(`- ${name}: ${version}${lacks && `. Without: ${lacks}`}`);
  keep(options.json, {
    subjects: subjects.map(({ name, version }) => ({ name, version })),
    rounds,
    seconds,
    scenarios: kept,
  });
}

async function subjectsOf(
  options: Options,
  folder: string,
  stack: AsyncDisposableStack,
  signal: AbortSignal,
) {
  const subjects: Subject[] = [];
  for (const name of options.subjects) {
    if (name === 'direct') subjects.push(DIRECT);
    const peer = PEERS[name];
    if (peer !== undefined) subjects.push(await peer());
    if (name !== 'sluice') continue;
    const checkouts: Checkout[] = [];
    for (const ref of options.refs.length > 0 ? options.refs : [options.sluice ?? ROOT]) {
      checkouts.push(stack.use(await checkoutOf(ref, folder, signal)));
    }
    const letter = (i: number) => (checkouts.length > 1 ? ` ${String.fromCharCode(65 + i)}` : '');
    for (const [i, checkout] of checkouts.entries())
      subjects.push(sluiceSubject(`sluice${letter(i)}`, checkout));
  }
  return subjects;
}

/** The backend without anything in front: what the machine, the load and the backend allow. */
const DIRECT: Subject = {
  name: 'direct',
  version: 'the backend itself',
  checks: 'nothing',
  lacks: '',
  start: async ({ backends }) => ({ port: backends[0] ?? 0, pid: 0, async [Symbol.asyncDispose]() {} }),
};

/** Writes all figures of a run to the file `json`; without a name, to one named by the time; for `-`, nowhere. */
function keep(json: string | undefined, results: object): void {
  if (json === '-') return;
  const at = new Date(systemClock.now()).toISOString();
  const path = json ?? join(ROOT, `bench/self/results/${at.slice(0, 16).replace(':', '')}.json`);
  const machine = `${cpus().length} x ${cpus()[0]?.model.trim()}, Linux ${release()}`;
  mkdirSync(dirname(path), { recursive: true });
  const text = JSON.stringify({ at, machine, ...results }, undefined, 1);
  // The rounds of a figure stay on a line.
  writeFileSync(path, `${text.replace(/\[[\s\d.,e+-]+\]/g, (list) => list.replace(/\s+/g, ''))}\n`);
  console.log(`\nAll figures: ${path}`);
}

if (import.meta.main) {
  const parsed = optionsFrom(process.argv.slice(2));
  if (parsed.kind === 'run')
    process.exit(await runBench(import.meta.path, LIMIT_MS, (signal) => compare(parsed.options, signal)));
  if (parsed.kind === 'help') console.log(HELP);
  else console.error(`${parsed.sentence}\n\n${HELP}`);
  process.exit(parsed.kind === 'help' ? 0 : 2);
}

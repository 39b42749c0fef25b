import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, release, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { systemClock } from '../shared/clock.ts';
import { ROOT } from '../test/started/process.ts';
import { compile, LOAD_CORE, startChild } from './compare/machine.ts';
import { HELP, type Options, optionsFrom } from './compare/options.ts';
import { PEERS, type Subject } from './compare/peers.ts';
import { keptOf, markdownOf } from './compare/results.ts';
import { createPool, timeScenario } from './compare/rounds.ts';
import { needsOf, SCENARIOS } from './compare/scenarios.ts';
import { type Checkout, checkoutOf, sluiceSubject, writeKeys } from './compare/sluice.ts';
import { keyAt } from './many-keys.ts';
import { runBench } from './report.ts';

const LIMIT_MS = 3_600_000;
const BACKEND_PORTS = /^(\d+(?: \d+)*)\n/;

async function compare(options: Options, signal: AbortSignal): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), 'sluice-compare-'));
  stack.defer(() => rmSync(folder, { recursive: true, force: true }));
  await compile(folder);
  const scenarios = SCENARIOS.filter(({ name }) => options.scenarios.includes(name));
  const needs = needsOf(scenarios);
  const keys = join(folder, 'keys');
  writeKeys(keys, needs.keys);
  const backend = await startChild({
    command: [join(folder, 'backend'), String(needs.backends)],
    cores: LOAD_CORE,
    cwd: folder,
    priority: options.priority,
    ready: BACKEND_PORTS,
  });
  stack.use(backend);
  const subjects = await subjectsOf(options, folder, stack, signal);
  const ports = backend.line.split(' ').map(Number);
  const checkKeys = { paid: keyAt(1), slow: keyAt(needs.keys + 1), spent: keyAt(needs.keys + 2) };
  const world = { folder, keys, checkKeys, ports, priority: options.priority };
  const pool = stack.use(createPool(world));
  const { rounds, seconds } = options;
  const kept: Record<string, unknown> = {};
  for (const scenario of scenarios) {
    const own = subjects.filter(({ name }) => scenario.subjects?.test(name) ?? true);
    const rows = await timeScenario(scenario, own, {
      world,
      pool,
      rounds,
      seconds,
      signal,
    });
    console.log(markdownOf(scenario, rows, options.refs.length > 0 ? 'sluice A' : scenario.base));
    kept[scenario.name] = keptOf(rows);
  }
  for (const { name, version, lacks } of subjects)
    console.log(`- ${name}: ${version}${lacks && `. Without: ${lacks}`}`);
  keep(options, {
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

function keep({ json }: Options, results: object): void {
  if (json === '-') return;
  const at = new Date(systemClock.now()).toISOString();
  const path = json ?? join(ROOT, `bench/results/${at.slice(0, 16).replace(':', '')}.json`);
  const machine = `${cpus().length} x ${cpus()[0]?.model.trim()}, Linux ${release()}`;
  mkdirSync(dirname(path), { recursive: true });
  const text = JSON.stringify({ at, machine, ...results }, undefined, 1);
  // The rounds of a figure stay on a line.
  writeFileSync(path, `${text.replace(/\[[\s\d.,e+-]+\]/g, (list) => list.replace(/\s+/g, ''))}\n`);
  console.log(`\nAll figures: ${path}`);
}

if (import.meta.main) {
  const parsed = optionsFrom(process.argv.slice(2));
  if (parsed.kind === 'run') {
    process.exit(await runBench(import.meta.path, LIMIT_MS, (signal) => compare(parsed.options, signal)));
  }
  if (parsed.kind === 'help') console.log(HELP);
  else console.error(`${parsed.sentence}\n\n${HELP}`);
  process.exit(parsed.kind === 'help' ? 0 : 2);
}

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../../shared/clock.ts';
import { type CheckKeys, wrongAnswers } from './checks.ts';
import { keyAt } from '../many-keys.ts';
import {
  compile,
  familyCpuSeconds,
  familyDelaySeconds,
  familyMegabytes,
  LOAD_CORE,
  run,
  startChild,
} from './machine.ts';
import type { Running, Subject } from './peers.ts';
import type { Load, Scenario, Variant } from './scenarios.ts';
import { writeKeys } from './sluice.ts';

/** What all subjects of a run share: the folder with the programs, the keys, the backend's ports, and how far all goes before other processes. */
type World = Readonly<{
  folder: string;
  keys: string;
  checkKeys: CheckKeys;
  ports: readonly number[];
  priority: number;
}>;

const BACKEND_PORTS = /^(\d+(?: \d+)*)\n/;

/** Builds the programs, writes the keys and starts the backend; `stack` ends and removes them. */
export async function prepareWorld(
  needs: Readonly<{ keys: number; backends: number }>,
  priority: number,
  stack: AsyncDisposableStack,
): Promise<World> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-compare-'));
  stack.defer(() => rmSync(folder, { recursive: true, force: true }));
  await compile(folder);
  const keys = join(folder, 'keys');
  writeKeys(keys, needs.keys);
  const backend = await startChild({
    command: [join(folder, 'backend'), String(needs.backends)],
    cores: LOAD_CORE,
    cwd: folder,
    priority,
    ready: BACKEND_PORTS,
  });
  stack.use(backend);
  const ports = backend.line.split(' ').map(Number);
  const checkKeys = { paid: keyAt(1), slow: keyAt(needs.keys + 1), spent: keyAt(needs.keys + 2) };
  return { folder, keys, checkKeys, ports, priority };
}

/** Figures of one measurement by name; the names are those of `COLUMNS` in results.ts. */
type Figures = Readonly<Record<string, number>>;

/** A subject in a variant of a scenario, with the figures of every round. */
export type Row = Readonly<{ subject: string; variant: string; rounds: readonly Figures[] }>;

/** A started subject in a variant, with the figures of its rounds so far. */
type Case = Readonly<{
  subject: Pick<Subject, 'name'>;
  variant: Variant;
  running: Running;
  rounds: Figures[];
}>;

/** For streams to find their pace before calls are timed, and to outlast them. */
const STREAM_LEAD_SECONDS = 0.5;
const BESIDE_CONNECTIONS = 32;
/** For a compiler at run time to see what is common. */
const WARM_UP_SECONDS = 1;
const KEYS_WARMED_PER_SECOND = 5_000;
const STREAM_BYTES = 1_000_000_000_000;

/** Started subjects by what they were started for, each checked before it is used. */
type Pool = Readonly<{ take(subject: Subject, variant: Variant): Promise<Running> }> & AsyncDisposable;

/** Starts subjects when they are first needed and keeps them to the end. */
export function createPool(world: World): Pool {
  const started = new Map<string, Running>();
  return {
    async take(subject, { backends, processes }) {
      const name = `${subject.name}-${backends}-${processes}`;
      const known = started.get(name);
      if (known !== undefined) return known;
      const folder = join(world.folder, name);
      mkdirSync(folder);
      const ports = world.ports.slice(0, backends);
      const running = await subject.start({
        folder,
        backends: ports,
        keys: world.keys,
        processes,
        priority: world.priority,
      });
      started.set(name, running);
      const wrong = await wrongAnswers(subject, running, world.ports[0] ?? 0, world.checkKeys);
      if (wrong.length > 0)
        throw new Error(`${subject.name} is not timed, it answers wrongly:\n${wrong.join('\n')}`);
      return running;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([...started.values()].map((running) => running[Symbol.asyncDispose]()));
    },
  };
}

type Timing = Readonly<{ world: World; rounds: number; seconds: number; signal: AbortSignal }>;

/** Times every subject in every variant of `scenario`, one after the other within a round, each round in another order. */
export async function timeScenario(
  scenario: Scenario,
  subjects: readonly Subject[],
  pool: Pool,
  { world, rounds, seconds, signal }: Timing,
): Promise<readonly Row[]> {
  const cases: Case[] = [];
  for (const subject of subjects) {
    for (const variant of scenario.variants) {
      const running = await pool.take(subject, variant);
      signal.throwIfAborted();
      cases.push({ subject, variant, running, rounds: [] });
    }
  }
  for (const one of cases) await measure(one, world, warmUpSeconds(one.variant.load), signal);
  for (let round = 0; round < rounds; round++) {
    for (const one of turned(cases, round)) one.rounds.push(await measure(one, world, seconds, signal));
    console.error(`  ${scenario.name}: round ${round + 1} of ${rounds}`);
  }
  return cases.map(({ subject, variant, ...rest }) => ({
    subject: subject.name,
    variant: variant.label,
    rounds: rest.rounds,
  }));
}

/** Long enough for some calls under each key: what a key's first call costs is not what is timed. */
function warmUpSeconds(load: Load): number {
  return WARM_UP_SECONDS + (load.kind === 'calls' ? load.keys / KEYS_WARMED_PER_SECOND : 0);
}

async function measure(one: Case, world: World, seconds: number, signal: AbortSignal): Promise<Figures> {
  const { running, variant } = one;
  const cpuBefore = familyCpuSeconds(running.pid);
  const delayBefore = familyDelaySeconds(running.pid);
  const startedMs = systemClock.monotonic();
  const run: LoadRun = (kind, ...args) => runLoad(world, signal, kind, running.port, args);
  const figures = await offer(variant.load, run, seconds, signal).catch((error: unknown) => {
    throw new Error(`${one.subject.name}, ${variant.label || 'as it is'}: ${error}`, { cause: error });
  });
  const wallSeconds = (systemClock.monotonic() - startedMs) / 1_000;
  const isProcess = running.pid !== 0;
  const cpuSeconds = isProcess ? familyCpuSeconds(running.pid) - cpuBefore : Number.NaN;
  const { calls = Number.NaN, bytes = Number.NaN, ...rest } = figures;
  return {
    ...rest,
    cpuUs: (1e6 * cpuSeconds) / calls,
    cpuPerGb: (1e9 * cpuSeconds) / bytes,
    busy: cpuSeconds / wallSeconds,
    delayed: isProcess ? (familyDelaySeconds(running.pid) - delayBefore) / wallSeconds : Number.NaN,
    rssMb: isProcess ? familyMegabytes(running.pid) : Number.NaN,
  };
}

/** Runs load.c with a subject's port and the keys, and what its head says of these arguments; gives what it prints. */
type LoadRun = (
  kind: 'calls' | 'streams',
  ...args: readonly (string | number)[]
) => Promise<Record<string, number>>;

async function runLoad(
  { folder, keys, priority }: World,
  signal: AbortSignal,
  kind: string,
  port: number,
  args: readonly (string | number)[],
): Promise<Record<string, number>> {
  const words = [kind, port, keys, ...args].map(String);
  const command = ['taskset', '-c', LOAD_CORE, join(folder, 'load'), ...words];
  return JSON.parse(await run(command, { signal, timeoutMs: 60_000, priority }));
}

async function offer(load: Load, run: LoadRun, seconds: number, signal: AbortSignal): Promise<Figures> {
  switch (load.kind) {
    case 'calls':
      return called(await run('calls', load.keys, load.connections, seconds, 0, load.body));
    case 'scan': {
      const { bytes = 0, seconds: took = 0, whole } = await run('streams', 1, 0, 0, load.bytes, load.framing);
      if (whole !== 1) throw new Error(`the scan ended after ${bytes} bytes`);
      return { bytes, mbPerSecond: bytes / 1e6 / took };
    }
    case 'beside': {
      const { streams, pace, perSecond } = load;
      // The tail of so few calls needs a longer look.
      const lookSeconds = 2 * seconds;
      const lasting = lookSeconds + 2 * STREAM_LEAD_SECONDS;
      const streaming =
        streams > 0 ? run('streams', streams, lasting, pace, STREAM_BYTES, 'length') : undefined;
      streaming?.catch(() => {}); // awaited below, where its failure counts
      if (streaming !== undefined) await systemClock.sleep(1_000 * STREAM_LEAD_SECONDS, signal);
      const calls = await run('calls', 1, BESIDE_CONNECTIONS, lookSeconds, perSecond, 'slot');
      const { calls: _, ...figures } = called(calls);
      const { bytes = 0, seconds: took = 1 } = (await streaming) ?? {};
      return { ...figures, mbPerSecond: bytes / 1e6 / took };
    }
  }
}

/** The figures of calls, all of which must have been answered rightly. */
function called({ calls = 0, errors = 0, seconds = 0, ...latencies }: Record<string, number>): Figures {
  if (errors > 0 || calls === 0)
    throw new Error(`${errors} of ${calls} calls were answered wrongly or not at all`);
  return { calls, callsPerSecond: calls / seconds, ...latencies };
}

/** The cases in another order each round: begun one further, and every other time backwards. */
function turned<T>(cases: readonly T[], round: number): readonly T[] {
  const first = round % cases.length;
  const copy = [...cases.slice(first), ...cases.slice(0, first)];
  return round % 2 === 0 ? copy : copy.toReversed();
}

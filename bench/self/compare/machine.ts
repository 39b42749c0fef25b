import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, homedir, setPriority } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../../shared/clock.ts';
import { childEnv } from '../../../test/started/process.ts';
import { cpuSecondsOf, memoryOf } from '../proc.ts';

/** The subject has the first core for itself; load and backend share the second. */
export const SUBJECT_CORE = '0';
export const LOAD_CORE = '1';

const HERE = import.meta.dir;
const START_MS = 30_000;

/** A child process that ends with this one, however this one ends. */
type Child = Readonly<{
  pid: number;
  line: string;
  /** Rejects when it ends by itself, with what it wrote. */
  ended: Promise<never>;
}> &
  AsyncDisposable;

type Spawned = Readonly<{
  command: readonly string[];
  cores: string;
  cwd: string;
  env?: Record<string, string>;
  priority: number;
  /** What its first telling line on standard output looks like; without it nothing is waited for. */
  ready?: RegExp;
}>;

/** Starts a program on `cores` and waits until it is ready; throws with what it wrote when it ends before. */
export async function startChild({
  command,
  cores,
  cwd,
  env = {},
  priority,
  ready,
}: Spawned): Promise<Child> {
  const child = Bun.spawn(['setpriv', '--pdeathsig', 'KILL', 'taskset', '-c', cores, ...command], {
    cwd,
    env: childEnv(env),
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'pipe',
    detached: true,
  });
  prefer(child.pid, priority);
  const errors = child.stderr.text();
  let isWanted = true;
  const ended = child.exited.then(async (code): Promise<never> => {
    if (!isWanted) return new Promise(() => {});
    throw new Error(`${command[0]} ended with ${code}: ${await errors}`);
  });
  ended.catch(() => {}); // whoever waits for it hears of it
  const line = ready === undefined ? '' : await firstLine(child.stdout, ready);
  if (line === undefined) {
    child.kill('SIGKILL');
    throw new Error(`${command[0]} did not start: ${await errors}`);
  }
  return {
    pid: child.pid,
    line,
    ended,
    async [Symbol.asyncDispose]() {
      isWanted = false;
      const family = familyOf(child.pid);
      child.kill('SIGKILL');
      await child.exited;
      for (const pid of family.slice(1)) if (existsSync(`/proc/${pid}`)) process.kill(pid, 'SIGKILL');
    },
  };
}

/** Runs a program to its end and gives its standard output; throws when it fails. */
export async function run(
  command: readonly string[],
  options: Readonly<{ cwd?: string; signal?: AbortSignal; timeoutMs?: number; priority?: number }> = {},
): Promise<string> {
  const child = Bun.spawn([...command], {
    cwd: options.cwd ?? HERE,
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
    timeout: options.timeoutMs ?? START_MS,
    detached: true,
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  });
  prefer(child.pid, options.priority ?? 0);
  const [code, output, errors] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()]);
  options.signal?.throwIfAborted();
  if (code !== 0) throw new Error(`${command.slice(0, 3).join(' ')} failed: ${errors || output}`);
  return output;
}

/**
 * Has a process that leads its session go before others by `priority` steps of niceness. Where the kernel groups
 * processes by session, niceness counts within a group alone, and groups have one of their own (sched(7)).
 */
function prefer(pid: number, priority: number): void {
  if (priority === 0) return;
  setPriority(pid, -priority);
  const group = `/proc/${pid}/autogroup`;
  if (existsSync(group)) writeFileSync(group, String(-priority));
}

/** Builds backend and load generator into `folder`. */
export async function compile(folder: string): Promise<void> {
  await install({ cc: 'gcc libc6-dev' });
  for (const name of ['backend', 'load']) {
    await run(['cc', '-O2', '-o', join(folder, name), join(HERE, `${name}.c`)]);
  }
}

/** Installs the packages of those programs that are missing. */
export async function install(programs: Readonly<Record<string, string>>): Promise<void> {
  const missing = Object.entries(programs).filter(
    ([program]) => Bun.which(program) === null && !existsSync(program),
  );
  if (missing.length === 0) return;
  const packages = missing.flatMap(([, names]) => names.split(' '));
  console.error(`installing ${packages.join(' ')}`);
  await run(['apt-get', 'update', '-q'], { timeoutMs: 120_000 });
  await run(['apt-get', 'install', '-qy', '--no-install-recommends', ...packages], { timeoutMs: 300_000 });
}

/** The folder of the npm packages of a peer, installed once and kept between runs. */
export async function npmFolder(packages: readonly string[]): Promise<string> {
  const folder = join(homedir(), '.cache/sluice-bench', packages.join('+').replaceAll('/', '-'));
  if (existsSync(join(folder, 'done'))) return folder;
  mkdirSync(folder, { recursive: true });
  await Bun.write(join(folder, 'package.json'), '{"private":true}\n');
  console.error(`installing ${packages.join(' ')}`);
  await run(['npm', 'install', '--no-audit', '--no-fund', ...packages], { cwd: folder, timeoutMs: 180_000 });
  await Bun.write(join(folder, 'done'), '');
  return folder;
}

/** A process and all its descendants that live now (Linux). */
export function familyOf(pid: number): readonly number[] {
  try {
    const threads = [...new Bun.Glob('*/children').scanSync({ cwd: `/proc/${pid}/task`, onlyFiles: false })];
    const children = threads.flatMap((path) =>
      readFileSync(`/proc/${pid}/task/${path}`, 'utf8').split(' ').filter(Boolean).map(Number),
    );
    return [pid, ...children.flatMap(familyOf)];
  } catch {
    return [];
  }
}

/** CPU seconds of a process, its threads and its descendants. */
export function familyCpuSeconds(pid: number): number {
  return familyOf(pid).reduce((sum, member) => sum + cpuSecondsOf(member), 0);
}

/** Seconds in which a process and its descendants could have run and something else had the core: the machine's noise. */
export function familyDelaySeconds(pid: number): number {
  const delays = familyOf(pid).flatMap((member) =>
    readdirSync(`/proc/${member}/task`).map((thread) => delayFrom(member, thread)),
  );
  return delays.reduce((sum, delay) => sum + delay, 0);
}

function delayFrom(pid: number, thread: string): number {
  try {
    // proc(5) and sched-stats.rst: nanoseconds on a core, nanoseconds in a run queue, time slices.
    return Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[1]) / 1e9;
  } catch {
    return 0; // it ended meanwhile
  }
}

/** Resident megabytes of a process and its descendants. */
export function familyMegabytes(pid: number): number {
  return familyOf(pid).reduce((sum, member) => sum + memoryOf(member).residentBytes, 0) / 1e6;
}

/** The cores of a subject of so many processes: one each from the first on; on two cores the second shares with the load. */
export function coresFor(processes: number): string {
  return Array.from({ length: Math.min(processes, availableParallelism()) }, (_, i) => i).join(',');
}

async function firstLine(stdout: ReadableStream<Uint8Array>, ready: RegExp): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  const done = new AbortController();
  void systemClock.sleep(START_MS, done.signal).then(() => resolve(undefined));
  // Read to the end, so that the child never waits for its log to be taken.
  void (async () => {
    const decoder = new TextDecoder();
    let text = '';
    for await (const chunk of stdout) {
      if (text.length > 65_536) continue;
      text += decoder.decode(chunk, { stream: true });
      const match = ready.exec(text);
      if (match !== null && text.includes('\n')) resolve(match[1] ?? match[0]);
    }
    resolve(undefined);
  })();
  return promise.finally(() => done.abort());
}

import { closeSync, fstatSync, openSync, renameSync, writeSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Clock } from '../../shared/clock.ts';
import type { Environment } from '../../shared/config/table.ts';
import { keepPrivate } from '../../shared/store/private.ts';
import { createLines } from '../frame/streams.ts';
import type { StopWishes } from './stops.ts';

/** The parts that `start` runs, each a process of its own. */
export type AppName = 'localnet' | 'gateway' | 'deploys';

/** The stages of a run, in order: the apps of one start together once the stage before is ready. */
type Run = Readonly<{
  stages: readonly (readonly AppName[])[];
  root: string;
  /** Arguments behind the `main.ts` of each. */
  args: readonly string[];
  env: Environment;
  /** An app that takes longer to end is killed. */
  endMs: number;
  dataDir: string;
  clock: Clock;
  wishes: StopWishes;
  /** Called once, when every app listens; `urls` has one address per app. */
  ready: (urls: ReadonlyMap<AppName, string>) => void;
  err: (text: string) => void;
}>;

/** An app ended by itself. `how` is its code or signal, `lastLines` what it wrote to stderr at last. */
type Death = Readonly<{ kind: 'died'; app: AppName; how: string; lastLines: readonly string[] }>;

type Started = Death | Readonly<{ kind: 'ready'; url: string }> | Readonly<{ kind: 'late' }>;

/** A running part. */
type App = Readonly<{
  name: AppName;
  started: Promise<Started>;
  death: Promise<Death>;
  /** Has it drain and waits; after the deadline it is killed. Gives which of the two it was. Never rejects. */
  stop(): Promise<'drained' | 'killed'>;
  /** Kills it, with every process it started. */
  kill(): void;
}>;

type End = Death | Readonly<{ kind: 'asked' }> | Readonly<{ kind: 'late'; app: AppName }>;

/** Runs every app until the user asks to stop or one of them ends by itself; gives the exit code. */
export async function runEverything(run: Run): Promise<number> {
  const apps: App[] = [];
  const { wishes, err, dataDir } = run;
  const running = upTo(run, apps).catch(async (error) => {
    await stopAll(run, apps);
    throw error;
  });
  const end = await Promise.race([wishes.asked.then((): End => ({ kind: 'asked' })), running]);
  if (end.kind === 'died') {
    const sentence = `${end.app} exited (${end.how}), so this start ends, with every app that it began. Its log is ${logPath(dataDir, end.app)}.`;
    err(`${[...end.lastLines, sentence].join('\n')}\n`);
  }
  if (end.kind === 'late') err(`${end.app} was not ready in time; see ${logPath(dataDir, end.app)}.\n`);
  const insisted = wishes.insisted.then((): 'insisted' => 'insisted');
  const stopped = await Promise.race([insisted, stopAll(run, apps)]);
  if (stopped !== 'insisted') return end.kind === 'asked' && stopped === 'drained' ? 0 : 1;
  for (const app of apps) app.kill();
  return 130;
}

/** Starts stage after stage; ends with the first app that dies or is late. */
async function upTo(run: Run, apps: App[]): Promise<End> {
  const urls = new Map<AppName, string>();
  const firstDeath = () => Promise.race(apps.map(({ death }) => death));
  for (const stage of run.stages) {
    const launched = stage.map((name) => launchApp(name, run));
    apps.push(...launched);
    for (const { name, started } of launched) {
      const first = await Promise.race([started, firstDeath()]);
      if (first.kind === 'died') return first;
      if (first.kind === 'late') return { kind: 'late', app: name };
      urls.set(name, first.url);
    }
  }
  run.ready(urls);
  return firstDeath();
}

/** The last stage first, so that what drains still has what it needs. */
async function stopAll({ stages, err }: Run, apps: readonly App[]): Promise<'drained' | 'killed'> {
  let worst: 'drained' | 'killed' = 'drained';
  for (const stage of stages.toReversed()) {
    const stopping = apps
      .filter(({ name }) => stage.includes(name))
      .map(async ({ name, stop }) => ({ name, how: await stop() }));
    for (const { name, how } of await Promise.all(stopping)) {
      if (how === 'drained') continue;
      worst = 'killed';
      err(`${name} did not stop in time and was killed.\n`);
    }
  }
  return worst;
}

const READY_MS_MAX = 60_000;
const LAST_LINES_MAX = 20;

/**
 * Starts one app. It is in a process group of its own, so that Ctrl-C reaches it in our order; and it holds the
 * other end of our pipe as its stdin, whose end shows it that we died, however we died.
 */
function launchApp(name: AppName, { root, args, env, endMs, dataDir, clock }: Run): App {
  const log = openLogFile(logPath(dataDir, name)); // a process whose log cannot be kept is not started
  const child = Bun.spawn([process.execPath, join(root, name, 'main.ts'), ...args], {
    env: { ...env, SLUICE_SUPERVISED: '1' },
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'pipe',
    detached: true,
  });
  const lastLines: string[] = [];
  const ready = Promise.withResolvers<Started>();

  /** Reads a stream of the app to its end and keeps all of it in the log. */
  async function read(stream: ReadableStream<Uint8Array>, each: (line: string) => void) {
    const feed = createLines(each);
    for await (const bytes of stream) {
      log.append(bytes);
      feed(bytes);
    }
  }
  const readOut = read(child.stdout, (line) => {
    const url = readyUrl(line, name);
    if (url !== undefined) ready.resolve({ kind: 'ready', url });
  });
  const readErr = read(child.stderr, (line) => {
    lastLines.push(line);
    if (lastLines.length > LAST_LINES_MAX) lastLines.shift();
  });
  const ended = Promise.all([readOut, readErr]).then(log.close);
  const death = Promise.all([ended, child.exited]).then((): Death => {
    const how = child.signalCode === null ? `code ${child.exitCode}` : String(child.signalCode);
    return { kind: 'died', app: name, how, lastLines };
  });
  const first = within(READY_MS_MAX, Promise.race([ready.promise, death]), clock);
  const started = first.then((began): Started => began ?? { kind: 'late' });

  async function stop() {
    child.kill('SIGTERM');
    if ((await within(endMs, death, clock)) !== undefined) return 'drained';
    kill();
    await death;
    return 'killed';
  }

  /** The whole group: an app may have children of its own. */
  function kill() {
    try {
      process.kill(-child.pid, 'SIGKILL');
    } catch {
      // The group is gone already.
    }
  }

  return { name, started, death, stop, kill };
}

/** Waits for `promise` for at most `ms`, then gives `undefined`; leaves no timer behind. */
async function within<T>(ms: number, promise: Promise<T>, clock: Clock): Promise<T | undefined> {
  const settled = new AbortController();
  const late = clock.sleep(ms, settled.signal).then(() => undefined);
  const first = await Promise.race([promise, late]);
  settled.abort();
  return first;
}

/** The address in an app's ready line, `{"ready":"gateway","url":"http://127.0.0.1:8899"}`; `undefined` for any other line. */
export function readyUrl(line: string, app: string): string | undefined {
  if (!line.startsWith('{') || !line.includes('"ready"')) return undefined;
  try {
    const { ready, url } = JSON.parse(line);
    return ready === app && typeof url === 'string' && URL.canParse(url) ? url : undefined;
  } catch {
    return undefined;
  }
}

/** An append-only file of bounded size. `append` never throws: a full disk must not stop the apps. */
type LogFile = Readonly<{ append(bytes: Uint8Array): void; close(): void }>;

/** One file and one old file of this size each, in bytes. */
const LOG_BYTES_MAX = 10 * 1_048_576;

/** Opens or makes the log at `path`; when it would grow above `bytesMax` it becomes `path.1` and a new one begins. */
export function openLogFile(path: string, bytesMax: number = LOG_BYTES_MAX): LogFile {
  keepPrivate(path);
  let file = openSync(path, 'a', 0o600);
  let size = fstatSync(file).size;

  function append(bytes: Uint8Array) {
    try {
      if (size > 0 && size + bytes.length > bytesMax) begin();
      size += writeSync(file, bytes);
    } catch {
      // What cannot be logged is lost; the apps go on.
    }
  }

  function begin() {
    renameSync(path, `${path}.1`);
    closeSync(file);
    file = openSync(path, 'a', 0o600);
    size = 0;
  }

  return { append, close: () => closeSync(file) };
}

function logPath(dataDir: string, app: AppName): string {
  return resolve(dataDir, `${app}.log`);
}

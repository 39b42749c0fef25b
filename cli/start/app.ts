import { closeSync, fstatSync, openSync, renameSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../shared/clock.ts';
import type { Environment } from '../../shared/config/table.ts';
import { keepPrivate } from '../../shared/store/private.ts';
import { createLines } from '../frame/streams.ts';

/** The parts that `start` runs, each a process of its own. */
export type AppName = 'localnet' | 'gateway' | 'deploys';

/** How a process ended: its code or signal, and the last lines it wrote to stderr. */
export type Death = Readonly<{ app: AppName; how: string; lastLines: readonly string[] }>;

type Started =
  | { readonly kind: 'ready'; readonly url: string }
  | { readonly kind: 'died'; readonly death: Death }
  | { readonly kind: 'late' };

/** A running part. */
export type App = Readonly<{
  name: AppName;
  started: Promise<Started>;
  death: Promise<Death>;
  /** Asks it to drain and waits; after the deadline it is killed. Gives which of the two it was. Never rejects. */
  stop(): Promise<'drained' | 'killed'>;
  /** Kills it, with every process it started. */
  kill(): void;
}>;

/** How an app is run; `args` go behind its `main.ts`. */
type Launch = Readonly<{
  name: AppName;
  root: string;
  args: readonly string[];
  env: Environment;
  /** It is killed when it takes longer to end. */
  endMs: number;
  logPath: string;
  clock: Clock;
}>;

const READY_MS_MAX = 60_000;

/**
 * Starts one app. It is in a process group of its own, so that Ctrl-C reaches it in our order; and it holds the
 * other end of our pipe as its stdin, whose end tells it that we died, however we died.
 */
export function launchApp({ name, root, args, env, endMs, logPath, clock }: Launch): App {
  const log = openLogFile(logPath); // a process whose log cannot be kept is not started
  const child = Bun.spawn([process.execPath, join(root, name, 'main.ts'), ...args], {
    env: { ...env, SLUICE_SUPERVISED: '1' },
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'pipe',
    detached: true,
  });
  const output = readOutput(child, name, log);
  const death = Promise.all([output.ended, child.exited]).then((): Death => {
    const how = child.signalCode === null ? `code ${child.exitCode}` : String(child.signalCode);
    return { app: name, how, lastLines: output.lastLines };
  });
  const begin = Promise.race([
    output.url.then((url): Started => ({ kind: 'ready', url })),
    death.then((end): Started => ({ kind: 'died', death: end })),
  ]);
  const started = within(READY_MS_MAX, begin, clock).then((first): Started => first ?? { kind: 'late' });

  async function stop() {
    child.kill('SIGTERM');
    const outcome = await within(endMs, death, clock);
    if (outcome !== undefined) return 'drained';
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

/** What `promise` gives within `ms`, else `undefined`; leaves no timer behind. */
async function within<T>(ms: number, promise: Promise<T>, clock: Clock): Promise<T | undefined> {
  const settled = new AbortController();
  const late = clock.sleep(ms, settled.signal).then(() => undefined);
  const first = await Promise.race([promise, late]);
  settled.abort();
  return first;
}

/** What a child says: its address once it listens, its last lines on stderr, and when it has said everything. */
type Output = Readonly<{ url: Promise<string>; lastLines: readonly string[]; ended: Promise<void> }>;

type Streams = Readonly<{ stdout: ReadableStream<Uint8Array>; stderr: ReadableStream<Uint8Array> }>;

const LAST_LINES_MAX = 20;

/** Reads both streams of `app` to their ends, keeps all of it in `log` and closes that. */
function readOutput({ stdout, stderr }: Streams, app: string, log: LogFile): Output {
  const found = Promise.withResolvers<string>();
  const lastLines: string[] = [];
  const readOut = createLines((line) => {
    const url = readyUrl(line, app);
    if (url !== undefined) found.resolve(url);
  });
  const readErr = createLines((line) => {
    lastLines.push(line);
    if (lastLines.length > LAST_LINES_MAX) lastLines.shift();
  });

  async function pump(stream: ReadableStream<Uint8Array>, read: (bytes: Uint8Array) => void) {
    for await (const bytes of stream) {
      log.append(bytes);
      read(bytes);
    }
  }

  const ended = Promise.all([pump(stdout, readOut), pump(stderr, readErr)]).then(log.close);
  return { url: found.promise, lastLines, ended };
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

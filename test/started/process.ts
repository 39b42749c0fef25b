import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';

/** The project's root folder. */
export const ROOT = join(import.meta.dir, '../..');

/** A started entry point, seen from outside. */
export type Started = Readonly<{
  url: URL;
  pid: number;
  exited: Promise<number>;
  stderr: Promise<string>;
  /** Lines on its standard output so far: the ready line and its log. */
  linesPrinted(): number;
  /** The first 64 KB of them. */
  printed(): string;
  kill(signal: NodeJS.Signals): void;
  /** Ends its standard input, as the death of its parent does. */
  endInput(): void;
}>;

const READY_MS = 20_000;

/** The environment of a child: the test's own, without what would change its behaviour. */
export function childEnv(extra: Record<string, string> = {}): Record<string, string> {
  const { PATH = '', HOME = '' } = process.env;
  return { PATH, HOME, ...extra };
}

/** Runs an entry point to its end; for those that refuse to start. */
export async function runToEnd(args: readonly string[], cwd: string, env: Record<string, string> = {}) {
  const child = Bun.spawn([process.execPath, ...args], {
    cwd,
    env: childEnv(env),
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
    timeout: READY_MS,
  });
  const [code, stdout, stderr] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()]);
  return { code, stdout, stderr };
}

/**
 * Starts an entry point as `bun start` does and waits for its ready line. Its standard input is held open until it is
 * killed. `env` goes over the environment of a child; `limits` are commands of a shell before it, such as `ulimit -n 100`.
 */
export async function startProcess(
  args: readonly string[],
  cwd: string,
  env: Record<string, string> = {},
  limits = '',
): Promise<Started & AsyncDisposable> {
  const shell = limits === '' ? [] : ['sh', '-c', `${limits}; exec "$0" "$@"`];
  const child = Bun.spawn([...shell, process.execPath, ...args], {
    cwd,
    env: childEnv({ ...env, SLUICE_SUPERVISED: '1' }),
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'pipe',
  });
  const stderr = child.stderr.text();
  const printed = { lines: 0, text: '' };
  const url = await readyUrl(child.stdout, printed);
  if (url === undefined) throw new Error(`it did not start: ${await stderr}`);
  return {
    url: new URL(url),
    pid: child.pid,
    exited: child.exited,
    stderr,
    linesPrinted: () => printed.lines,
    printed: () => printed.text,
    kill: (signal) => child.kill(signal),
    endInput: () => void child.stdin.end(),
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await child.exited;
    },
  };
}

async function readyUrl(
  stdout: ReadableStream<Uint8Array>,
  printed: { lines: number; text: string },
): Promise<string | undefined> {
  const decoder = new TextDecoder();
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  // Read to the end in the background, so that the child never waits for its log to be taken.
  void (async () => {
    for await (const chunk of stdout) {
      for (const byte of chunk) if (byte === 10) printed.lines++;
      if (printed.text.length < 65_536) printed.text += decoder.decode(chunk, { stream: true });
      const url = /\{"ready":"[a-z]+","url":"([^"]+)"\}/.exec(printed.text)?.[1];
      if (url !== undefined) resolve(url);
    }
    resolve(undefined);
  })();
  return promise;
}

/** Whether a process has ended; one that nobody has waited for yet has (Linux). */
export function hasEnded(pid: number): boolean {
  try {
    return /^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return true;
  }
}

/** Whether a process has the file of this name open (Linux). */
export function hasOpen(pid: number, name: string): boolean {
  return readdirSync(`/proc/${pid}/fd`).some((fd) => {
    try {
      return readlinkSync(join(`/proc/${pid}/fd`, fd)).endsWith(name);
    } catch {
      return false; // closed since it was listed
    }
  });
}

/** Resident memory of a process in bytes (Linux). */
export function residentBytes(pid: number): number {
  const [, kilobytes] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return 1_024 * Number(kilobytes);
}

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from './ports.ts';

/** A real redis-server of the test's own on a free port, with its data in a temporary folder that goes with it. */
export type StartedRedis = Readonly<{
  port: number;
  url: string;
  pid: number;
  kill(signal: NodeJS.Signals): void;
  /** Kills it without a goodbye; resolves when it is gone. */
  die(): Promise<void>;
  /** Starts it again on the same port, with the data it had or, `empty`, with none; resolves when it answers. */
  restart(how: 'empty' | 'with its data'): Promise<void>;
  /** One command through redis-cli, as text. */
  cli(...args: readonly string[]): Promise<string>;
}> &
  AsyncDisposable;

const READY_MS = 10_000;

/** Starts a server; `settings` are words of its command line (`'--maxmemory-policy', 'allkeys-lru'`). */
export async function startRedis(settings: readonly string[] = [], port = freePort()): Promise<StartedRedis> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-redis-'));
  let child = await serve(port, folder, settings);
  let starts = 1;

  async function die(): Promise<void> {
    child.kill('SIGKILL');
    await child.exited;
  }

  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    get pid() {
      return child.pid;
    },
    kill: (signal) => child.kill(signal),
    die,
    async restart(how) {
      await die();
      const place = how === 'empty' ? join(folder, `start-${++starts}`) : folder;
      child = await serve(port, place, settings);
    },
    cli: (...args) => redisCli(port, ...args),
    async [Symbol.asyncDispose]() {
      await die();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** One command to the server on `port` through redis-cli. */
export async function redisCli(port: number, ...args: readonly string[]): Promise<string> {
  const child = Bun.spawn(['redis-cli', '-p', String(port), ...args], { stdout: 'pipe', stderr: 'pipe' });
  const text = await child.stdout.text();
  await child.exited;
  return text.trim();
}

async function serve(port: number, folder: string, settings: readonly string[]) {
  await Bun.$`mkdir -p ${folder}`.quiet();
  const words = ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--daemonize', 'no'];
  const durable = ['--appendonly', 'yes', '--appendfsync', 'everysec', '--save', ''];
  // A test run that is killed takes its servers with it.
  const fate = Bun.which('setpriv') === null ? [] : ['setpriv', '--pdeathsig', 'KILL'];
  const child = Bun.spawn([...fate, 'redis-server', ...words, ...durable, ...settings], {
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'ignore',
  });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const late = setTimeout(() => reject(new Error('redis-server was not ready in time')), READY_MS);
  void (async () => {
    const decoder = new TextDecoder();
    let text = '';
    // Read to the end, so that the server never waits for its log to be taken.
    for await (const bytes of child.stdout) {
      if (text.length < 65_536) text += decoder.decode(bytes, { stream: true });
      if (text.includes('Ready to accept connections')) resolve();
    }
    reject(new Error(`redis-server ended: ${text}`));
  })();
  try {
    await promise;
  } catch (error) {
    child.kill('SIGKILL');
    throw error;
  } finally {
    clearTimeout(late);
  }
  return child;
}

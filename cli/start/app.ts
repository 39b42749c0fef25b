import { join } from 'node:path';
import type { Clock } from '../../shared/clock.ts';
import type { Environment } from '../../shared/config/table.ts';
import { openLogFile } from './log-file.ts';
import { readOutput } from './output.ts';

/** The parts that `start` runs, each a process of its own. */
export type AppName = 'localnet' | 'gateway' | 'deploys';

/** How a process ended: its code or signal, and the last lines it wrote to stderr. */
export type Death = Readonly<{ app: AppName; how: string; lastLines: readonly string[] }>;

export type Started =
  | { readonly kind: 'ready'; readonly url: string }
  | { readonly kind: 'died'; readonly death: Death }
  | { readonly kind: 'late' };

/** A running part. */
export type App = Readonly<{
  name: AppName;
  started: Promise<Started>;
  death: Promise<Death>;
  /** Asks it to drain and waits; after the deadline it is killed. Tells which of the two it was. Never rejects. */
  stop(): Promise<'drained' | 'killed'>;
  /** Ends it at once, with every process it started. */
  kill(): void;
}>;

/** How an app is run; `args` go behind its `main.ts`. */
export type Launch = Readonly<{
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
  const begun = Promise.race([
    output.url.then((url): Started => ({ kind: 'ready', url })),
    death.then((end): Started => ({ kind: 'died', death: end })),
  ]);
  const started = within(READY_MS_MAX, begun, clock).then((first): Started => first ?? { kind: 'late' });

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

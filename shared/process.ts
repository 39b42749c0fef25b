import { parseArgs } from 'node:util';
import manifest from '../package.json';
import type { Listen } from './config/kinds.ts';
import type { Environment } from './config/table.ts';
import { codeOf, fileComplaint } from './store/private.ts';

/** The one Bun this project is built and tested on; `package.json` `engines.bun` is the only place that says it. */
export const BUN_VERSION: string = manifest.engines.bun;

/** A sentence for the user when `running` is older than `wanted`: older releases cut streams silently and buffer whole answers. */
export function bunComplaint(running: string | undefined, wanted: string = BUN_VERSION): string | undefined {
  if (running !== undefined && running.localeCompare(wanted, undefined, { numeric: true }) >= 0)
    return undefined;
  const found = running === undefined ? '' : `, and this is Bun ${running}`;
  return `Sluice needs Bun ${wanted} or newer${found}; run it with: npx -y bun@${wanted} start`;
}

/** The variable by which `sluice start` passes its `--account` pairs on to the localnet, as a list of them in JSON. */
export const ACCOUNT_FILES = 'SLUICE_ACCOUNT_FILES';

/** The reason of a stop that came with the death of the parent. */
export const PARENT_ENDED = 'the parent ended';

/**
 * An AbortSignal that fires when the process shall stop: SIGINT, SIGTERM, or, when `supervised`, the end of
 * its standard input, which is how a child learns that its parent died, even by SIGKILL. A second SIGINT ends the
 * process at once with 130.
 */
export function stopSignal(supervised: boolean): AbortSignal {
  const controller = new AbortController();
  const stop = (reason: string) => controller.abort(reason);
  process.on('SIGTERM', () => stop('SIGTERM'));
  process.on('SIGINT', () => {
    if (controller.signal.reason === 'SIGINT') process.exit(130);
    stop('SIGINT');
  });
  if (supervised) {
    process.stdin.on('end', () => stop(PARENT_ENDED));
    process.stdin.on('error', () => stop(PARENT_ENDED));
    process.stdin.resume();
  }
  return controller.signal;
}

/** Resolves when the parent of a supervised process has died, which may be after it was told to stop. */
export function parentEnded(): Promise<void> {
  if (process.stdin.readableEnded) return Promise.resolve();
  return new Promise((resolve) => {
    process.stdin.once('end', resolve);
    process.stdin.once('error', () => resolve());
  });
}

export function fired(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

/** How an app was started. */
export type AppStart = Readonly<{
  /** The value of `--config`, the only argument that it takes. */
  configPath: string | undefined;
  env: Environment;
  /** The end of standard input is a stop, and standard output gets the ready line. */
  supervised: boolean;
}>;

/**
 * Runs an app to the end of the process. `start` imports the app, since an older Bun may fail on the imports themselves; it
 * gives a sentence for each problem that prevented the start or ended it.
 */
export async function runApp(
  app: string,
  env: Environment,
  start: (how: AppStart) => Promise<readonly string[]>,
): Promise<never> {
  const complaint = bunComplaint(process.versions.bun);
  if (complaint !== undefined) exit([complaint]);
  let configPath: string | undefined;
  try {
    const options = { config: { type: 'string' } } as const;
    configPath = parseArgs({ args: process.argv.slice(2), options, strict: true }).values.config;
  } catch (error) {
    const reason = error instanceof Error ? error.message : 'The arguments cannot be read.';
    exit([reason, `Usage: bun ${app}/main.ts [--config FILE]`]);
  }
  const how = { configPath, env, supervised: env['SLUICE_SUPERVISED'] === '1' };
  const complaints = await start(how).catch((error) => [fileComplaint(error)]);
  const { settleOutputs } = await import('./log.ts');
  await settleOutputs();
  exit(complaints);
}

/** Ends the process at once: with 1 and these lines on standard error, or with 0 when there are none. */
export function exit(complaints: readonly string[]): never {
  for (const line of complaints) process.stderr.write(`${line}\n`);
  process.exit(complaints.length === 0 ? 0 : 1);
}

/** One sentence for the operator when the address of the config's `key` cannot be listened on. */
export function listenComplaint(key: string, { hostname, port }: Listen, error: unknown): string {
  const code = codeOf(error) || String(error);
  const why = code === 'EADDRINUSE' ? 'another process has it' : code;
  return `The address ${hostname}:${port} cannot be listened on (${why}); free it or change ${key} in the config.`;
}

import { parseArgs } from 'node:util';
import manifest from '../package.json';
import type { Listen } from './config/kinds.ts';
import { codeOf } from './store/private.ts';

/** The one Bun this project is built and tested on; `package.json` `engines.bun` is the only place that says it. */
export const BUN_VERSION: string = manifest.engines.bun;

/** A sentence for the user when `running` is older than `wanted`: older releases cut streams silently and buffer whole answers. */
export function bunComplaint(running: string | undefined, wanted: string = BUN_VERSION): string | undefined {
  if (running !== undefined && running.localeCompare(wanted, undefined, { numeric: true }) >= 0)
    return undefined;
  const found = running === undefined ? '' : `, and this is Bun ${running}`;
  return `Sluice needs Bun ${wanted} or newer${found}; run it with: npx -y bun@${wanted} start`;
}

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
    process.stdin.on('end', () => stop('the parent ended'));
    process.stdin.on('error', () => stop('the parent ended'));
    process.stdin.resume();
  }
  return controller.signal;
}

export function fired(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

export type ConfigPath =
  | { readonly kind: 'path'; readonly path: string | undefined }
  /** `lines` are for the operator. */
  | { readonly kind: 'unusable'; readonly lines: readonly string[] };

/** The value of `--config` in an app's arguments, the only one it takes. */
export function configPathFrom(args: readonly string[], app: string): ConfigPath {
  try {
    const { values } = parseArgs({ args: [...args], options: { config: { type: 'string' } }, strict: true });
    return { kind: 'path', path: values.config };
  } catch (error) {
    const reason = error instanceof Error ? error.message : 'The arguments cannot be read.';
    return { kind: 'unusable', lines: [reason, `Usage: bun ${app}/main.ts [--config FILE]`] };
  }
}

/** One sentence for the operator when the address of the config's `key` cannot be listened on. */
export function listenComplaint(key: string, { hostname, port }: Listen, error: unknown): string {
  const code = codeOf(error) || String(error);
  const why = code === 'EADDRINUSE' ? 'another process has it' : code;
  return `The address ${hostname}:${port} cannot be listened on (${why}); free it or change ${key} in the config.`;
}

import { stopSignal } from '../shared/stop.ts';

/**
 * Runs the gateway in a child and gives its exit code. A child, because Bun reads these settings only as it starts:
 * its fetch allows 256 requests at once unless told otherwise, and a slow reader of a scan holds one all the while.
 */
const SETTINGS = { BUN_CONFIG_MAX_HTTP_REQUESTS: '16384', NODE_ENV: 'production' };

export async function superviseGateway(
  main: string,
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  supervised: boolean,
): Promise<number> {
  const stop = stopSignal(supervised);
  const child = Bun.spawn([process.execPath, main, ...args], {
    env: { ...SETTINGS, ...env, SLUICE_GATEWAY_CHILD: '1', SLUICE_SUPERVISED: '1' },
    stdin: 'pipe',
    stdout: 'inherit',
    stderr: 'inherit',
  });
  stop.addEventListener('abort', () => child.kill('SIGTERM'), { once: true });
  return child.exited;
}

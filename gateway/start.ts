import { systemClock } from '../shared/clock.ts';
import { loadConfig } from '../shared/config/load.ts';
import type { Run } from './run.ts';

/**
 * Runs the gateway until it is asked to stop; gives the exit code. Alone or in a seat it is a process that serves;
 * with `gateway.processes` above 1 it is the supervisor of as many. Each loads only what it is.
 */
export async function startGateway(run: Run): Promise<number> {
  if (run.seat === undefined) {
    const loaded = loadConfig(run.configPath, run.env);
    if (loaded.kind === 'loaded' && loaded.config.gateway.processes > 1) {
      const { superviseGateway } = await import('./supervisor/supervise.ts');
      return superviseGateway(loaded.config, run, systemClock);
    }
  }
  const { runGateway } = await import('./run.ts');
  return runGateway(run);
}

import { join } from 'node:path';
import { startCrew } from '../../test/started/crew.ts';
import { ROOT, startProcess } from '../../test/started/process.ts';
import { gaugeFrom } from './proc.ts';

const BACKEND = join(ROOT, 'bench/self/backend.ts');

/**
 * A gateway process in front of two backend processes, one for scans and one for all else, and a key without limits. A scan
 * that does not say how long its answer is to be gets `scanBytes`.
 */
export async function startSubject(scanBytes = 0) {
  await using parts = new AsyncDisposableStack();
  const state = parts.use(await startProcess([BACKEND], ROOT));
  const scan = parts.use(await startProcess([BACKEND, String(scanBytes)], ROOT));
  const crew = parts.use(
    await startCrew({
      backendUrl: state.url.href,
      processes: 1,
      extra:
        `lanes = ["state"]\n[[backends]]\nname = "scan"\nurl = "${scan.url.href}"\nlanes = ["scan"]\nmax_connections = 2048\n` +
        '[plans.bench]\nrps = 10_000_000\nburst = 10_000_000\nscans = 2048\n',
    }),
  );
  const owned = parts.move();
  return {
    url: crew.url,
    pid: crew.pid,
    key: crew.key('bench'),
    /** Calls at the backends that have not ended: what a leak of permits would show in. */
    inFlight: async () => gaugeFrom(await crew.metricsText(), 'sluice_gateway_backend_calls_in_flight'),
    [Symbol.asyncDispose]: () => owned[Symbol.asyncDispose](),
  };
}

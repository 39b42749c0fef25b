import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../../shared/keys/schema.ts';
import { addKey, opened, temporaryFolder } from '../../test/started/gateway.ts';
import { ROOT, startProcess } from '../../test/started/process.ts';
import { freePort } from '../../test/started/ports.ts';
import { gaugeFrom } from './proc.ts';

/**
 * A gateway process in front of two backend processes, one for scans and one for all else, and a key without limits. A scan
 * that does not say how long its answer is to be gets `scanBytes`.
 */
export async function startSubject(scanBytes = 0) {
  const folder = temporaryFolder();
  const [state, scan] = await Promise.all([startBackend(folder.path), startBackend(folder.path, scanBytes)]);
  const metrics = freePort();
  const config = join(folder.path, 'gateway.toml');
  writeFileSync(
    config,
    `[storage]\ndata_dir = "${folder.path}"\n` +
      `[gateway]\nlisten = "127.0.0.1:0"\nmetrics = "127.0.0.1:${metrics}"\n` +
      `[[backends]]\nname = "state"\nurl = "${state.url.href}"\nlanes = ["state"]\n` +
      `[[backends]]\nname = "scan"\nurl = "${scan.url.href}"\nlanes = ["scan"]\nmax_connections = 2048\n` +
      `[plans.bench]\nrps = 10_000_000\nburst = 10_000_000\nscans = 2048\n`,
  );
  const gateway = await startProcess([join(ROOT, 'gateway/main.ts'), '--config', config], folder.path);
  const accounts = opened(join(folder.path, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
  const key = addKey(accounts, 'bench');
  accounts.close();
  return {
    url: gateway.url,
    pid: gateway.pid,
    stateUrl: state.url,
    scanUrl: scan.url,
    key,
    folder: folder.path,
    /** Calls at the backends that have not ended: what a leak of permits would show in. */
    async inFlight(): Promise<number> {
      const response = await fetch(`http://127.0.0.1:${metrics}/metrics`);
      return gaugeFrom(await response.text(), 'sluice_gateway_backend_calls_in_flight');
    },
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      await Promise.all([state[Symbol.asyncDispose](), scan[Symbol.asyncDispose]()]);
      folder[Symbol.dispose]();
    },
  };
}

function startBackend(folder: string, scanBytes = 0) {
  return startProcess([join(ROOT, 'bench/self/backend.ts'), String(scanBytes)], folder);
}

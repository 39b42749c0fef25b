import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../shared/clock.ts';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../shared/keys/schema.ts';
import { addKey, opened, temporaryFolder } from '../test/started/gateway.ts';
import { ROOT, startProcess } from '../test/started/process.ts';
import { gaugeFrom } from './proc.ts';

const PORT_WAIT_MS = 5_000;

/** A gateway process in front of two backend processes, one for scans and one for all else, and a key without limits. */
export async function startSubject() {
  const folder = temporaryFolder();
  const [state, scan] = await Promise.all([startBackend(folder.path), startBackend(folder.path)]);
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

/** HAProxy with one thread in front of `backend`, or undefined where it is not installed. */
export async function startHaproxy(folder: string, backend: URL) {
  const command = Bun.which('haproxy');
  if (command === null) return undefined;
  const port = freePort();
  const config = join(folder, 'haproxy.cfg');
  writeFileSync(
    config,
    'global\n  nbthread 1\ndefaults\n  mode http\n  timeout connect 5s\n  timeout client 120s\n  timeout server 120s\n' +
      `frontend in\n  bind 127.0.0.1:${port}\n  default_backend out\nbackend out\n  server one ${backend.host}\n`,
  );
  const child = Bun.spawn([command, '-db', '-f', config], { stdout: 'ignore', stderr: 'ignore' });
  await untilOpen(port);
  return {
    url: new URL(`http://127.0.0.1:${port}`),
    pid: child.pid,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await child.exited;
    },
  };
}

function startBackend(folder: string) {
  return startProcess([join(ROOT, 'bench/backend.ts')], folder);
}

/** A port of 127.0.0.1 that nothing listens on now. */
export function freePort(): number {
  const listener = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } });
  listener.stop(true);
  return listener.port;
}

/** Resolves when something listens on `port`; throws when nothing does for five seconds. */
export async function untilOpen(port: number): Promise<void> {
  const limit = AbortSignal.timeout(PORT_WAIT_MS);
  for (;;) {
    const socket = await Bun.connect({ hostname: '127.0.0.1', port, socket: { data() {} } }).catch(
      () => undefined,
    );
    if (socket !== undefined) return void socket.end();
    if (limit.aborted) throw new Error(`nothing listens on port ${port}`);
    await systemClock.sleep(20, limit);
  }
}

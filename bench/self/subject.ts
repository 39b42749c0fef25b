import { join } from 'node:path';
import { LEDGER_FILE, LEDGER_MIGRATIONS } from '../../gateway/ledger.ts';
import type { Store } from '../../shared/store/open.ts';
import { startCrew } from '../../test/started/crew.ts';
import { opened } from '../../test/started/gateway.ts';
import { residentBytes, ROOT, startProcess } from '../../test/started/process.ts';
import { startRedis } from '../../test/started/redis.ts';
import { gaugeFrom } from './proc.ts';

/** What several gateway processes share their accounts by. */
export const CENTRES = ['sqlite', 'redis'] as const;
export type Centre = (typeof CENTRES)[number];

/** Over which store the processes share, and whether a short load and bounds that a busy machine keeps are wanted. */
export type Form = Readonly<{ centre: Centre; isShort: boolean }>;

export const CALL = '{"jsonrpc":"2.0","id":1,"method":"getSlot"}';

/** The cheapest backend there is, as a process; `scanBytes`: the length of a scan that asks for none. */
export function startBackend(scanBytes = 0) {
  return startProcess([join(ROOT, 'bench/self/backend.ts'), String(scanBytes)], ROOT);
}

/** `centre`: `redis` is one of its own; `redisUrl` leads to another. `extra`: TOML behind the first backend. */
type Options = Readonly<{ processes?: number; extra: string; centre?: Centre; redisUrl?: string }>;

/** Gateway processes on one port before the cheapest backend there is. */
export async function startSubject({ processes = 1, extra, centre, redisUrl }: Options) {
  await using parts = new AsyncDisposableStack();
  const redis = centre === 'redis' ? parts.use(await startRedis()) : undefined;
  const url = redis?.url ?? redisUrl;
  const backend = parts.use(await startBackend());
  const storageLines = url === undefined ? '' : `redis = "${url}"\n`;
  const crew = parts.use(await startCrew({ backendUrl: backend.url.href, processes, extra, storageLines }));
  const owned = parts.move();
  const pids = () => (processes === 1 ? [crew.pid] : [...crew.processes().values()]);
  return {
    crew,
    redis,
    /** The processes that answer, without their supervisor. */
    pids,
    /** The greatest resident memory of its processes in bytes. */
    resident: () => Math.max(...pids().map(residentBytes)),
    /** Calls at backends that have not ended: what a leak of permits would show in. */
    inFlight: async () => gaugeFrom(await crew.metricsText(), 'sluice_gateway_backend_calls_in_flight'),
    /** Lines that it logged until it ended; ends it. */
    async linesLogged(): Promise<number> {
      crew.kill('SIGTERM');
      await crew.exited;
      return crew.linesPrinted() + (await crew.stderr).split('\n').length - 1;
    },
    /** Its ledger; ends it. */
    async ledger(): Promise<Store> {
      crew.kill('SIGTERM');
      await crew.exited;
      return opened(join(crew.folder, LEDGER_FILE), LEDGER_MIGRATIONS);
    },
    [Symbol.asyncDispose]: () => owned[Symbol.asyncDispose](),
  };
}

/** One process with a backend for scans beside the one for all else, and a key without limits. */
export async function startScanSubject(scanBytes = 0) {
  await using parts = new AsyncDisposableStack();
  const scan = parts.use(await startBackend(scanBytes));
  const extra =
    `lanes = ["state"]\n[[backends]]\nname = "scan"\nurl = "${scan.url.href}"\nlanes = ["scan"]\nmax_connections = 2048\n` +
    '[plans.bench]\nrps = 10_000_000\nburst = 10_000_000\nscans = 2048\n';
  const { crew, inFlight } = parts.use(await startSubject({ extra }));
  const owned = parts.move();
  const { url, pid } = crew;
  return {
    url,
    pid,
    key: crew.key('bench'),
    inFlight,
    [Symbol.asyncDispose]: () => owned[Symbol.asyncDispose](),
  };
}

import { join } from 'node:path';
import { Registry } from 'prom-client';
import type { Clock } from '../shared/clock.ts';
import { type Config, gatewayUrl } from '../shared/config/config.ts';
import type { Listen } from '../shared/config/kinds.ts';
import type { ConfigText, LoadedConfig } from '../shared/config/load.ts';
import { createConfigReader } from '../shared/config/reload.ts';
import type { Environment } from '../shared/config/table.ts';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS, plansInUse } from '../shared/keys/schema.ts';
import { listenComplaint } from '../shared/process.ts';
import { createLog, droppedLines, writeLines } from '../shared/log.ts';
import { takeLock } from '../shared/store/lock.ts';
import { openStore } from '../shared/store/open.ts';
import { processName } from './cluster/node.ts';
import { togetherStatus } from './status.ts';
import { expose, listenForMetrics } from './metrics.ts';
import { WorkerPool } from './worker-pool.ts';
import { launchWorker, type PortClaim, type Worker } from './workers.ts';

/**
 * Finds the port of `listen`, chosen by the system if the config's is 0. Workers share it, and the system would not report
 * a foreign process that does too; so this process binds it alone for an instant, in which nothing is accepted.
 */
async function claimPort(listen: Listen): Promise<PortClaim> {
  try {
    const server = Bun.serve({ ...listen, reusePort: false, fetch: () => new Response() });
    const port = server.port ?? listen.port;
    await server.stop(true);
    return { kind: 'free', port };
  } catch (error) {
    return { kind: 'refused', sentence: listenComplaint('gateway.listen', listen, error) };
  }
}

/** How long a start waits for the processes of a supervisor that died; they end within 5 s. */
const SEATS_WAIT_MS = 7_000;
const SEATS_PAUSE_MS = 100;

/** A sentence for a seat whose process still runs, of an earlier supervisor; looked at before any process starts, so that none serves in vain. */
async function occupiedSeat({ gateway, storage }: Config, stop: AbortSignal, clock: Clock) {
  const untilMs = clock.monotonic() + SEATS_WAIT_MS;
  for (let seat = 1; seat <= gateway.processes && !stop.aborted;) {
    const locking = takeLock(storage.dataDir, processName(seat));
    if (locking.kind === 'locked') {
      locking.lock.release();
      seat++;
    } else if (clock.monotonic() >= untilMs) return locking.sentence;
    else await clock.sleep(SEATS_PAUSE_MS, stop);
  }
  return undefined;
}

/** How the supervisor was started; its workers are started with the same. */
type Started = Readonly<{ configPath: string | undefined; env: Environment; supervised: boolean }>;

/** The longest time of a worker to end after its listener has drained; whoever started this process waits for longer. */
const CLOSE_MS = 3_000;

const MAIN = join(import.meta.dir, 'main.ts');

/** Runs `gateway.processes` workers on one port until `stop`, and the metrics of all; gives a sentence for each problem. */
export async function superviseGateway(
  loaded: LoadedConfig,
  { configPath, env, supervised }: Started,
  stop: AbortSignal,
  clock: Clock,
): Promise<readonly string[]> {
  const { config } = loaded;
  const { listen, metrics: metricsAddress, processes, drainMs } = config.gateway;
  const locking = takeLock(config.storage.dataDir, 'gateway');
  if (locking.kind === 'refused') return [locking.sentence];
  const occupied = await occupiedSeat(config, stop, clock);
  if (stop.aborted) return [];
  if (occupied !== undefined) return [occupied];
  const claim = await claimPort(listen);
  if (claim.kind === 'refused') return [claim.sentence];
  const address = { ...listen, port: claim.port };

  const log = createLog('gateway');
  const command = configPath === undefined ? [MAIN] : [MAIN, '--config', configPath];
  // Looked at again when the first worker is about to listen, which takes a second or two.
  let claimed: Promise<PortClaim> | undefined;
  const port = () => (claimed ??= claimPort(address));
  let reloaded: ConfigText | undefined;
  let revisionServed = 0;
  const pool = new WorkerPool({ size: processes, launch, endMs: drainMs + CLOSE_MS, clock, log });

  function launch(worker: number, seat: number): Worker {
    const assignment = () => ({ seat, config: loaded.read, reloaded });
    const onFound = () => pool.lookAtHost();
    const health = () => pool.health;
    return launchWorker({ worker, command, env, assignment, port, onReload, onFound, health, clock });
  }

  function readPlansInUse(): ReadonlyMap<string, number> {
    const opened = openStore(join(config.storage.dataDir, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
    if (opened.kind === 'unusable') throw new Error(opened.sentence);
    try {
      return plansInUse(opened.store);
    } finally {
      opened.store.close();
    }
  }

  const configReader = createConfigReader(loaded, { env, used: readPlansInUse, clock, log });

  /** Reads plans and prices again for all workers; a config that is refused changes nothing. */
  async function reload(announces: boolean): Promise<void> {
    const again = await configReader.readAgain();
    if (again.kind === 'unusable') return log.error({ problems: again.lines }, 'the config was not reloaded');
    pool.setReloadedConfig((reloaded = again.read), announces);
    log.info('plans and credits reloaded');
  }

  /** Every worker has seen the same revision. */
  function onReload(revision: number): void {
    if (revision <= revisionServed) return;
    revisionServed = revision;
    void reload(false);
  }

  const own = new Registry();
  expose(own, 'processes{}', (put) => put(pool.listening));
  expose(own, 'process_restarts_total{}', (put) => put(pool.restarts));
  expose(own, 'process_hangs_total{}', (put) => put(pool.hangs));
  expose(own, 'log_lines_dropped_total{}', (put) => put(droppedLines()));
  const text = () => pool.collect().then(() => pool.totals.text(own));
  const status = async () => togetherStatus(await pool.collect());
  const metrics = listenForMetrics(metricsAddress, { text, contentType: own.contentType }, status);
  if (metrics.kind === 'refused') return [metrics.sentence];

  const announce = () => {
    process.on('SIGHUP', () => void reload(true));
    // A reload may have been requested while the workers started.
    if (configReader.hasChanged()) void reload(true);
    const { href } = gatewayUrl({ ...config.gateway, listen: address });
    if (supervised) writeLines('stdout', `${JSON.stringify({ ready: 'gateway', url: href })}\n`);
    log.info({ url: href, metrics: metrics.url.href, processes }, 'listening');
  };
  const problems = await pool.run(stop, announce);
  await metrics.close();
  locking.lock.release();
  log.info('stopped');
  return problems;
}

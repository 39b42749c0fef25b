import { join } from 'node:path';
import { type Clock, systemClock } from '../shared/clock.ts';
import { type Loaded, type LoadedConfig, parseConfig, readConfig } from '../shared/config/load.ts';
import { createConfigReader } from '../shared/config/reload.ts';
import type { Environment } from '../shared/config/table.ts';
import {
  ACCOUNTS_FILE,
  ACCOUNTS_MIGRATIONS,
  plansInUse,
  requestReload,
  retireDemoKeys,
} from '../shared/keys/schema.ts';
import { createLog, type Log, writeLines } from '../shared/log.ts';
import { type AppStart, fired, PARENT_ENDED, parentEnded, stopSignal } from '../shared/process.ts';
import { openStore, type Store } from '../shared/store/open.ts';
import { createGateway, type Gateway } from './compose.ts';
import { HOST_DRAINING } from './health.ts';
import { LEDGER_FILE, LEDGER_MIGRATIONS } from './ledger.ts';
import { claimNodeId, processName } from './cluster/node.ts';
import { listenForMetrics } from './metrics.ts';
import { openHosts } from './cluster/hosts.ts';
import { listen } from './server.ts';
import type { PortClaim, ReloadedConfig, SupervisorLink } from './workers.ts';

type Run = AppStart &
  Readonly<{
    random(): number;
    fillRandom(bytes: Uint8Array): unknown;
    makeId(): string;
    /** The link of a worker to its supervisor; `undefined` for a process without one. */
    link: SupervisorLink | undefined;
  }>;

/** Runs a serving process, or the supervisor of several, until a stop; resolves to a sentence for each problem that ended it. */
export async function startGateway(run: Run): Promise<readonly string[]> {
  const { link, configPath, env } = run;
  const stop = stopSignal(run.supervised);
  if (link !== undefined) {
    const assignment = await Promise.race([link.assignment(), fired(stop)]);
    if (assignment === undefined) return [];
    const given = parseConfig(assignment.config, env);
    if (given.kind === 'unusable') return given.lines;
    const later = assignment.reloaded && parseConfig(assignment.reloaded, env);
    const { plans, prices } = later?.kind === 'loaded' ? later.config : given.config;
    return runGateway({ ...given, config: { ...given.config, plans, prices } }, assignment.seat, run, stop);
  }
  const reading = readConfig(configPath);
  if (reading.kind === 'unusable') return reading.lines;
  const loaded = parseConfig(reading.read, env);
  if (loaded.kind === 'unusable') return loaded.lines;
  if (loaded.config.gateway.processes === 1) return runGateway(loaded, 1, run, stop);
  const { superviseGateway } = await import('./supervisor.ts');
  return superviseGateway(loaded, run, stop, systemClock);
}

async function runGateway(
  loaded: LoadedConfig,
  seat: number,
  run: Run,
  stop: AbortSignal,
): Promise<readonly string[]> {
  const { link, random, fillRandom } = run;
  const { config } = loaded;
  const { storage } = config;
  const number = link?.worker ?? 0;
  const isFirst = seat === 1;
  const log = createLog(processName(number));
  const clock = systemClock;

  const accounts = openStore(join(storage.dataDir, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
  if (accounts.kind === 'unusable') return [accounts.sentence];
  const openLedger = () => openStore(join(storage.dataDir, LEDGER_FILE), LEDGER_MIGRATIONS, 'whole');
  const ledger = openLedger();
  if (ledger.kind === 'unusable') return [ledger.sentence];
  const storeOptions = { ledger: ledger.store, openLedger, clock, log, random };
  const claiming = claimNodeId(number, { config, isFirst, ...storeOptions, makeId: run.makeId });
  if (claiming.kind === 'refused') return [claiming.sentence];
  const { node, sharing, lock } = claiming;
  if (config.backends.length > 0 && retireDemoKeys(accounts.store, clock.now()) > 0)
    log.warn('the demo key of the embedded chain is revoked: backends are configured');
  const stores = { accounts: accounts.store, ledger: ledger.store };
  const opening = openHosts({ ...stores, ...run, storage, isFirst, clock, log });
  if (opening.kind === 'refused') return [opening.sentence];
  const { hosts } = opening;
  const gateway = createGateway({
    node,
    sharing,
    hosts,
    supervisor: link,
    config,
    ...stores,
    clock,
    log,
    random,
    fillRandom,
  });
  await Promise.all([gateway.probeAll(stop), hosts?.accounts.settle(stop)]);

  const announce = () => (hosts === undefined ? undefined : reloadElsewhere(accounts.store, log));
  const parts = { gateway, accounts: accounts.store, announce, log };
  const problems = await serve(loaded, run, parts, stop);
  if (problems.length > 0) return problems;
  await gateway.close();
  ledger.store.close();
  accounts.store.close();
  lock.release();
  log.info('stopped');
  return [];
}

/**
 * A process whose parent died blocks the next start, which needs its seat and port: it closes its listener at once, and
 * its calls have less time than after a signal. `SEATS_WAIT_MS` of the supervisor is above both with the end of the process.
 */
const ORPHAN_DRAIN_MS = 4_000;
const ORPHAN_LEAVE_MS = 250;

type RunParts = Readonly<{
  gateway: Gateway;
  accounts: Store;
  announce(): void;
  log: Log;
}>;

/** Serves until a stop, alone or as a worker on the port it is given, and drains; gives a sentence for what refused it to. */
async function serve(
  loaded: LoadedConfig,
  { link, env, supervised }: Run,
  { gateway, accounts, announce, log }: RunParts,
  stop: AbortSignal,
): Promise<readonly string[]> {
  const clock = systemClock;
  const { gateway: listeners } = loaded.config;
  const { listen: address, metrics: metricsAddress } = listeners;
  const stopped = fired(stop).then(() => undefined);
  const own: PortClaim = { kind: 'free', port: address.port };
  const claim = link === undefined ? own : await Promise.race([link.port(), stopped]);
  if (claim === undefined) return [];
  if (claim.kind === 'refused') return [claim.sentence];
  const rpcConfig = { ...listeners, listen: { ...address, port: claim.port } };
  const health = () => (stop.reason === PARENT_ENDED ? HOST_DRAINING : gateway.health());
  const stages = { ...gateway, health };
  const rpc = listen(rpcConfig, stages, { clock, shared: link !== undefined, beat: link?.beat });
  if (rpc.kind === 'refused') return [rpc.sentence];
  const metrics =
    link === undefined ? listenForMetrics(metricsAddress, gateway.metrics, gateway.status) : undefined;
  if (metrics?.kind === 'refused') return [metrics.sentence];
  // Calls need leases, health and keys to the last one: a scan may wait for its permit far into the drain.
  const lastCallLeft = new AbortController();
  let maintenance: Promise<void>;
  if (link === undefined) {
    const used = () => plansInUse(accounts);
    const configReader = createConfigReader(loaded, { env, used, clock, log });
    const reloadOwn = async () => reloadTerms(await configReader.readAgain(), gateway, log);
    const reloadAll = () => void reloadOwn().then(announce);
    maintenance = gateway.runMaintenance(() => void reloadOwn(), lastCallLeft.signal, rpc.closeIdle);
    process.on('SIGHUP', reloadAll);
    // A change may have come while this process started.
    if (configReader.hasChanged()) reloadAll();
  } else {
    // Of several processes the supervisor reads the config for all.
    maintenance = gateway.runMaintenance(link.reload, lastCallLeft.signal, rpc.closeIdle);
    void link.serve(servingOf(gateway, env, announce), clock, stop);
  }
  if (metrics !== undefined) {
    const { href: url } = rpc.url;
    if (supervised) writeLines('stdout', `${JSON.stringify({ ready: 'gateway', url })}\n`);
    log.info({ url, metrics: metrics.url.href }, 'listening');
  }
  await fired(stop);
  log.info('draining');
  if (supervised) void parentEnded().then(() => endOrphan(rpc, listeners.drainMs, clock));
  if (stop.reason !== PARENT_ENDED) await rpc.close();
  else await rpc.close(Math.min(ORPHAN_DRAIN_MS, listeners.drainMs), ORPHAN_LEAVE_MS);
  await metrics?.close();
  lastCallLeft.abort();
  await maintenance;
  return [];
}

/** Ends a drain that its parent did not live to see. */
async function endOrphan(
  rpc: Readonly<{ close(drainMs: number, leaveMs: number): Promise<void> }>,
  drainMs: number,
  clock: Clock,
): Promise<void> {
  await clock.sleep(Math.min(ORPHAN_DRAIN_MS, drainMs), new AbortController().signal);
  await rpc.close(0, 0);
}

function servingOf(gateway: Gateway, env: Environment, announce: () => void) {
  return {
    report: async () => ({ metrics: await gateway.metrics.values(), status: gateway.status() }),
    setReloadedConfig({ config, announces }: ReloadedConfig) {
      const loaded = parseConfig(config, env);
      if (loaded.kind === 'loaded') gateway.setTerms(loaded.config);
      if (announces) announce();
    },
  };
}

/** Gateways of other hosts must have the same plans, and see by a newer revision that these changed. */
function reloadElsewhere(accounts: Store, log: Log): void {
  try {
    requestReload(accounts);
  } catch (error) {
    log.error({ err: error }, 'other apps could not be asked to read plans and credits again');
  }
}

/** Takes plans and prices from a config that was read again; one that is refused changes nothing. */
function reloadTerms(loaded: Loaded, gateway: Gateway, log: Log): void {
  if (loaded.kind === 'unusable') return log.error({ problems: loaded.lines }, 'the config was not reloaded');
  gateway.setTerms(loaded.config);
  log.info('plans and credits reloaded');
}

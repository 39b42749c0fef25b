import { join } from 'node:path';
import { systemClock } from '../shared/clock.ts';
import type { Config } from '../shared/config/config.ts';
import { loadConfig } from '../shared/config/load.ts';
import type { Environment } from '../shared/config/table.ts';
import { retireDemoKeys } from '../shared/keys/demo.ts';
import { requestReload } from '../shared/keys/reload.ts';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../shared/keys/schema.ts';
import { createLog, type Log, writeLines } from '../shared/log.ts';
import { fired, stopSignal } from '../shared/stop.ts';
import { openStore, type Store } from '../shared/store/open.ts';
import { createGateway, type Gateway } from './compose.ts';
import { LEDGER_FILE, LEDGER_MIGRATIONS } from './ledger.ts';
import { claimNodeId, processName } from './limits/limits.ts';
import { listenForMetrics } from './metrics.ts';
import { openHosts } from './replica/hosts.ts';
import { listen } from './server.ts';
import type { SupervisorLink } from './workers.ts';

type Run = Readonly<{
  configPath: string | undefined;
  env: Environment;
  /** The end of standard input is a stop, and standard output gets the ready line. */
  supervised: boolean;
  /** A number from 0 up to 1. */
  random(): number;
  /** A UUID. */
  makeId(): string;
  /** The link of a worker to its supervisor; `undefined` for a process without one. */
  link: SupervisorLink | undefined;
}>;

/**
 * Runs the gateway until a stop: as a process that serves, or, with `gateway.processes` above 1, as the supervisor of
 * that many. Resolves to one sentence for each problem that ended it; none after a clean stop.
 */
export async function startGateway(run: Run): Promise<readonly string[]> {
  const stop = stopSignal(run.supervised);
  const loaded = loadConfig(run.configPath, run.env);
  if (loaded.kind === 'unusable') return loaded.lines;
  const { config } = loaded;
  if (run.link !== undefined || config.gateway.processes === 1) return runGateway(config, run, stop);
  const { superviseGateway } = await import('./supervisor.ts');
  return superviseGateway(config, run, stop, systemClock);
}

/** Opens the stores, puts the gateway together and serves until a stop: alone, or as a worker on the port it is given. */
async function runGateway(config: Config, run: Run, stop: AbortSignal): Promise<readonly string[]> {
  const { link, random } = run;
  const { storage } = config;
  const slot = link?.worker ?? 0;
  const log = createLog(processName(slot));
  const clock = systemClock;

  const accounts = openStore(join(storage.dataDir, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
  if (accounts.kind === 'unusable') return [accounts.sentence];
  const openLedger = () => openStore(join(storage.dataDir, LEDGER_FILE), LEDGER_MIGRATIONS, 'whole');
  const ledger = openLedger();
  if (ledger.kind === 'unusable') return [ledger.sentence];
  const storeOptions = { ledger: ledger.store, openLedger, clock, log, random };
  const claiming = claimNodeId(slot, { config, ...storeOptions, makeId: run.makeId });
  if (claiming.kind === 'refused') return [claiming.sentence];
  const { node, sharing, lock } = claiming;
  if (config.backends.length > 0 && retireDemoKeys(accounts.store, clock.now()) > 0)
    log.warn('the demo key of the embedded chain is revoked: backends are configured');
  const stores = { accounts: accounts.store, ledger: ledger.store };
  const opening = openHosts({ ...stores, ...run, storage, slot, clock, log });
  if (opening.kind === 'refused') return [opening.sentence];
  const { hosts } = opening;
  const gateway = createGateway({ node, sharing, hosts, config, ...stores, clock, log, random });
  await Promise.all([gateway.probeAll(stop), hosts?.accounts.settle(stop)]);

  const { listen: address, metrics: metricsAddress } = config.gateway;
  const port = link === undefined ? address.port : await Promise.race([link.port(), fired(stop)]);
  if (port !== undefined) {
    const rpcConfig = { ...config.gateway, listen: { ...address, port } };
    const rpc = listen(rpcConfig, gateway, { clock, shared: link !== undefined });
    if (rpc.kind === 'refused') return [rpc.sentence];
    const metrics =
      link === undefined ? listenForMetrics(metricsAddress, gateway.metrics, gateway.status) : undefined;
    if (metrics?.kind === 'refused') return [metrics.sentence];
    const reload = () => reloadTerms(run, gateway, log);
    process.on('SIGHUP', () => {
      reload();
      if (hosts !== undefined) reloadElsewhere(accounts.store, log);
    });
    link?.serve(async () => ({ metrics: await gateway.metrics.values(), status: gateway.status() }));
    if (metrics !== undefined) {
      const { href: url } = rpc.url;
      if (run.supervised) writeLines('stdout', `${JSON.stringify({ ready: 'gateway', url })}\n`);
      log.info({ url, metrics: metrics.url.href }, 'listening');
    }
    const maintenance = gateway.runMaintenance(reload, stop, rpc.closeIdle);
    await fired(stop);
    log.info('draining');
    await rpc.close();
    await metrics?.close();
    await maintenance;
  }
  await gateway.close();
  ledger.store.close();
  accounts.store.close();
  lock.release();
  log.info('stopped');
  return [];
}

/** Gateways of other hosts must have the same plans, and see by a newer revision that these changed. */
function reloadElsewhere(accounts: Store, log: Log): void {
  try {
    requestReload(accounts);
  } catch (error) {
    log.error({ err: error }, 'other apps could not be asked to read plans and credits again');
  }
}

/** Takes plans and prices from the config again; a config that has become unusable changes nothing. */
function reloadTerms({ configPath, env }: Run, gateway: Gateway, log: Log): void {
  const loaded = loadConfig(configPath, env);
  if (loaded.kind === 'unusable') return log.error({ problems: loaded.lines }, 'the config was not reloaded');
  gateway.setTerms(loaded.config);
  log.info('plans and credits reloaded');
}

import { join } from 'node:path';
import { systemClock } from '../shared/clock.ts';
import { loadConfig } from '../shared/config/load.ts';
import type { Environment } from '../shared/config/table.ts';
import { retireDemoKeys } from '../shared/keys/demo.ts';
import { requestReload } from '../shared/keys/reload.ts';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../shared/keys/schema.ts';
import { createLog, type Log } from '../shared/log.ts';
import { fired, stopSignal } from '../shared/stop.ts';
import { openStore, type Store } from '../shared/store/open.ts';
import { createGateway, type Gateway } from './compose.ts';
import { LEDGER_FILE, LEDGER_MIGRATIONS } from './ledger.ts';
import { claimNodeId, processName } from './limits/node-id.ts';
import { openHosts } from './replica/hosts.ts';
import { openListeners } from './server.ts';
import type { Seat } from './workers.ts';

export type Run = Readonly<{
  configPath: string | undefined;
  env: Environment;
  /** The end of standard input asks for a stop, and standard output gets the ready line. */
  supervised: boolean;
  /** A number from 0 up to 1. */
  random(): number;
  /** A UUID. */
  makeId(): string;
  /** This process's place among several; `undefined`: it is alone. */
  seat: Seat | undefined;
}>;

/**
 * Runs the gateway until it is asked to stop; gives the exit code. Alone or in a seat it is a process that serves;
 * with `gateway.processes` above 1 it is the supervisor of as many.
 */
export async function startGateway(run: Run): Promise<number> {
  if (run.seat === undefined) {
    const loaded = loadConfig(run.configPath, run.env);
    if (loaded.kind === 'loaded' && loaded.config.gateway.processes > 1) {
      const { superviseGateway } = await import('./supervisor.ts');
      return superviseGateway(loaded.config, run, systemClock);
    }
  }
  return runGateway(run);
}

/** Runs one gateway process until it is asked to stop; gives the exit code. What an operator must know goes to stderr in one sentence. */
async function runGateway(run: Run): Promise<number> {
  const { seat, random } = run;
  const stop = stopSignal(run.supervised);
  const loaded = loadConfig(run.configPath, run.env);
  if (loaded.kind === 'unusable') return complain(...loaded.lines);
  const { config } = loaded;
  const { dataDir } = config.storage;
  const slot = seat?.slot ?? 0;
  const log = createLog(processName(slot));
  const clock = systemClock;

  const accounts = openStore(join(dataDir, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
  if (accounts.kind === 'unusable') return complain(accounts.sentence);
  const openLedger = () => openStore(join(dataDir, LEDGER_FILE), LEDGER_MIGRATIONS);
  const ledger = openLedger();
  if (ledger.kind === 'unusable') return complain(ledger.sentence);
  const { makeId } = run;
  const storeOptions = { ledger: ledger.store, openLedger, clock, log, random };
  const claiming = claimNodeId(slot, { config, ...storeOptions, makeId });
  if (claiming.kind === 'refused') return complain(claiming.sentence);
  const { node, sharing, lock } = claiming.claim;
  if (config.backends.length > 0 && retireDemoKeys(accounts.store, clock.now()) > 0)
    log.warn('the demo key of the embedded chain is revoked: backends are configured');
  const stores = { accounts: accounts.store, ledger: ledger.store };
  const { storage } = config;
  const opening = openHosts({ ...stores, ...run, storage, slot, clock, log });
  if (opening.kind === 'refused') return complain(opening.sentence);
  const { hosts } = opening;
  const gateway = createGateway({ node, sharing, hosts, config, ...stores, clock, log, random });
  await Promise.all([gateway.look(stop), hosts?.accounts.settle(stop)]);
  const opened = await openListeners(config.gateway, gateway, { clock, seat, stop });
  if (opened.kind === 'refused') return complain(opened.sentence);

  if (opened.kind === 'open') {
    const reload = () => reloadTerms(run, gateway, log);
    process.on('SIGHUP', () => {
      reload();
      // Gateways of other hosts must have the same plans, and a newer revision to know them by.
      if (hosts !== undefined) askForReload(accounts.store, log);
    });
    if (seat === undefined) announce(opened, run.supervised, log);
    else seat.serve(gateway.metrics.values, gateway.status);
    const tending = gateway.tend(reload, stop);
    await fired(stop);
    log.info('draining');
    await opened.drain();
    await tending;
  }
  await gateway.close();
  ledger.store.close();
  accounts.store.close();
  lock.release();
  log.info('stopped');
  return 0;
}

type Open = Extract<Awaited<ReturnType<typeof openListeners>>, { kind: 'open' }>;

function announce({ url, metricsUrl }: Open, supervised: boolean, log: Log) {
  if (supervised) console.log(JSON.stringify({ ready: 'gateway', url: url.href }));
  log.info({ url: url.href, metrics: metricsUrl?.href }, 'listening');
}

function askForReload(accounts: Store, log: Log) {
  try {
    requestReload(accounts);
  } catch (error) {
    log.error({ err: error }, 'other apps could not be asked to read plans and credits again');
  }
}

/** Takes plans and prices from the config again; a config that has become unusable changes nothing. */
function reloadTerms({ configPath, env }: Run, gateway: Gateway, log: Log) {
  const loaded = loadConfig(configPath, env);
  if (loaded.kind === 'unusable') return log.error({ problems: loaded.lines }, 'the config was not reloaded');
  gateway.setTerms(loaded.config);
  log.info('plans and credits reloaded');
}

function complain(...sentences: readonly string[]): 1 {
  for (const sentence of sentences) console.error(sentence);
  return 1;
}

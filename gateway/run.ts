import { join } from 'node:path';
import { systemClock } from '../shared/clock.ts';
import type { Config } from '../shared/config/config.ts';
import { loadConfig } from '../shared/config/load.ts';
import type { Environment } from '../shared/config/table.ts';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../shared/keys/schema.ts';
import { createLog } from '../shared/log.ts';
import { stopSignal } from '../shared/stop.ts';
import { takeLock } from '../shared/store/lock.ts';
import { openStore } from '../shared/store/open.ts';
import { createGateway } from './gateway.ts';
import { LEDGER_FILE, LEDGER_MIGRATIONS } from './limits/ledger.ts';
import { listen } from './listen.ts';

/** How long requests under way may take to end after a stop was asked for. */
const DRAIN_MS = 25_000;

/** Runs the gateway until it is asked to stop; gives the exit code. What an operator must know goes to stderr in one sentence. */
export async function runGateway(
  path: string | undefined,
  env: Environment,
  supervised: boolean,
  random: () => number,
): Promise<number> {
  const stop = stopSignal(supervised);
  const loaded = loadConfig(path, env);
  if (loaded.kind === 'unusable') return complain(...loaded.lines);
  const { config } = loaded;
  const { dataDir } = config.storage;

  const locking = takeLock(dataDir, 'gateway');
  if (locking.kind === 'refused') return complain(locking.sentence);
  const accounts = openStore(join(dataDir, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
  if (accounts.kind === 'unusable') return complain(accounts.sentence);
  const ledger = openStore(join(dataDir, LEDGER_FILE), LEDGER_MIGRATIONS);
  if (ledger.kind === 'unusable') return complain(ledger.sentence);

  const log = createLog('gateway');
  const gateway = createGateway({
    config,
    accounts: accounts.store,
    ledger: ledger.store,
    clock: systemClock,
    log,
    random,
  });
  const listening = listen(config.gateway, gateway);
  if (listening.kind === 'refused') return complain(listening.sentence);
  announce(config, listening, supervised, log);

  const reload = () => reloadTerms(path, env, gateway, log);
  process.on('SIGHUP', reload);
  const tending = gateway.tend(reload, stop);
  await new Promise((resolve) => stop.addEventListener('abort', resolve, { once: true }));
  log.info('draining');
  await listening.close(DRAIN_MS);
  await tending;
  gateway.close();
  ledger.store.close();
  accounts.store.close();
  locking.lock.release();
  log.info('stopped');
  return 0;
}

type Log = ReturnType<typeof createLog>;
type Listening = Extract<ReturnType<typeof listen>, { kind: 'listening' }>;

function announce(config: Config, { url, metricsUrl }: Listening, supervised: boolean, log: Log) {
  if (supervised) console.log(JSON.stringify({ ready: 'gateway', url: url.href }));
  log.info({ url: url.href, metrics: metricsUrl.href }, 'listening');
  if (config.gateway.processes > 1)
    log.warn('gateway.processes is above 1, and this version runs one process');
  if (config.storage.redisUrl !== undefined)
    log.warn('storage.redis is set, and this version keeps limits in one process');
}

/** Takes plans and prices from the config again; a config that has become unusable changes nothing. */
function reloadTerms(
  path: string | undefined,
  env: Environment,
  gateway: ReturnType<typeof createGateway>,
  log: Log,
) {
  const loaded = loadConfig(path, env);
  if (loaded.kind === 'unusable') return log.error({ problems: loaded.lines }, 'the config was not reloaded');
  gateway.setTerms(loaded.config);
  log.info('plans and credits reloaded');
}

function complain(...sentences: readonly string[]): 1 {
  for (const sentence of sentences) console.error(sentence);
  return 1;
}

import { join } from 'node:path';
import { systemClock } from '../shared/clock.ts';
import type { Config } from '../shared/config/config.ts';
import { loadConfig } from '../shared/config/load.ts';
import { createConfigReader } from '../shared/config/reload.ts';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS, plansInUse, requestReload } from '../shared/keys/schema.ts';
import { LEDGER_FILE, USAGE_MIGRATIONS } from '../shared/ledger/schema.ts';
import { createLog, type Log, writeLines } from '../shared/log.ts';
import type { Secret } from '../shared/secret.ts';
import { type AppStart, fired, stopSignal } from '../shared/process.ts';
import { takeLock } from '../shared/store/lock.ts';
import { openStore, type Store } from '../shared/store/open.ts';
import { readWatched } from '../shared/watched.ts';
import { createAccounts } from './accounts/accounts.ts';
import { createAudit } from './accounts/audit.ts';
import { issueOwnKey, needsOwnKey } from './accounts/own-key.ts';
import { createAuthService } from './auth/auth-service.ts';
import { createConsoleKeys } from './auth/console-keys.ts';
import { consoleComplaint } from './auth/provider.ts';
import { consoleUrlOf, inviteFirstOperator, showLink } from './auth/sign-up.ts';
import { composeDeploys } from './compose.ts';
import { firstOperatorLink, paths } from './console/paths.ts';
import { internetPolicy } from './delivery/policy.ts';
import { createSender } from './delivery/send.ts';
import { storeSize } from './health/health.ts';
import { createReadRedis } from './health/neighbours.ts';
import { DEPLOYS_MIGRATIONS } from './schema.ts';
import { listen } from './server.ts';
import {
  countSealed,
  createSeal,
  createSecretsOf,
  type Seal,
  sealedElsewhere,
  takeSealingKeys,
} from './webhooks/seal.ts';

type RandomBytes = (bytes: number) => Uint8Array;

const WATCHER_TAKEN =
  'The account sluice-watcher, which the watcher reads as, was created by someone else. Rename it: bun run sluice account rename sluice-watcher NAME';

/** How long responses may take to end after a stop. */
const DRAIN_MS = 5_000;

/** Runs the app until a signal; gives what prevents a start. Only one runs on a database: two would send every event twice. */
export async function runDeploys(
  { configPath, env, supervised }: AppStart,
  random: RandomBytes,
): Promise<readonly string[]> {
  const stop = stopSignal(supervised);
  const loaded = loadConfig(configPath, env);
  if (loaded.kind === 'unusable') return loaded.lines;
  const { config } = loaded;
  const watched = readWatched(config.deploys.programsPath);
  if (watched.kind === 'problems') return watched.lines;

  const { dataDir } = config.storage;
  // Before anything is opened: a later release must not migrate what an earlier one still runs on.
  const locking = takeLock(dataDir, 'deploys');
  if (locking.kind === 'refused') return [locking.sentence];
  const migrations = { ...ACCOUNTS_MIGRATIONS, ...DEPLOYS_MIGRATIONS };
  const opened = openStore(join(dataDir, ACCOUNTS_FILE), migrations, 'whole');
  if (opened.kind === 'unusable') return [opened.sentence];
  // Power loss must not take back a delivery that was recorded: the receiver would hear of it twice.
  opened.store.run('PRAGMA synchronous = FULL');
  const ledger = openStore(join(dataDir, LEDGER_FILE), USAGE_MIGRATIONS);
  if (ledger.kind === 'unusable') return [ledger.sentence];
  const ledgerReader = openStore(join(dataDir, LEDGER_FILE), USAGE_MIGRATIONS);
  if (ledgerReader.kind === 'unusable') return [ledgerReader.sentence];
  const sealing = takeSealingKeys(config.storage.secret, dataDir, random, countSealed(opened.store));
  if (sealing.kind === 'unusable') return [sealing.sentence];

  const log = createLog('deploys');
  const used = () => plansInUse(opened.store);
  const configReader = createConfigReader(loaded, { env, used, clock: systemClock, log });
  process.on('SIGHUP', () => {
    askForReload(opened.store, log);
    void configReader.readAgain(); // names what needs a restart
  });
  // A change may have come while this process started.
  if (configReader.hasChanged()) askForReload(opened.store, log);
  const issuing = { store: opened.store, plans: config.plans, clock: systemClock, random };
  const issued = needsOwnKey(config) ? issueOwnKey(issuing) : undefined;
  if (issued?.kind === 'name-taken') return [WATCHER_TAKEN];
  if (issued) log.info("reading through this installation's gateway with a key of its own");
  const deploys = composeDeploys({
    config: { ...config.deploys, rpcKey: issued ? issued.key : config.deploys.rpcKey },
    programs: watched.programs,
    store: opened.store,
    ledger: ledger.store,
    ledgerReader: ledgerReader.store,
    clock: systemClock,
    fetch,
    log,
    random,
    consoleUsers: consoleUsersOf(config, opened.store, sealing.keys, random, log),
    ...redisDepsOf(config, configReader, log),
    delivery: deliveryDepsOf(config, opened.store, createSeal(sealing.keys, random), log),
  });
  const listening = listen(config.deploys, deploys.answer, deploys.answerMetrics);
  if (listening.kind === 'refused') return [listening.sentence];
  if (!supervised) inviteOperator(config, opened.store, listening.url, random);
  if (supervised) writeLines('stdout', `${JSON.stringify({ ready: 'deploys', url: listening.url.href })}\n`);
  // Hosts alone: the rest of a provider's address may be a key.
  const rpc = config.deploys.rpcUrls.map(({ host }) => host);
  log.info({ url: listening.url.href, metrics: listening.metricsUrl.href, rpc }, 'listening');

  await serve(deploys, listening, log, stop);
  for (const { store } of [opened, ledger, ledgerReader]) store.close();
  locking.lock.release();
  log.info('stopped');
  return [];
}

/** Looks after everything until a stop, and after what calls under way may change until the last has left. */
async function serve(
  { maintain }: ReturnType<typeof composeDeploys>,
  { close }: Readonly<{ close(drainMs: number): Promise<void> }>,
  log: Log,
  stop: AbortSignal,
): Promise<void> {
  const lastCallLeft = new AbortController();
  const maintaining = maintain(stop, lastCallLeft.signal);
  await fired(stop);
  log.info('draining');
  await close(DRAIN_MS);
  lastCallLeft.abort();
  await maintaining;
}

/** Nothing where browsers would not keep the login. */
function consoleUsersOf(
  { gateway, deploys, plans, storage }: Config,
  store: Store,
  secrets: readonly [Secret, ...Secret[]],
  random: RandomBytes,
  log: Log,
) {
  const complaint = consoleComplaint(deploys.publicUrl);
  if (complaint !== undefined) {
    log.error(complaint);
    return undefined;
  }
  const keys = createConsoleKeys(secrets, random);
  const spentOf = () => 0; // of new accounts alone, which have spent nothing
  const { note } = createAudit(store);
  const accounts = createAccounts({ store, plans, spentOf, clock: systemClock, note });
  const auth = createAuthService({
    store,
    config: deploys,
    keys,
    note,
    accounts,
    providerReturnUrl: new URL(paths.providerReturn, deploys.publicUrl),
    fetch,
    clock: systemClock,
    random,
  });
  const { clientAddressHeader } = deploys;
  const { dataDir, redisUrl } = storage;
  const installation = {
    gatewayUrls: deploys.gatewayUrls,
    storeSizes: () => [ACCOUNTS_FILE, LEDGER_FILE].map((name) => storeSize(name, join(dataDir, name))),
    readRedis: redisUrl && createReadRedis(redisUrl, systemClock),
  };
  return { auth, clientAddressHeader, plans, rpcUrl: gateway.publicUrl, installation };
}

/** While there is no operator, shows the link that creates one. `bun start` shows its own. */
function inviteOperator(
  { deploys, storage }: Config,
  store: Store,
  listenUrl: URL,
  random: RandomBytes,
): void {
  if (consoleComplaint(deploys.publicUrl) !== undefined) return;
  const token = inviteFirstOperator({ store, clock: systemClock, random });
  if (token === undefined) return;
  const link = firstOperatorLink(consoleUrlOf(deploys.publicUrl, listenUrl), token);
  const shown = showLink(link, storage.dataDir, process.stdout.isTTY);
  const which = shown.kind === 'terminal' ? 'This link' : 'The link in this file';
  const text = `There is no operator yet. ${which} creates one, once, within 24 hours:`;
  writeLines('stdout', `${text}\n${shown.kind === 'terminal' ? shown.url : shown.path}\n`);
}

/** Gateways read plans and prices from the config again; those on other hosts get them published. */
function askForReload(accounts: Store, log: Log): void {
  try {
    requestReload(accounts);
    log.info('requested a reload of plans and credits');
  } catch (error) {
    log.error({ err: error }, 'a reload of plans and credits could not be requested');
  }
}

/** The Redis of gateways on other hosts, and the plans and prices to publish at a reload. */
function redisDepsOf(
  { storage: { redisUrl } }: Config,
  { readAgain }: ReturnType<typeof createConfigReader>,
  log: Log,
) {
  if (redisUrl === undefined) return {};
  const readTerms = async () => {
    const loaded = await readAgain();
    if (loaded.kind === 'loaded') return loaded.config;
    log.error({ problems: loaded.lines }, 'plans and credits were not republished');
    return undefined;
  };
  return { redis: { url: redisUrl.reveal(), readTerms } };
}

/** How webhooks are kept and sent. Of the config, only the service's own name affects where they may lead. */
function deliveryDepsOf({ deploys }: Config, store: Store, seal: Seal, log: Log) {
  const policy = internetPolicy([deploys.publicUrl.hostname]);
  const lost = sealedElsewhere(store, seal);
  if (lost > 0)
    log.error(
      { webhooks: lost },
      'webhooks cannot be signed: their secrets are encrypted under another storage.secret',
    );
  return { seal, policy, send: createSender(policy, systemClock), secretsOf: createSecretsOf(store, seal) };
}

import { systemClock } from '../shared/clock.ts';
import { loadConfig } from '../shared/config/load.ts';
import type { Environment } from '../shared/config/table.ts';
import { createLog, writeLines } from '../shared/log.ts';
import { ACCOUNT_FILES, type AppStart, stopSignal } from '../shared/process.ts';
import { readWatched } from '../shared/watched.ts';
import { createLocalnet, type Localnet } from './compose.ts';
import { type AccountSources, readAccountFiles } from './genesis/account-files.ts';
import type { ServedLocalnet } from './http/server.ts';

/** How long answers under way may take to end after a stop signal. */
const DRAIN_MS = 5_000;

/**
 * Runs the localnet until a stop signal; gives what prevents a start, a sentence each for the operator. `random` gives n
 * uniform bytes.
 */
export async function runLocalnet(
  { configPath, env, supervised }: AppStart,
  random: (bytes: number) => Uint8Array,
): Promise<readonly string[]> {
  const stop = stopSignal(supervised);
  const loaded = loadConfig(configPath, env);
  if (loaded.kind === 'unusable') return loaded.lines;
  const { localnet: config, storage, deploys } = loaded.config;
  const watched = readWatched(deploys.programsPath);
  if (watched.kind === 'problems') return watched.lines;
  const programs = watched.programs.map(({ address }) => address);
  const files = readAccountFiles({ dir: config.accountsDir, named: namedFiles(env) });
  if (files.kind === 'problems') return files.lines;
  const log = createLog('localnet');
  let localnet: Localnet | undefined;
  let served: ServedLocalnet;
  try {
    const { dataDir } = storage;
    const { accounts } = files;
    localnet = await createLocalnet({ ...config, programs, accounts, dataDir, clock: systemClock, random });
    const onFault = (cause: unknown) => log.error({ err: cause }, 'a call failed');
    served = localnet.serve({ ...config.listen, onFault });
  } catch (cause) {
    localnet?.close();
    return [cause instanceof Error ? cause.message : String(cause)];
  }
  if (supervised) writeLines('stdout', `${JSON.stringify({ ready: 'localnet', url: served.url })}\n`);
  const { slotAt, genesisHash: genesis } = localnet.chain;
  log.info({ url: served.url, slot: Number(slotAt('processed')), genesis }, 'listening');

  await localnet.run(stop);
  log.info('draining');
  await drain(served);
  localnet.close();
  log.info('stopped');
  return [];
}

/** Lets answers under way end, and cuts those that take too long. */
async function drain(served: ServedLocalnet): Promise<void> {
  const ended = new AbortController();
  const late = systemClock.sleep(DRAIN_MS, ended.signal).then(() => served.stop(true));
  await Promise.race([served.stop(), late]);
  ended.abort();
}

/** The `--account ADDRESS FILE` of `sluice start`, which it passes on as JSON. */
function namedFiles(env: Environment): AccountSources['named'] {
  return JSON.parse(env[ACCOUNT_FILES] ?? '[]');
}

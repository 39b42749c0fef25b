import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../shared/clock.ts';
import { loadConfig } from '../shared/config/load.ts';
import type { Environment } from '../shared/config/table.ts';
import { createLog, writeLines } from '../shared/log.ts';
import { stopSignal } from '../shared/process.ts';
import { createLocalnet, type Localnet } from './compose.ts';
import { type GenesisProgram, programsFrom } from './genesis/accounts.ts';
import type { ServedLocalnet } from './http/server.ts';

/** How long answers under way may take to end after a stop signal. */
const DRAIN_MS = 5_000;
const BUILT_IN_PROGRAMS = join(import.meta.dir, '../deploys/watch/programs.json');

/** How the process was started. */
type RunOptions = Readonly<{
  path: string | undefined;
  env: Environment;
  supervised: boolean;
  random(bytes: number): Uint8Array;
}>;

/**
 * Runs the localnet until a stop signal; gives the exit code. What an operator must know to start it goes to
 * standard error, a sentence each.
 */
export async function runLocalnet({ path, env, supervised, random }: RunOptions): Promise<number> {
  const stop = stopSignal(supervised);
  const loaded = loadConfig(path, env);
  if (loaded.kind === 'unusable') return complain(...loaded.lines);
  const { localnet: config, storage, deploys } = loaded.config;
  const log = createLog('localnet');
  let localnet: Localnet | undefined;
  let served: ServedLocalnet;
  try {
    const programs = readPrograms(deploys.programsPath ?? BUILT_IN_PROGRAMS);
    localnet = await createLocalnet({
      ...config,
      programs,
      dataDir: storage.dataDir,
      clock: systemClock,
      random,
    });
    const onFault = (cause: unknown) => log.error({ err: cause }, 'a call failed');
    served = localnet.serve({ ...config.listen, onFault });
  } catch (cause) {
    localnet?.close();
    return complain(cause instanceof Error ? cause.message : String(cause));
  }
  if (supervised) writeLines('stdout', `${JSON.stringify({ ready: 'localnet', url: served.url })}\n`);
  const { slotAt, genesisHash: genesis } = localnet.chain;
  log.info({ url: served.url, slot: Number(slotAt('processed')), genesis }, 'listening');

  await localnet.run(stop);
  log.info('draining');
  await drain(served);
  localnet.close();
  log.info('stopped');
  return 0;
}

function readPrograms(path: string): readonly GenesisProgram[] {
  let list: unknown;
  try {
    list = JSON.parse(readFileSync(path, 'utf8'));
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`The list of programs ${path} cannot be read (${reason}).`, { cause });
  }
  return programsFrom(list, path);
}

/** Lets answers under way end, and cuts those that take too long. */
async function drain(served: ServedLocalnet): Promise<void> {
  const ended = new AbortController();
  const late = systemClock.sleep(DRAIN_MS, ended.signal).then(() => served.stop(true));
  await Promise.race([served.stop(), late]);
  ended.abort();
}

function complain(...sentences: readonly string[]): 1 {
  for (const sentence of sentences) writeLines('stderr', `${sentence}\n`);
  return 1;
}

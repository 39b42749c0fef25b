import type { Clock } from '../shared/clock.ts';
import type { DeploysConfig } from '../shared/config/config.ts';
import { createIdentify } from '../shared/keys/identify.ts';
import type { Log } from '../shared/log.ts';
import type { Store } from '../shared/store/open.ts';
import { createApp } from './api/app.ts';
import { createProgramsAnswer } from './api/programs.ts';
import { createRequestLog } from './api/request-log.ts';
import { healthOf } from './health.ts';
import { createMetrics } from './metrics.ts';
import { createBlockTimeStore } from './store/block-times.ts';
import { createReadings } from './store/readings.ts';
import { createBlockTimes } from './watch/block-time.ts';
import { createRead } from './watch/failover.ts';
import { createNotes } from './watch/notes.ts';
import { deploySlotOf, type Reading } from './watch/program-state.ts';
import { createRpcBackend, type Fetch } from './watch/rpc.ts';
import type { WatchedProgram } from './watch/watched.ts';
import { createWatcher } from './watch/watcher.ts';

export type DeploysDeps = Readonly<{
  config: Pick<DeploysConfig, 'publicUrl' | 'rpcUrls' | 'rpcKey' | 'pollMs'>;
  programs: readonly WatchedProgram[];
  /** Holds accounts, keys and what the watcher knows. */
  store: Store;
  clock: Clock;
  fetch: Fetch;
  log: Log;
}>;

/** How long a revoked key may go on working. */
const REFRESH_MS = 250;

/** The whole app short of sockets and signals. `tend` watches the chain and the keys until its signal aborts. */
export function createDeploys({ config, programs, store, clock, fetch, log }: DeploysDeps) {
  const backends = config.rpcUrls.map((url, i) =>
    createRpcBackend({ name: `rpc_urls[${i}]`, url, key: config.rpcKey }, { fetch, clock }),
  );
  const readings = createReadings(store);
  const blockTimes = createBlockTimes(backends, createBlockTimeStore(store), clock);
  const notes = createNotes(log, programs, readings.deploySlots());
  const keys = createIdentify(store, clock);
  const watcher = createWatcher({
    read: createRead(
      backends,
      programs.map(({ address }) => address),
    ),
    save: (latest, genesisHash) => {
      if (readings.save(latest, genesisHash) === 'same-chain') return;
      blockTimes.forget();
      notes.noteOtherChain();
    },
    fillBlockTimes: (reading, signal) => blockTimes.fill(deploySlotsOf(reading), signal),
    noteRead: (latest, deploys, reasons) => {
      metrics.noteRead(latest, deploys.length);
      notes.noteRead(latest, deploys, reasons);
    },
    noteUnread: (unread) => {
      metrics.noteUnread(unread.kind);
      notes.noteUnread(unread);
    },
    noteBroken: (error) => log.error({ err: error }, 'looking up block times broke'),
    clock,
    pollMs: config.pollMs,
  });
  const metrics = createMetrics(() => {
    const { latest } = watcher.state();
    return latest === undefined ? undefined : clock.now() - latest.checkedAtMs;
  });
  const app = createApp({
    answerPrograms: createProgramsAnswer({
      identify: keys.identify,
      enter: createRequestLog(),
      latest: () => watcher.state().latest,
      watched: programs,
      timeOf: blockTimes.timeOf,
      clock,
    }),
    health: () => healthOf(watcher.state(), config.pollMs, clock.now()),
    noteAnswer: metrics.noteAnswer,
    noteBroken: (error) => log.error({ err: error }, 'a request broke'),
    publicUrl: config.publicUrl,
  });

  async function refreshKeys(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      keys.refresh();
      await clock.sleep(REFRESH_MS, signal);
    }
  }

  return {
    answer: (request: Request) => app.handle(request),
    answerMetrics: metrics.answer,
    tend: async (signal: AbortSignal) => void (await Promise.all([watcher.run(signal), refreshKeys(signal)])),
  };
}

function deploySlotsOf(reading: Reading): bigint[] {
  return [...reading.programs.values()].flatMap((state) => deploySlotOf(state) ?? []);
}

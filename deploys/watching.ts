import type { Clock } from '../shared/clock.ts';
import type { DeploysConfig } from '../shared/config/config.ts';
import type { Log } from '../shared/log.ts';
import type { Store } from '../shared/store/open.ts';
import type { Metrics } from './metrics.ts';
import type { Enqueue } from './outbox/enqueue.ts';
import type { Outbox } from './outbox/outbox.ts';
import { createReadings } from './watch/readings.ts';
import { createNotes, createWatcher } from './watch/watcher.ts';
import { createBlockTimes, createBlockTimeStore, createFill } from './watch/block-time.ts';
import { createRead } from './watch/read.ts';
import type { WatchedProgram } from './watch/watched.ts';
import { createRpcBackend, type Fetch } from './watch/rpc.ts';

type Deps = Readonly<{
  config: Pick<DeploysConfig, 'rpcUrls' | 'rpcKey' | 'pollMs'>;
  programs: readonly WatchedProgram[];
  store: Store;
  enqueue: Enqueue;
  outbox: Outbox;
  metrics: Pick<Metrics, 'noteRead' | 'noteUnread'>;
  /** Called when a block time that an event may wait for has become known. */
  wake(): void;
  clock: Clock;
  fetch: Fetch;
  log: Log;
}>;

/** The watcher with what it reads through and writes to. */
export function createWatching({ config, programs, store, enqueue, outbox, metrics, wake, ...deps }: Deps) {
  const { clock, fetch, log } = deps;
  const backends = config.rpcUrls.map((url, i) =>
    createRpcBackend({ name: `rpc_urls[${i}]`, url, key: config.rpcKey }, { fetch, clock }),
  );
  const readings = createReadings(store);
  const times = createBlockTimeStore(store);
  const rememberTime = (slot: bigint, unixSeconds: number) => {
    times.save(slot, unixSeconds);
    wake();
  };
  const blockTimes = createBlockTimes(backends, { ...times, save: rememberTime }, clock);
  const notes = createNotes(log, programs, readings.deploySlots());
  const watcher = createWatcher({
    read: createRead(
      backends,
      programs.map(({ address }) => address),
    ),
    save: (latest, deploys, genesisHash) => {
      const addEvents = () => enqueue.deploys(deploys, clock.now());
      if (readings.save(latest, genesisHash, addEvents) === 'same-chain') return;
      blockTimes.forget();
      notes.noteOtherChain();
    },
    fillBlockTimes: createFill({ blockTimes, awaited: outbox.awaited, clock }),
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
  return { watcher, timeOf: blockTimes.timeOf };
}

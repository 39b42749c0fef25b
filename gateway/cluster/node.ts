import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../shared/clock.ts';
import type { Config } from '../../shared/config/config.ts';
import type { Log } from '../../shared/log.ts';
import { NO_REDIS_ADDRESS } from '../../shared/redis/options.ts';
import { takeLock } from '../../shared/store/lock.ts';
import type { Opened, Store } from '../../shared/store/open.ts';
import { type Journal, spentBy } from '../limits/journal.ts';
import { createLeases } from './leases.ts';
import { createLeaseSync, type LeaseSync, type StoreLink } from './lease-sync.ts';
import { createCallPermits } from '../limits/calls.ts';
import type { Limits } from '../limits/limits.ts';
import type { LeaseStore, Released } from './messages.ts';
import { createScanLeases } from './scan-leases.ts';
import { createSharedCharging } from './shared-charging.ts';
import { openRedisStore } from './store-redis.ts';
import { createSqliteStore } from './store-sqlite.ts';

export type Sharing = Readonly<{
  /** Grows with every start of the process. */
  fence: number;
  /** `onLoss` is called when the store may have lost what was reported. */
  openLeases(onLoss: () => void): LeaseStore;
  /** The part of an account's rate that this process may let in alone while it does not know the others. */
  share: number;
  /** Whether it reports what every node of this host spent, as those that do not run cannot; twice changes nothing. */
  reportsAll: boolean;
}>;

type ClaimOptions = Readonly<{
  config: Config;
  /** Of the processes of a host one reports for those that do not run. */
  isFirst: boolean;
  ledger: Store;
  /** Opens the ledger once more: leases have a connection of their own. */
  openLedger(): Opened;
  clock: Clock;
  log: Log;
  random(): number;
  makeId(): string;
}>;

/** The name of a process: of its lock and, alone, of its rows in the ledger. Process 0 has no supervisor. */
export function processName(index: number): string {
  return index === 0 ? 'gateway' : `gateway-${index}`;
}

/**
 * Claims the id of process `index` of the gateway, 0 for one without a supervisor; no other process has it then. A process
 * that shares accounts is a node: its UUID is in the file `NAME.node` of the data directory, made at the first start, and
 * its fence is above all earlier ones. The node owns the name's journal, so the file may only be deleted with the ledger.
 * `node` has the process's rows in the ledger; without `sharing` the process is alone. `sentence` tells the operator why not.
 */
export function claimNodeId(index: number, options: ClaimOptions) {
  const { config, isFirst, ledger, clock, makeId } = options;
  const { dataDir, redisUrl } = config.storage;
  const name = processName(index);
  const locking = takeLock(dataDir, name);
  if (locking.kind === 'refused') return locking;
  const { lock } = locking;
  if (redisUrl === undefined && config.gateway.processes === 1)
    return { kind: 'claimed', node: name, sharing: undefined, lock } as const;
  try {
    const node = nodeIdIn(join(dataDir, `${name}.node`), makeId);
    const fence = nextFence(ledger, node, clock.now());
    const openLeases = (onLoss: () => void) => openLeaseStore(options, onLoss);
    const sharing = { fence, openLeases, share: 1 / config.gateway.processes, reportsAll: isFirst };
    return { kind: 'claimed', node, sharing, lock } as const;
  } catch (error) {
    lock.release();
    const reason = error instanceof Error ? error.message : String(error);
    const sentence = `The node of ${name} in ${dataDir} cannot be known (${reason}).`;
    return { kind: 'refused', sentence } as const;
  }
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

function nodeIdIn(path: string, makeId: () => string): string {
  if (!existsSync(path)) {
    // Through a rename, so that a start that dies half-way leaves no half of an id.
    writeFileSync(`${path}.new`, `${makeId()}\n`, { flush: true, mode: 0o600 });
    renameSync(`${path}.new`, path);
  }
  const text = readFileSync(path, 'utf8').trim();
  if (UUID.test(text)) return text;
  throw new Error(
    `${path} does not hold a UUID; put it back from a backup, or delete it to start a new node`,
  );
}

/** The node's next fence, at least the wall time: a lost ledger must not start below what a store remembers. */
function nextFence(ledger: Store, node: string, nowMs: number): number {
  const next = ledger.prepare<{ fence: number }, [string, number]>(`
    INSERT INTO nodes (node, fence) VALUES (?, ?)
    ON CONFLICT (node) DO UPDATE SET fence = max(fence + 1, excluded.fence)
    RETURNING fence`);
  const row = next.get(node, Math.floor(nowMs));
  if (row === null) throw new Error('the ledger gave no fence');
  return row.fence;
}

function openLeaseStore(options: ClaimOptions, onLoss: () => void): LeaseStore {
  const { config, openLedger, clock, log, random } = options;
  const url = config.storage.redisUrl?.reveal();
  const onReleased = (accountId: number, released: Released) =>
    log.warn({ accountId, ...released }, 'credits of a process that was silent for a day are released');
  if (url === undefined) {
    const own = openLedger();
    if (own.kind === 'unusable') throw new Error(own.sentence);
    return createSqliteStore(own.store, { clock, onReleased });
  }
  const onWarning = (warning: string) => log.warn({ warning }, 'redis');
  const store = openRedisStore({ url, clock, random, onWarning, onLoss, onReleased });
  if (store === undefined) throw new Error(NO_REDIS_ADDRESS);
  return store;
}

type SharedOptions = Readonly<{
  node: string;
  sharing: Sharing;
  journal: Journal;
  ledger: Store;
  clock: Clock;
  /** The revision of the accounts at which callers were last read. */
  revision(): number;
}>;

/** The limits of one of several processes, and the link to their store: leases in memory, topped up behind the requests. */
export function limitsShared(options: SharedOptions): Limits & Readonly<{ link: StoreLink }> {
  const { node, sharing, journal, ledger, clock, revision } = options;
  const { fence, share, reportsAll } = sharing;
  const accounts = createLeases({ journal, revision, share });
  const closing = new AbortController();
  const store = sharing.openLeases(resync);
  const scans = createScanLeases({
    monotonic: clock.monotonic,
    revision,
    isOut: () => sync.isOut(),
    flushSoon: () => sync.flushSoon(),
  });
  const sync: LeaseSync = createLeaseSync({ accounts, scans, store, clock, node, fence });

  /** Reports what a crash, or a loss of the store, may have kept it from counting. */
  function resync(): void {
    const rows = Map.groupBy(spentBy(ledger, reportsAll ? null : node), (row) => row.node);
    for (const [of, spent] of rows) void sync.resync(of, spent, closing.signal);
  }

  return {
    permits: createCallPermits(),
    scans,
    charging: createSharedCharging(accounts, sync, journal, clock),
    link: sync,
    async tend(signal) {
      resync();
      await sync.run(signal);
    },
    async close() {
      await sync.release();
      closing.abort();
      await store.close();
    },
  };
}

import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../shared/clock.ts';
import type { Config } from '../../shared/config/config.ts';
import type { Log } from '../../shared/log.ts';
import { NO_REDIS_ADDRESS, placesFrom } from '../../shared/redis/options.ts';
import { type Lock, takeLock } from '../../shared/store/lock.ts';
import type { Opened, Store } from '../../shared/store/open.ts';
import { otherNodes } from './journal.ts';
import type { LeaseStore, NodeId } from './messages.ts';
import { openRedisStore } from './store-redis.ts';
import { createSqliteStore } from './store-sqlite.ts';

/** Whether other gateway processes may charge the same accounts. */
function sharesAccounts({ gateway, storage }: Config): boolean {
  return gateway.processes > 1 || storage.redisUrl !== undefined;
}

/** The name of a process: of its lock and, alone, of its rows in the ledger. Process 0 has no supervisor. */
export function processName(index: number): string {
  return index === 0 ? 'gateway' : `gateway-${index}`;
}

/** What a process shares accounts with. */
export type Sharing = Readonly<{
  node: NodeId;
  /** The latest start of the node. */
  fence: number;
  /** Opens the store of leases; `onLoss` is called when it may have lost what was reported. */
  openLeases(onLoss: () => void): LeaseStore;
  /** The part of an account's rate that this process may let in alone while it does not know the others. */
  share: number;
  /** Nodes of this host that do not run: this process alone reports what they spent. */
  deadNodes: readonly NodeId[];
}>;

/** What a process is to the others of its data directory. */
type NodeClaim = Readonly<{
  /** Its rows in the ledger. */
  node: string;
  /** What it shares accounts with; `undefined`: it is alone. */
  sharing: Sharing | undefined;
  lock: Lock;
}>;

type ClaimingNode =
  | { readonly kind: 'claimed'; readonly claim: NodeClaim }
  /** `sentence` tells the operator why not: another process has it, or a file is wrong. */
  | { readonly kind: 'refused'; readonly sentence: string };

type ClaimOptions = Readonly<{
  config: Config;
  ledger: Store;
  /** Opens the ledger once more: leases have a connection of their own. */
  openLedger(): Opened;
  clock: Clock;
  log: Log;
  random(): number;
  makeId(): string;
}>;

/** Claims the id of process `index` of the gateway, 0 for one without a supervisor. No other process has it then. */
export function claimNodeId(index: number, options: ClaimOptions): ClaimingNode {
  const { config, ledger, clock, makeId } = options;
  const { dataDir, redisUrl } = config.storage;
  const name = processName(index);
  if (!sharesAccounts(config)) {
    const locking = takeLock(dataDir, name);
    if (locking.kind === 'refused') return locking;
    return { kind: 'claimed', claim: { node: name, sharing: undefined, lock: locking.lock } };
  }
  if (redisUrl !== undefined && placesFrom(redisUrl.reveal()) === undefined)
    return { kind: 'refused', sentence: NO_REDIS_ADDRESS };
  const claiming = claimNode(dataDir, name, ledger, clock.now(), makeId);
  if (claiming.kind === 'refused') return claiming;
  const { node, fence, lock } = claiming;
  // One process reports for those that do not run. What it reports of one that does is true as well, and changes nothing.
  // Their names come from rows that a gateway has written; the authority takes any name for a node.
  const deadNodes = index <= 1 ? (otherNodes(ledger, node) as NodeId[]) : [];
  const openLeases = (onLoss: () => void) => leasesOf(options, onLoss);
  const sharing = { node, fence, openLeases, share: 1 / config.gateway.processes, deadNodes };
  return { kind: 'claimed', claim: { node, sharing, lock } };
}

function leasesOf({ config, openLedger, clock, log, random }: ClaimOptions, onLoss: () => void): LeaseStore {
  const { redisUrl } = config.storage;
  const onReleased = (accountId: number, released: object) =>
    log.warn({ accountId, ...released }, 'credits of a process that was silent for a day are released');
  if (redisUrl === undefined) {
    const own = openLedger();
    if (own.kind === 'unusable') throw new Error(own.sentence);
    const leases = createSqliteStore({ ledger: own.store, clock, onReleased });
    return { ...leases, close: () => leases.close().then(() => own.store.close()) };
  }
  const onWarning = (warning: string) => log.warn({ warning }, 'redis');
  const url = redisUrl.reveal();
  const opened = openRedisStore({ url, clock, random, onWarning, onLoss, onReleased });
  if (opened.kind === 'unusable') throw new Error(opened.sentence);
  return opened.store;
}

type ClaimedNode = Readonly<{ kind: 'claimed'; node: NodeId; fence: number; lock: Lock }>;

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * Claims the process name of `dataDir` (`gateway-1`, `gateway-2`, …) and gives the node that lives there: its UUID from
 * the file `NAME.node`, made by `makeId` at the first start, and a fence above all earlier ones. Never throws.
 * The name's journal belongs to the node, so the file is only deleted together with the ledger.
 */
export function claimNode(
  dataDir: string,
  name: string,
  ledger: Store,
  nowMs: number,
  makeId: () => string,
): ClaimedNode | Extract<ClaimingNode, { kind: 'refused' }> {
  const locking = takeLock(dataDir, name);
  if (locking.kind === 'refused') return locking;
  try {
    const node = nodeIdIn(join(dataDir, `${name}.node`), makeId);
    return { kind: 'claimed', node, fence: nextFence(ledger, node, nowMs), lock: locking.lock };
  } catch (error) {
    locking.lock.release();
    const reason = error instanceof Error ? error.message : String(error);
    return { kind: 'refused', sentence: `The node of ${name} in ${dataDir} cannot be known (${reason}).` };
  }
}

function nodeIdIn(path: string, makeId: () => string): NodeId {
  const text = existingText(path) ?? newText(path, makeId());
  if (!UUID.test(text)) {
    throw new Error(
      `${path} does not hold a UUID; put it back from a backup, or delete it to start a new node`,
    );
  }
  return text as NodeId; // the pattern above is what a NodeId is
}

function existingText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Through a rename, so that a start that dies half-way leaves no half of an id. */
function newText(path: string, id: string): string {
  writeFileSync(`${path}.new`, `${id}\n`, { flush: true });
  renameSync(`${path}.new`, path);
  return id;
}

/**
 * The next fence of the node. It is at least the wall time, so that a ledger that was lost or put back from a backup
 * does not start below what a central store remembers of the node.
 */
function nextFence(ledger: Store, node: NodeId, nowMs: number): number {
  const next = ledger.prepare<{ fence: number }, [string, number]>(`
    INSERT INTO nodes (node, fence) VALUES (?, ?)
    ON CONFLICT (node) DO UPDATE SET fence = max(fence + 1, excluded.fence)
    RETURNING fence`);
  const row = next.get(node, Math.floor(nowMs));
  if (row === null) throw new Error('the ledger gave no fence');
  return row.fence;
}
